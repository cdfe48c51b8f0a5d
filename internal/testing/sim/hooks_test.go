// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// TestCheckHooks lets a pod wait for a hook that ends by itself, for longer than it should.
func TestCheckHooks(t *testing.T) {
	t.Parallel()
	w := played(t, "replicas 1\nhook preNormal 60 Proceed\nrun 10s")
	j := judge{w}
	if err := j.checkHooks(j.waitsForLong); err != nil {
		t.Errorf("before the limit: %v", err)
	}
	if err := j.checkHooks(waitsAtAll); err == nil {
		t.Error("a settled set that still waits is not noticed")
	}
	w.clock.SetTime(w.acted.Add(time.Minute + hookSlack + time.Second)) // and no manager takes a turn
	if err := j.checkHooks(j.waitsForLong); err == nil {
		t.Error("a pod that waits for too long is not noticed")
	}
	w.acted = w.Now()
	if err := j.checkHooks(j.waitsForLong); err != nil {
		t.Errorf("right after an action: %v", err)
	}
	if err := settle(t.Context(), w); err != nil {
		t.Error(err)
	}
	if err := edit(w, w.podNamed("a"), func(p *corev1.Pod) {
		p.Labels[v1beta1.LifecycleStateLabel] = string(v1beta1.LifecyclePreparingNormal)
	}); err != nil {
		t.Fatal(err)
	}
	if err := j.checkHooks(waitsAtAll); err == nil {
		t.Error("a pod that waits again is not noticed")
	}
}
