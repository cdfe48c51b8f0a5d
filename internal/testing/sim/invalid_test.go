// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// TestInvalidSpec gives a set a selector that no validation would let in, but that an older object may have. Nothing is
// touched, not even to repair what a user does to its pods, until it is corrected.
func TestInvalidSpec(t *testing.T) {
	t.Parallel()
	w := NewWorld(t.Context(), 0)
	play := func(text string) {
		t.Helper()
		if err := w.Play(t.Context(), mustParse(t, text)); err != nil {
			t.Fatalf("%v\n%s", err, w.Film)
		}
	}
	prefer := func(what string, terms ...v1beta1.UpdatePriorityWeightTerm) {
		t.Helper()
		err := w.Edit(what, func(s *v1beta1.RollSetSpec) {
			s.UpdateStrategy.RollingUpdate.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{WeightPriority: terms}
			s.Template.Spec.Containers[0].Image = "app:v2"
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	play("replicas 3\nsettle")
	perhaps := metav1.LabelSelectorRequirement{Key: "zone", Operator: "Perhaps"}
	prefer("a priority without meaning", v1beta1.UpdatePriorityWeightTerm{
		Weight: 1, MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{perhaps}},
	})
	before := w.checker.Tally()
	play("delete a\norphan 12345\nsettle\nrestart\nsettle")
	if after := w.checker.Tally(); after != before {
		t.Errorf("managers went on: %s, before %s", after, before)
	}
	const want = `the spec is invalid and nothing is done: spec.updateStrategy.rollingUpdate.priorityStrategy.` +
		`weightPriority[0].matchSelector: "Perhaps" is not a valid label selector operator`
	for _, name := range []string{"Ready", "Progressing"} {
		if c := meta.FindStatusCondition(w.Set().Status.Conditions, name); c == nil || c.Reason != "InvalidSpec" || c.Message != want {
			t.Errorf("condition %s: %+v, want reason InvalidSpec and message %q", name, c, want)
		}
	}
	prefer("no priority")
	if err := w.CheckConverged(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, w.Film)
	}
}
