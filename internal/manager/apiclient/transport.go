// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// requestTimeout is how long a request of a reconcile may take, so that a webhook that hangs holds no worker for longer.
	requestTimeout = 15 * time.Second
	// resolution is the resolution of the time in an answer.
	resolution = time.Second
	// notable is the smallest difference between two clocks that is reported. Requests take a while, and clocks never agree exactly.
	notable = 3 * time.Second
	// logEvery is how often a difference is logged while it lasts.
	logEvery = time.Hour
)

// Watch lets each request of a client that has a deadline, as those of reconciles have, end within 15 seconds, and lets a
// ClockDifference read the time in each answer.
func Watch(config *rest.Config, difference *ClockDifference) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next: next, difference: difference} })
}

type transport struct {
	next       http.RoundTripper
	difference *ClockDifference
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := req.Context(), context.CancelFunc(func() {})
	if _, bounded := ctx.Deadline(); bounded { // watches and the lists of caches have none
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
	}
	sent := t.difference.clock.Now()
	answer, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && req.Context().Err() == nil {
			err = fmt.Errorf("no answer within %s: %w", requestTimeout, err)
		}
		cancel()
		return nil, err
	}
	t.difference.note(answer.Header.Get("Date"), sent)
	answer.Body = body{ReadCloser: answer.Body, closed: cancel}
	return answer, nil
}

// WrappedRoundTripper lets client-go find the transport that is wrapped.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// body is the body of an answer. Its time ends when it is closed.
type body struct {
	io.ReadCloser

	closed context.CancelFunc
}

// Close implements io.Closer.
func (b body) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// ClockDifference measures by how much the clock of this process is ahead of the API server's.
type ClockDifference struct {
	clock clock.PassiveClock
	log   logr.Logger

	mu    sync.Mutex
	ahead time.Duration
	// logged is when the difference was last logged; zero if there was none.
	logged time.Time
}

// NewClockDifference returns a measure that has seen no answer yet.
func NewClockDifference(c clock.PassiveClock, log logr.Logger) *ClockDifference {
	return &ClockDifference{clock: c, log: log}
}

// Ahead returns by how much the clock of this process is ahead; zero for less than a few seconds.
func (d *ClockDifference) Ahead() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ahead
}

// note reads the time that the API server wrote between a request and now.
func (d *ClockDifference) note(date string, sent time.Time) {
	server, err := http.ParseTime(date)
	if err != nil {
		return // a proxy may leave it out
	}
	received := d.clock.Now()
	least, most := sent.Sub(server.Add(resolution)), received.Sub(server) // what the difference may be
	ahead := time.Duration(0)
	if least >= notable || most <= -notable {
		ahead = ((least + most) / 2).Round(time.Second)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.ahead
	if was != 0 && least <= was && was <= most {
		ahead = was // still possible, so the reported difference does not change
	}
	d.ahead = ahead
	switch {
	case ahead == 0 && was != 0:
		d.logged = time.Time{}
		d.log.Info("the clock agrees with the API server's again")
	case ahead != 0 && (d.logged.IsZero() || received.Sub(d.logged).Abs() >= logEvery):
		d.logged = received
		d.log.Info("the clock differs from the API server's: what depends on times of pods, such as minReadySeconds, comes too early or too late; "+
			"synchronize it", "ahead", ahead.String())
	}
}
