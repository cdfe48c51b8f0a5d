// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestProxy sends a request through the proxy: it arrives unchanged, and a round trip late.
func TestProxy(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	}))
	t.Cleanup(server.Close)
	p, err := newProxy(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	begin := time.Now()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || len(body) != size {
		t.Errorf("%d bytes, want %d (%v)", len(body), size, err)
	}
	// A TLS handshake and the request itself are two round trips.
	if took := time.Since(begin); took < 2*delay {
		t.Errorf("it took %v, want %v at least", took, 2*delay)
	}
}
