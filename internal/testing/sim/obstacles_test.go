// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestCheckNamed changes what the status of a set says that a full quota keeps from its pods, or takes the quota away.
func TestCheckNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status, message string
		lift            bool
		want            string
	}{
		"as it is":      {},
		"all is well":   {status: "True", want: "condition Ready says nothing of this: 2 active pods, 3 wanted"},
		"nothing named": {status: "False", message: "2 of 3 pods available", want: "no condition names what is in the way (a quota)"},
		"no obstacle":   {lift: true, want: "nothing is in the way, and all the same: 2 active pods, 3 wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := played(t, "replicas 3\nquota 2\nsettle")
			if tt.status != "" {
				set := apiserver.Clone(w.Set())
				for i := range set.Status.Conditions {
					c := &set.Status.Conditions[i]
					c.Message = tt.message
					if c.Type == "Ready" {
						c.Status = metav1.ConditionStatus(tt.status)
					}
				}
				w.Store.Show(w.Set(), set)
			}
			if tt.lift {
				w.Store.MaxPods = -1
			}
			if err := (judge{w}).checkNamed(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestCheckHeld changes what two bad templates in a row have left of a set: three pods at v1, and three at v3.
func TestCheckHeld(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		version string
		pods    int
		change  func(pod *corev1.Pod, update string)
		want    string
	}{
		"as it is": {},
		"a stray":  {"v3", 1, func(pod *corev1.Pod, _ string) { pod.Labels[v1beta1.RevisionLabel] = "web-other" }, " stays broken at ?, beside v1 and v3"},
		"more bad pods": {"v1", 2, func(pod *corev1.Pod, update string) {
			pod.Labels[v1beta1.RevisionLabel], pod.Status.Conditions = update, nil
		}, "5 pods stay broken at v3, and 4 are wanted"},
		"fewer good pods": {"v1", 1, func(pod *corev1.Pod, _ string) { pod.OwnerReferences = nil }, "2 pods stay beside the broken ones at v3, at least 3 must"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := played(t, "replicas 4\nmaxUnavailable 1\nmaxSurge 2\nrun 1m\nimage app:missing\nrun 30s\nimage app:broken\nrun 4m")
			left := tt.pods
			for _, pod := range w.Pods() {
				if left > 0 && w.Version(pod) == tt.version {
					left--
					changed := apiserver.Clone(pod)
					tt.change(changed, w.Set().Status.UpdateRevision)
					w.Store.Show(pod, changed)
				}
			}
			if err := (judge{w}).checkHeld(w.Now().Add(heldAfter)); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
