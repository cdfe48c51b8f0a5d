// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

func TestDisruption(t *testing.T) {
	t.Parallel()
	own := &policyv1.PodDisruptionBudget{}
	own.Name = "web"
	own.OwnerReferences = []metav1.OwnerReference{{Controller: new(true)}}
	own.Spec.MinAvailable = new(intstr.FromInt32(2))
	served, denied := snapshot.Access{Served: true}, snapshot.Access{Denied: "the manager may not list nodes"}
	both := v1beta1.Disruption{OnDrain: v1beta1.ReplaceOnDrain, PodDisruptionBudget: v1beta1.AutoBudget}
	drains := v1beta1.Disruption{OnDrain: v1beta1.ReplaceOnDrain}
	before := []metav1.Condition{{Type: v1beta1.ConditionDisruptionReady, Status: metav1.ConditionFalse, Reason: "MissingRights", Message: "as before"}}
	for name, tt := range map[string]struct {
		disruption v1beta1.Disruption
		nodes      snapshot.Access
		budgets    snapshot.Budgets
		previous   []metav1.Condition
		invalid    string
		want       string
	}{
		"nothing":        {},
		"not known":      {disruption: both, nodes: served},
		"not known yet":  {disruption: both, nodes: served, previous: before, want: "False MissingRights: as before"},
		"drains":         {disruption: drains, nodes: served, want: "True InForce: pods of nodes that leave are replaced"},
		"drains, denied": {disruption: drains, nodes: denied, want: "False MissingRights: onDrain does nothing: the manager may not list nodes; install the manager's component disruption, which has the rights"},
		"both": {
			disruption: both, nodes: served, budgets: snapshot.Budgets{Access: served, All: []*policyv1.PodDisruptionBudget{own}},
			want: "True InForce: pods of nodes that leave are replaced; PodDisruptionBudget web keeps at least 2 of the pods available",
		},
		"no budget yet": {
			disruption: both, nodes: served, budgets: snapshot.Budgets{Access: served},
			want: "False BudgetPending: pods of nodes that leave are replaced; PodDisruptionBudget web is not there yet",
		},
		"a budget is left": {
			budgets: snapshot.Budgets{Access: served, All: []*policyv1.PodDisruptionBudget{own}}, previous: before,
			want: "False BudgetPending: PodDisruptionBudget web is to be deleted",
		},
		"no budget is left":            {budgets: snapshot.Budgets{Access: served}, previous: before},
		"nothing, and no rights":       {budgets: snapshot.Budgets{Access: denied}, previous: before},
		"a spec that cannot be read":   {disruption: drains, nodes: served, invalid: "spec: odd", want: "Unknown InvalidSpec: spec: odd"},
		"budgets denied, drains known": {disruption: both, nodes: served, budgets: snapshot.Budgets{Access: snapshot.Access{Denied: "the manager may not create them"}}, want: "False MissingRights: pods of nodes that leave are replaced; podDisruptionBudget does nothing: the manager may not create them; install the manager's component disruption, which has the rights"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse("R=3", "a:v1+ b:v1+ c:v1+")
			snap.Spec.Disruption, snap.NodeAccess, snap.Budgets = &tt.disruption, tt.nodes, tt.budgets
			snap.Name, snap.UID = "web", ""
			got := ""
			for _, c := range Compute(Input{Snap: snap, Previous: &v1beta1.RollSetStatus{Conditions: tt.previous}, Invalid: tt.invalid}).Status.Conditions {
				if c.Type == v1beta1.ConditionDisruptionReady {
					got = string(c.Status) + " " + c.Reason + ": " + c.Message
				}
			}
			if got != tt.want {
				t.Errorf("condition\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
