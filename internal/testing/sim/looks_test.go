// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestLooksWhileASetGrows counts the pods that the controller looks at while a set comes into being, in a cluster in which
// each write takes its time, so that the pods start one after the other and all the time some pod changes. A look at each
// event would see each pod a thousand times.
func TestLooksWhileASetGrows(t *testing.T) {
	t.Parallel()
	const most = 20
	replicas := 1000
	if testing.Short() {
		replicas = 300
	}
	w := NewWorld(t.Context(), 0)
	client := w.Managers[0].Client
	client.Faults = func(apiserver.Write) apiserver.Fault {
		w.clock.SetTime(w.Now().Add(3 * time.Millisecond)) // what a local cluster takes for a pod
		return apiserver.NoFault
	}
	if err := w.Play(t.Context(), mustParse(t, fmt.Sprintf("replicas %d\nsettle", replicas))); err != nil {
		t.Fatal(err)
	}
	if got := len(w.Pods()); got != replicas {
		t.Errorf("there are %d pods, want %d", got, replicas)
	}
	if seen := client.Listed[apiserver.Pods] / replicas; seen > most {
		t.Errorf("each pod is seen %d times, in %d reconciles; want %d at most", seen, w.Managers[0].Reconciles, most)
	}
}
