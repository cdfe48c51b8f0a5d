// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/podstate"
)

func TestLeaving(t *testing.T) {
	t.Parallel()
	tainted := func(key string, effect corev1.TaintEffect) corev1.NodeSpec {
		return corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Value: "soon", Effect: effect}}}
	}
	tolerating := func(tolerations ...corev1.Toleration) corev1.PodSpec { return corev1.PodSpec{Tolerations: tolerations} }
	for name, c := range map[string]struct {
		node      corev1.NodeSpec
		pod       corev1.PodSpec
		why       string
		comesBack bool
	}{
		"a node that stays":              {comesBack: true},
		"a cordon":                       {node: corev1.NodeSpec{Unschedulable: true}, why: "node n is cordoned"},
		"a taint that announces":         {node: tainted("leaves", corev1.TaintEffectNoSchedule), why: "node n has the taint leaves"},
		"a taint that evicts":            {node: tainted("leaves", corev1.TaintEffectNoExecute), why: "node n has the taint leaves"},
		"a taint that keeps away little": {node: tainted("leaves", corev1.TaintEffectPreferNoSchedule), comesBack: true},
		"a taint with another key":       {node: tainted("busy", corev1.TaintEffectNoSchedule), comesBack: true},
		"a tolerated cordon": {
			node: corev1.NodeSpec{Unschedulable: true}, why: "node n is cordoned", comesBack: true,
			pod: tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}),
		},
		"a tolerated value": {
			node: tainted("leaves", corev1.TaintEffectNoSchedule), why: "node n has the taint leaves", comesBack: true,
			pod: tolerating(corev1.Toleration{Key: "leaves", Value: "soon"}),
		},
		"another value": {
			node: tainted("leaves", corev1.TaintEffectNoSchedule), why: "node n has the taint leaves",
			pod: tolerating(corev1.Toleration{Key: "leaves", Value: "now"}),
		},
		"a tolerated effect": {
			node: tainted("leaves", corev1.TaintEffectNoSchedule), why: "node n has the taint leaves", comesBack: true,
			pod: tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}),
		},
		"another effect": {
			node: tainted("leaves", corev1.TaintEffectNoSchedule), why: "node n has the taint leaves",
			pod: tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}),
		},
		"everything tolerated": {
			node: tainted("leaves", corev1.TaintEffectNoExecute), why: "node n has the taint leaves", comesBack: true,
			pod: tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: c.node}
			if why := podstate.Leaving(node, []string{"leaves"}); why != c.why {
				t.Errorf("Leaving = %q, want %q", why, c.why)
			}
			if back := podstate.ComesBack(&c.pod, node, []string{"leaves"}); back != c.comesBack {
				t.Errorf("ComesBack = %t, want %t", back, c.comesBack)
			}
		})
	}
}

func TestTolerates(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		node corev1.NodeSpec
		want bool
	}{
		"a node without taints":          {want: true},
		"a cordon":                       {node: corev1.NodeSpec{Unschedulable: true}},
		"a taint that keeps away":        {node: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "busy", Effect: corev1.TaintEffectNoSchedule}}}},
		"a taint that keeps away little": {node: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "busy", Effect: corev1.TaintEffectPreferNoSchedule}}}, want: true},
		"a tolerated taint":              {node: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoExecute}}}, want: true},
	} {
		pod := &corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "own", Operator: corev1.TolerationOpExists}}}
		if got := podstate.Tolerates(pod, &corev1.Node{Spec: tt.node}); got != tt.want {
			t.Errorf("%s: tolerates %t", name, got)
		}
	}
}
