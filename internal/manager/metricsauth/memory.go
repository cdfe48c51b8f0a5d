// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package metricsauth

import (
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// acceptedFor is how long an answer that allows a request is used again. A right that is withdrawn ends that much later.
	acceptedFor = time.Minute
	// knownFor is how long a client that was allowed has priority over unknown clients.
	knownFor = time.Hour
	// maxClients bounds the clients that are remembered. A cluster has a few that read metrics.
	maxClients = 1000
)

// client names who asks, and for what, without the token itself.
type client [sha256.Size]byte

func clientOf(token string, req *http.Request) client {
	return sha256.Sum256([]byte(verb(req) + " " + req.URL.Path + " " + token))
}

// memory remembers the clients that were allowed.
type memory struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// allowed is when each client was last allowed.
	allowed map[client]time.Time
}

// age returns how long ago a client was last allowed; false if that is not known.
func (m *memory) age(c client) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.allowed[c]
	if age := m.clock.Since(at); ok && age >= 0 && age < knownFor { // a negative age is that of a clock that was set back
		return age, true
	}
	return 0, false
}

// forget forgets a client that is no longer allowed.
func (m *memory) forget(c client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.allowed, c)
}

// allow remembers that a client was allowed.
func (m *memory) allow(c client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.allowed == nil || len(m.allowed) >= maxClients {
		m.forgetOld()
	}
	m.allowed[c] = m.clock.Now()
}

// forgetOld forgets the clients that are no longer known, or all of them if there are still too many.
func (m *memory) forgetOld() {
	maps.DeleteFunc(m.allowed, func(_ client, at time.Time) bool { return m.clock.Since(at) >= knownFor })
	if m.allowed == nil || len(m.allowed) >= maxClients {
		m.allowed = map[client]time.Time{}
	}
}

// tally lets a message be logged once a minute, with the number of requests that it stands for.
type tally struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	count int
	next  time.Time
}

// logEvery is the shortest time between two messages.
const logEvery = time.Minute

// add counts a request, and returns how many there were since the last message; zero if that was less than a minute ago.
func (t *tally) add() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	now := t.clock.Now()
	if now.Before(t.next) && t.next.Sub(now) <= logEvery {
		return 0
	}
	count := t.count
	t.count, t.next = 0, now.Add(logEvery)
	return count
}
