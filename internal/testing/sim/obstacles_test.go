// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			script, err := ParseScript("replicas 3\nquota 2\nsettle")
			if err != nil {
				t.Fatal(err)
			}
			w, err := play(t.Context(), script, 0)
			if err != nil {
				t.Fatal(err)
			}
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
			if err := w.checkNamed(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
