// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
)

func TestGate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := pod(template(), "r1")
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if g := inplace.GateOf(p); g.Declared || g.Closed() || !g.Passable() {
		t.Errorf("a pod without the gate: %+v", g)
	}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	if g := inplace.GateOf(p); g.Declared {
		t.Errorf("a pod with another gate: %+v", g)
	}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}, {ConditionType: "example.com/gate"}}
	if g := inplace.GateOf(p); !g.Declared {
		t.Errorf("a pod with the gate before another: %+v", g)
	}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}}
	if g := inplace.GateOf(p); g.Closed() || g.Passable() {
		t.Errorf("a gate that was never set: %+v", g)
	}
	for _, position := range []inplace.Position{inplace.Closed, inplace.Open, inplace.Closed} {
		patch, err := inplace.GatePatch(p, position, now)
		if err != nil {
			t.Fatal(err)
		}
		p = merged(t, p, patch)
		g := inplace.GateOf(p)
		if g.Passable() != (position == inplace.Open) || g.Closed() == g.Passable() || !g.Since.Equal(now) {
			t.Errorf("after %s: %+v", position, g)
		}
		if n := len(p.Status.Conditions); n != 2 {
			t.Errorf("after %s: %d conditions", position, n)
		}
	}
}

func merged(t *testing.T, p *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	p = &corev1.Pod{}
	if err := json.Unmarshal(after, p); err != nil {
		t.Fatal(err)
	}
	return p
}
