// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package metricsauth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"rollset.dev/rollset/internal/manager/metricsauth"
)

// apiServer knows the token "good" as a user of a group who may get /metrics, and no other token.
func apiServer(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch req.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if review.Spec.Token == "broken" {
			http.Error(w, "no answer", http.StatusForbidden)
			return
		}
		review.Status.Authenticated = review.Spec.Token == "good"
		review.Status.User = authenticationv1.UserInfo{
			Username: "prometheus", UID: "1", Groups: []string{"monitoring"},
			Extra: map[string]authenticationv1.ExtraValue{"pod": {"prometheus-0"}},
		}
		_ = json.NewEncoder(w).Encode(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s := review.Spec
		review.Status.Allowed = s.User == "prometheus" && s.UID == "1" && slices.Equal(s.Groups, []string{"monitoring"}) &&
			slices.Equal(s.Extra["pod"], authorizationv1.ExtraValue{"prometheus-0"}) &&
			*s.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		_ = json.NewEncoder(w).Encode(review)
	default:
		http.Error(w, errors.ErrUnsupported.Error(), http.StatusNotFound)
	}
}

// inProcess answers the requests of a client without a network, so that the time of a synctest bubble goes on.
type inProcess struct {
	http.Handler

	requests atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (p *inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	p.requests.Add(1)
	time.Sleep(5 * time.Millisecond)
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, req)
	return answer.Result(), nil
}

// guarded returns a handler of metrics behind the filter, and the API server that it asks.
func guarded(t *testing.T, log logr.Logger, answer http.HandlerFunc) (http.Handler, *inProcess) {
	t.Helper()
	server := &inProcess{Handler: answer}
	filter, err := metricsauth.Filter(clock.RealClock{})(&rest.Config{
		Host: "https://kubernetes.default", ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}, &http.Client{Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(log, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	return handler, server
}

// scrape asks for the metrics.
func scrape(t *testing.T, handler http.Handler, token string) (code int, took time.Duration) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	req.Header.Set("Authorization", "Bearer "+token)
	start, answer := time.Now(), httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	return answer.Code, time.Since(start)
}

func TestAcceptedTokensAreRememberedForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		token := "good"
		handler, server := guarded(t, logr.Discard(), func(w http.ResponseWriter, req *http.Request) {
			if token == "" {
				http.Error(w, "withdrawn", http.StatusForbidden)
				return
			}
			apiServer(w, req)
		})
		for range 4 {
			if code, _ := scrape(t, handler, "good"); code != http.StatusOK {
				t.Fatalf("answered %d", code)
			}
			time.Sleep(14 * time.Second)
		}
		if n := server.requests.Load(); n != 2 {
			t.Errorf("%d requests for four scrapes in a minute, want 2", n)
		}
		token = ""
		time.Sleep(5 * time.Second)
		if code, _ := scrape(t, handler, "good"); code == http.StatusOK {
			t.Error("the metrics were served more than a minute after the right was withdrawn")
		}
	})
}

// TestWrongTokensDelayNobody lets 300 clients ask again and again, each time with another token that is wrong.
func TestWrongTokensDelayNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines atomic.Int64
		log := funcr.New(func(_, _ string) { lines.Add(1) }, funcr.Options{})
		handler, server := guarded(t, log, apiServer)
		end := time.Now().Add(2 * time.Minute)
		for i := range 300 {
			go func() {
				for k := 0; time.Now().Before(end); k++ {
					if code, _ := scrape(t, handler, fmt.Sprintf("x%d.%d", i, k)); code == http.StatusOK {
						t.Error("a wrong token was accepted")
					}
				}
			}()
		}
		time.Sleep(time.Millisecond)
		for time.Now().Before(end) {
			if code, took := scrape(t, handler, "good"); code != http.StatusOK || took > 2*time.Second {
				t.Fatalf("a good token was answered %d after %s", code, took)
			}
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		if n := lines.Load(); n > 3 {
			t.Errorf("%d lines in the log in two minutes", n)
		}
		if n := server.requests.Load(); n > 120*200 {
			t.Errorf("the API server was asked %d times in two minutes", n)
		}
	})
}

// TestKnownClientsHaveALaneOfTheirOwn lets a thousand clients ask at once, more than the lane of unknown ones serves, when the answer
// about a known one has become too old.
func TestKnownClientsHaveALaneOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler, _ := guarded(t, logr.Discard(), apiServer)
		if code, _ := scrape(t, handler, "good"); code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
		time.Sleep(2 * time.Minute)
		var busy atomic.Int64
		for i := range 1000 {
			go func() {
				if code, _ := scrape(t, handler, fmt.Sprintf("x%d", i)); code == http.StatusTooManyRequests {
					busy.Add(1)
				}
			}()
		}
		time.Sleep(time.Millisecond)
		if code, took := scrape(t, handler, "good"); code != http.StatusOK || took > 100*time.Millisecond {
			t.Errorf("a known client was answered %d after %s", code, took)
		}
		time.Sleep(time.Minute)
		if busy.Load() == 0 {
			t.Error("the lane of unknown clients was never full")
		}
	})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"no token":                   {authorization: "", want: http.StatusUnauthorized},
		"not a bearer token":         {authorization: "Basic good", want: http.StatusUnauthorized},
		"an empty token":             {authorization: "Bearer ", want: http.StatusUnauthorized},
		"an unknown token":           {authorization: "Bearer bad", want: http.StatusUnauthorized},
		"an API server that refuses": {authorization: "Bearer broken", want: http.StatusInternalServerError},
		"another path":               {path: "/debug", authorization: "Bearer good", want: http.StatusForbidden},
		"another method":             {method: http.MethodPost, authorization: "Bearer good", want: http.StatusForbidden},
		"allowed":                    {authorization: "Bearer good", want: http.StatusOK},
		"allowed, in other letters":  {authorization: "bearer  good", want: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { answers(t, test.method, test.path, test.authorization, test.want) })
		})
	}
}

// answers asks for a path, and compares the status of the answer.
func answers(t *testing.T, method, path, authorization string, want int) {
	t.Helper()
	handler, _ := guarded(t, logr.Discard(), apiServer)
	if path == "" {
		path = "/metrics"
	}
	req := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	if answer.Code != want || (answer.Body.String() == "metrics") != (want == http.StatusOK) {
		t.Errorf("answered %d %q, want %d", answer.Code, answer.Body, want)
	}
}
