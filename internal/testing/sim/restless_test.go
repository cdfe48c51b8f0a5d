// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestRestlessPod changes the status of a pod fifty times a second, and the cache always lacks the newest change. The pod
// is deleted all the same, and by at most two attempts a change.
func TestRestlessPod(t *testing.T) {
	t.Parallel()
	w := played(t, "replicas 1\nsettle\nreplicas 0")
	m := w.Managers[0]
	w.turns.asleep[m.Name+string(apiserver.Pods)] = w.Now().Add(time.Hour)
	deletes := 0
	m.Client.Faults = func(w apiserver.Write) apiserver.Fault {
		if w.Verb == apiserver.Delete {
			deletes++
		}
		return apiserver.NoFault
	}
	changes := 0
	for ; changes < 50; changes++ {
		pod := w.podNamed("a")
		if pod == nil || pod.DeletionTimestamp != nil {
			break
		}
		restless := apiserver.Clone(pod)
		restless.Status.Message = strconv.Itoa(changes)
		if _, err := w.Store.Update(apiserver.Write{Actor: kubeletActor, Subresource: "status"}, restless); err != nil {
			t.Fatal(err)
		}
		for m.Client.Lag(apiserver.Pods) > 1 {
			m.Dispatch(t.Context(), m.Client.Deliver(apiserver.Pods))
		}
		if err := w.Run(t.Context(), 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if pod := w.podNamed("a"); pod != nil && pod.DeletionTimestamp == nil {
		t.Errorf("the pod is still there after %d changes", changes)
	}
	if deletes > 2*changes {
		t.Errorf("%d deletes were tried in %d changes", deletes, changes)
	}
	delete(w.turns.asleep, m.Name+string(apiserver.Pods))
	if err := w.CheckConverged(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, w.Film)
	}
}

// TestStatusOfSetThatMoved lets a user change a set whose cache stands still, and looks at it five times a second. A
// status carries the version that the cache shows, so that its writes fail until the cache moves. They are tried less
// and less often.
func TestStatusOfSetThatMoved(t *testing.T) {
	t.Parallel()
	w := played(t, "replicas 1\nsettle")
	m := w.Managers[0]
	w.turns.asleep[m.Name+string(apiserver.RollSets)] = w.Now().Add(time.Hour)
	refused := 0
	m.Client.Tried = func(write apiserver.Write, err error) {
		if write.Key.Kind == apiserver.RollSets && apierrors.IsConflict(err) {
			refused++
		}
	}
	if err := w.Play(t.Context(), mustParse(t, "paused true\ncordon\nkill a")); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		w.Resync()
		if err := w.Run(t.Context(), 200*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 || refused > 8 {
		t.Errorf("%d writes were refused in a minute, want a few", refused)
	}
	delete(w.turns.asleep, m.Name+string(apiserver.RollSets))
	w.scheduler.changeNodes(false)
	if err := w.CheckConverged(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, w.Film)
	}
}

func mustParse(t *testing.T, text string) Script {
	t.Helper()
	script, err := ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	return script
}
