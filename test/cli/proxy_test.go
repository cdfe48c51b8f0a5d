// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// errCut makes a proxy close the connection instead of answering.
var errCut = errors.New("the connection is cut")

// through returns the user behind a proxy before the API server. For each write, before is asked first: a status other than
// 0 is the answer. After the API server has carried the write out, an error from after closes the connection.
func (u *user) through(t *testing.T, before func(*http.Request) int, after func(*http.Request) error) *user {
	t.Helper()
	config := shared.RESTConfig()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if !writes(r.Request) {
				return nil
			}
			return after(r.Request)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if writes(r) {
			if code := before(r); code != 0 {
				refuse(w, code)
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	behind := *u
	behind.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c"}},
		CurrentContext: "c",
	}, behind.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return &behind
}

// writes reports whether a request changes something.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == ""
}

// refuse answers as the API server does.
func refuse(w http.ResponseWriter, code int) {
	reason := map[int]string{http.StatusConflict: "Conflict", http.StatusServiceUnavailable: "ServiceUnavailable"}[code]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

// killedAfterWrites runs a command line again and again until it ends by itself. It kills each run as soon as the API server has
// carried out a write after which no run was killed yet. It returns how many it killed.
func (u *user) killedAfterWrites(t *testing.T, args ...string) int {
	t.Helper()
	seen := map[string]bool{}
	var mu sync.Mutex
	var process *os.Process
	behind := u.through(t, func(*http.Request) int { return 0 }, func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		write := r.Method + " " + r.URL.Path
		if seen[write] {
			return nil
		}
		seen[write] = true
		return errors.Join(process.Kill(), errCut)
	})
	for {
		killed := len(seen)
		command := behind.command(t.Context(), args...)
		mu.Lock()
		err := command.Start()
		process = command.Process
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		err = command.Wait()
		mu.Lock()
		done := len(seen) == killed
		mu.Unlock()
		if done {
			if err != nil {
				t.Fatalf("%v was killed %d times, and then: %v\n%s", args, killed, err, u.try(t, "", args...).err)
			}
			return killed
		}
	}
}

// troubled returns the user behind an API server that answers each write with a conflict first, then with a failure, and
// closes the connection when it has carried out the third attempt.
func (u *user) troubled(t *testing.T) *user {
	t.Helper()
	var mu sync.Mutex
	attempts := map[string]int{}
	next := func(r *http.Request) int {
		mu.Lock()
		defer mu.Unlock()
		return attempts[r.Method+" "+r.URL.Path]
	}
	return u.through(t, func(r *http.Request) int {
		n := next(r)
		mu.Lock()
		attempts[r.Method+" "+r.URL.Path]++
		mu.Unlock()
		return map[int]int{0: http.StatusConflict, 1: http.StatusServiceUnavailable}[n]
	}, func(r *http.Request) error {
		if next(r) == 3 {
			return errCut
		}
		return nil
	})
}
