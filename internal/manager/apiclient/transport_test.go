// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// server answers after a time, with a clock that is behind.
type server struct{ takes, behind time.Duration }

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case <-time.After(s.takes):
	}
	header := http.Header{}
	header.Set("Date", time.Now().Add(-s.behind).UTC().Format(http.TimeFormat))
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func ask(ctx context.Context, t *testing.T, through http.RoundTripper) (took time.Duration, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://kubernetes.default/api", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	answer, err := through.RoundTrip(req)
	if err == nil {
		err = answer.Body.Close()
	}
	return time.Since(start), err
}

func watched(s *server, difference *ClockDifference) http.RoundTripper {
	config := &rest.Config{}
	Watch(config, difference)
	return config.WrapTransport(s)
}

func TestRequestsOfReconcilesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		through := watched(&server{takes: time.Minute}, NewClockDifference(clock.RealClock{}, funcr.New(func(_, _ string) {}, funcr.Options{})))
		reconcile, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		took, err := ask(reconcile, t, through)
		if took != requestTimeout || !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "no answer within 15s") {
			t.Errorf("after %s: %v", took, err)
		}
		soon, cancelSoon := context.WithTimeout(t.Context(), time.Second)
		defer cancelSoon()
		if took, err = ask(soon, t, through); took != time.Second || err == nil || strings.Contains(err.Error(), "no answer") {
			t.Errorf("after %s: %v", took, err)
		}
		if took, err = ask(t.Context(), t, through); took != time.Minute || err != nil {
			t.Errorf("a request without a deadline ended after %s: %v", took, err)
		}
	})
}

func TestClockDifference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		difference := NewClockDifference(clock.RealClock{}, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
		for _, tt := range []struct {
			takes, behind, want time.Duration
			lines               int
		}{
			{0, 0, 0, 0},
			{2 * time.Second, 0, 0, 0},
			{10 * time.Second, 5 * time.Second, 0, 0}, // it cannot be told from a slow answer
			{0, 2 * time.Second, 0, 0},
			{0, time.Hour, time.Hour, 1},
			{2 * time.Second, time.Hour, time.Hour, 1},
			{0, -time.Hour, -time.Hour, 1},
			{0, 0, 0, 2},
			{0, -20 * time.Second, -20 * time.Second, 3},
		} {
			if _, err := ask(t.Context(), t, watched(&server{takes: tt.takes, behind: tt.behind}, difference)); err != nil {
				t.Fatal(err)
			}
			if got := difference.Ahead(); (got - tt.want).Abs() > 2*time.Second {
				t.Errorf("an API server that is %s behind and takes %s: ahead by %s", tt.behind, tt.takes, got)
			}
			if len(lines) != tt.lines {
				t.Errorf("%d lines in the log, want %d: %s", len(lines), tt.lines, lines)
			}
			time.Sleep(time.Second)
		}
	})
}
