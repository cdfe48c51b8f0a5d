// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"testing"
	"time"

	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/model/attempt"
)

var deletion = attempt.Key{Verb: attempt.Deleting, Object: "uid"}

func TestWait(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	refused := backoff.Failure{Version: "a", Message: "no", Refused: true}
	trouble := backoff.Failure{Version: "a", Message: "out of order"}
	overtaken := backoff.Failure{Version: "a", Seen: "7", Message: "conflict"}
	for name, tt := range map[string]struct {
		// fails is the number of failed attempts, each after its wait. pause is the time after the last one.
		fails         int
		failure       backoff.Failure
		pause         time.Duration
		version, seen string
		want          time.Duration
	}{
		"the first attempt is free":                  {failure: refused, version: "a"},
		"the second waits":                           {fails: 1, failure: refused, version: "a", want: backoff.Shortest},
		"each waits twice as long":                   {fails: 4, failure: refused, version: "a", want: 8 * backoff.Shortest},
		"but up to a bound":                          {fails: 30, failure: refused, version: "a", want: backoff.Longest},
		"a failure of the API server waits less":     {fails: 30, failure: trouble, version: "a", want: backoff.LongestTrouble},
		"the wait passes with time":                  {fails: 3, failure: refused, pause: 3 * time.Second, version: "a", want: time.Second},
		"another version is free":                    {fails: 5, failure: refused, version: "b"},
		"a clock that jumps back adds nothing":       {fails: 1, failure: refused, pause: -time.Hour, version: "a", want: backoff.Shortest},
		"an overtaken attempt waits":                 {fails: 1, failure: overtaken, version: "a", seen: "7", want: backoff.Shortest},
		"until it has seen the new version":          {fails: 3, failure: overtaken, version: "a", seen: "8"},
		"but an attempt that always conflicts waits": {fails: 4, failure: overtaken, version: "a", seen: "8", want: 8 * backoff.Shortest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var table backoff.Table
			now := start
			for range tt.fails {
				now = now.Add(table.Wait(deletion, "a", "7", now))
				table.Failed(deletion, tt.failure, now)
			}
			if got := table.Wait(deletion, tt.version, tt.seen, now.Add(tt.pause)); got != tt.want {
				t.Errorf("wait = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDoubtPasses(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	for name, tt := range map[string]struct {
		failure backoff.Failure
		pause   time.Duration
		want    time.Duration
	}{
		"a refusal is an answer":               {failure: backoff.Failure{Refused: true}},
		"no answer":                            {failure: backoff.Failure{Unsettled: true}, pause: 20 * time.Second, want: 40 * time.Second},
		"the object has another version":       {failure: backoff.Failure{Seen: "7"}, want: backoff.Settled},
		"the cache would show it":              {failure: backoff.Failure{Unsettled: true}, pause: backoff.Settled},
		"a clock that jumps back adds nothing": {failure: backoff.Failure{Unsettled: true}, pause: -time.Hour, want: backoff.Settled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var table backoff.Table
			if table.Failed(deletion, tt.failure, start); table.Doubt(deletion, start.Add(tt.pause)) != tt.want {
				t.Errorf("doubt = %v, want %v", table.Doubt(deletion, start.Add(tt.pause)), tt.want)
			}
		})
	}
}

func TestFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	alive, gone := func(attempt.Key) bool { return false }, func(attempt.Key) bool { return true }
	for name, forget := range map[string]func(*backoff.Table){
		"at a success":                 func(table *backoff.Table) { table.Succeeded(deletion) },
		"with the object":              func(table *backoff.Table) { table.Forget(gone, now) },
		"after a long time without it": func(table *backoff.Table) { table.Forget(alive, now.Add(backoff.Forgotten+time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var table backoff.Table
			for range 5 {
				table.Failed(deletion, backoff.Failure{Version: "a", Message: "no", Refused: true}, now)
			}
			table.Forget(alive, now.Add(backoff.Longest))
			if f, ok := table.Failure(deletion, "a"); !ok || f.Message != "no" {
				t.Errorf("failure = %+v, %t, want one", f, ok)
			}
			forget(&table)
			if keys := table.Keys(); len(keys) > 0 {
				t.Errorf("remembers %v", keys)
			}
			table.Failed(deletion, backoff.Failure{Version: "a"}, now)
			if got := table.Wait(deletion, "a", "", now); got != backoff.Shortest {
				t.Errorf("wait = %v, want %v", got, backoff.Shortest)
			}
		})
	}
}

func TestOneAttemptDelaysNoOther(t *testing.T) {
	t.Parallel()
	var table backoff.Table
	now := time.Unix(1000, 0)
	table.Failed(deletion, backoff.Failure{Message: "no"}, now)
	for _, other := range []attempt.Key{{Verb: attempt.Deleting, Object: "other"}, {Verb: attempt.Updating, Object: "uid"}} {
		if got := table.Wait(other, "", "", now); got != 0 {
			t.Errorf("%v waits %v", other, got)
		}
	}
}

func TestRestIsForgottenWhenItIsOver(t *testing.T) {
	t.Parallel()
	var table backoff.Table
	now := time.Unix(1000, 0)
	alive := func(attempt.Key) bool { return false }
	table.Rest(deletion, backoff.Failure{}, now, time.Second)
	table.Forget(alive, now)
	if got := table.Wait(deletion, "", "", now); got != time.Second {
		t.Errorf("wait = %v, want %v", got, time.Second)
	}
	if table.Forget(alive, now.Add(time.Second)); table.Has(deletion) {
		t.Error("a rest that is over is remembered")
	}
}

func TestBeingOvertakenNowAndThenIsNoRefusal(t *testing.T) {
	t.Parallel()
	var table backoff.Table
	now := time.Unix(1000, 0)
	for i, want := range []bool{true, true, true, false} {
		table.Failed(deletion, backoff.Failure{Seen: "7", Message: "conflict"}, now)
		if f, _ := table.Failure(deletion, ""); f.Overtaken != want {
			t.Errorf("overtaken after %d conflicts is %t, want %t", i+1, f.Overtaken, want)
		}
	}
}

// TestAlteredAttemptsRestForLonger checks the waits after writes that the API server accepted and altered.
func TestAlteredAttemptsRestForLonger(t *testing.T) {
	t.Parallel()
	var table backoff.Table
	k := attempt.Key{Verb: attempt.Relabeling, Object: "a"}
	now := time.Unix(0, 0)
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, backoff.Longest, backoff.Longest} {
		table.Failed(k, backoff.Failure{Refused: true, Altered: true}, now)
		if got := table.Wait(k, "", "", now); got != want {
			t.Errorf("wait %d = %s, want %s", i, got, want)
		}
		now = now.Add(want)
	}
}
