// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// web is a set with a disruption budget of its own. Three of its four pods stay available.
func web(budgets ...*policyv1.PodDisruptionBudget) *snapshot.Set {
	labels := map[string]string{"app": "web"}
	spec := &v1beta1.RollSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: labels},
		Disruption: &v1beta1.Disruption{PodDisruptionBudget: v1beta1.AutoBudget},
	}
	spec.Template.Labels = labels
	return &snapshot.Set{
		Settings: snapshot.Settings{
			Name: "web", UID: "1", Spec: spec,
			Numbers: snapshot.Numbers{Limits: snapshot.Limits{Replicas: 4, MaxUnavailable: 1}},
		},
		Cluster: snapshot.Cluster{Budgets: snapshot.Budgets{Access: snapshot.Access{Served: true}, All: budgets}},
	}
}

// budget is a budget that selects the pods of the set. Its owner is the set if the UID is 1, another set otherwise, and there
// is none without a UID.
func budget(name string, owner types.UID) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Spec.MinAvailable = new(intstr.FromInt32(3))
	b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	if owner != "" {
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.rollset.dev/v1beta1", Kind: "RollSet", Name: name, UID: owner, Controller: new(true)}}
	}
	return b
}

func edited(b *policyv1.PodDisruptionBudget, edit func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	edit(b)
	return b
}

func none(snap *snapshot.Set)     { snap.Spec.Disruption.PodDisruptionBudget = v1beta1.NoBudget }
func percent(snap *snapshot.Set)  { snap.Limits.MaxUnavailable = 9 }
func unserved(snap *snapshot.Set) { snap.Budgets.Access = snapshot.Access{} }

func rolling(snap *snapshot.Set) {
	template := snap.Spec.Template.DeepCopy()
	template.Labels["tier"] = "old"
	snap.Current.Template = template
}

func refused(snap *snapshot.Set) {
	snap.Refusals = map[attempt.Key]snapshot.Refusal{{Verb: attempt.CreatingBudget, Object: "web"}: {Message: "no", Retry: time.Minute}}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	selecting := func(selector *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = selector }
	}
	for name, tt := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		edit    func(*snapshot.Set)
		want    string
	}{
		"missing":                         {want: "create budget web (minAvailable 3)"},
		"more may go than there are":      {edit: percent, want: "create budget web (minAvailable 0)"},
		"as wanted":                       {budgets: []*policyv1.PodDisruptionBudget{budget("web", "1")}},
		"not wanted, and none":            {edit: none},
		"not wanted":                      {budgets: []*policyv1.PodDisruptionBudget{budget("web", "1")}, edit: none, want: "delete budget web (podDisruptionBudget is None)"},
		"not known":                       {edit: unserved},
		"refused a moment ago":            {edit: refused},
		"the number changed":              {budgets: []*policyv1.PodDisruptionBudget{budget("web", "1")}, edit: percent, want: "change budget web (minAvailable 0)"},
		"the selector was edited":         {budgets: []*policyv1.PodDisruptionBudget{edited(budget("web", "1"), selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}))}, want: "change budget web (minAvailable 3)"},
		"foreign":                         {budgets: []*policyv1.PodDisruptionBudget{budget("mine", "")}},
		"foreign comes":                   {budgets: []*policyv1.PodDisruptionBudget{budget("mine", ""), budget("web", "1")}, want: "delete budget web (mine selects the same pods)"},
		"foreign, everywhere":             {budgets: []*policyv1.PodDisruptionBudget{edited(budget("mine", ""), selecting(&metav1.LabelSelector{}))}},
		"foreign, nowhere":                {budgets: []*policyv1.PodDisruptionBudget{edited(budget("mine", ""), selecting(nil))}, want: "create budget web (minAvailable 3)"},
		"foreign, for old pods":           {budgets: []*policyv1.PodDisruptionBudget{edited(budget("mine", ""), selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "old"}}))}, edit: rolling},
		"foreign, not to be understood":   {budgets: []*policyv1.PodDisruptionBudget{edited(budget("mine", ""), selecting(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: "Near"}}}))}, want: "create budget web (minAvailable 3)"},
		"the name is taken":               {budgets: []*policyv1.PodDisruptionBudget{edited(budget("web", ""), selecting(nil))}},
		"of another set, and ours to be":  {budgets: []*policyv1.PodDisruptionBudget{budget("zed", "2")}},
		"of another set, which yields":    {budgets: []*policyv1.PodDisruptionBudget{budget("zed", "2"), budget("web", "1")}},
		"of another set, which is first":  {budgets: []*policyv1.PodDisruptionBudget{budget("all", "2"), budget("web", "1")}, want: "delete budget web (all selects the same pods)"},
		"the first of those that are":     {budgets: []*policyv1.PodDisruptionBudget{budget("mine", ""), budget("also", ""), budget("web", "1")}, want: "delete budget web (also selects the same pods)"},
		"in whichever order":              {budgets: []*policyv1.PodDisruptionBudget{budget("also", ""), budget("mine", ""), budget("web", "1")}, want: "delete budget web (also selects the same pods)"},
		"a second one":                    {budgets: []*policyv1.PodDisruptionBudget{budget("copy", "1"), budget("web", "1")}, want: "delete budget copy (the set's budget is web, not copy)"},
		"not wanted, and terminating":     {budgets: []*policyv1.PodDisruptionBudget{edited(budget("web", "1"), func(b *policyv1.PodDisruptionBudget) { b.DeletionTimestamp = new(metav1.Unix(1, 0)) })}, edit: none},
		"wanted, terminating and changed": {budgets: []*policyv1.PodDisruptionBudget{edited(budget("web", "1"), func(b *policyv1.PodDisruptionBudget) { b.DeletionTimestamp = new(metav1.Unix(1, 0)) })}, edit: percent},
		"edited": {budgets: []*policyv1.PodDisruptionBudget{edited(budget("web", "1"), func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
		})}, want: "change budget web (minAvailable 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := web(tt.budgets...)
			if tt.edit != nil {
				tt.edit(snap)
			}
			p := Plan(snap)
			if got := strings.TrimSpace(p.String()); got != tt.want {
				t.Errorf("plan %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	snap := web()
	refused(snap)
	a, message := Refused(snap)
	if a == nil || message != "no" || Plan(snap).RequeueAfter != time.Minute {
		t.Errorf("refused %v %q, and asks again after %s", a, message, Plan(snap).RequeueAfter)
	}
	if a, _ := Refused(web(budget("web", "1"))); a != nil {
		t.Errorf("refused %v, and nothing is due", a)
	}
}
