// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// outline is what is known of the plan of the running reconcile. A plan is made at once, and its writes come one after the other.
type outline struct {
	// deletes holds the pods that it has tried to delete.
	deletes map[apiserver.Key]bool
	// doubts are its writes that break a rule about whole plans, unless it deletes surge later.
	doubts []doubt
}

// doubt is a write that breaks a rule by what is known of its plan.
type doubt struct {
	rule
	*verdict
}

func newOutline() outline { return outline{deletes: make(map[apiserver.Key]bool)} }

// note records a write that the plan tried.
func (o *outline) note(w apiserver.Write) {
	if w.Verb == apiserver.Delete && w.Key.Kind == apiserver.Pods {
		o.deletes[w.Key] = true
	}
}

// doubt judges a write by what is known of its plan.
func (o *outline) doubt(v *verdict) {
	for _, r := range rulesOfPlans() {
		if r.judge(v) != "" {
			o.doubts = append(o.doubts, doubt{r, v})
		}
	}
}

// settle judges the doubtful writes again, now that all writes of the plan are known.
func (c *Checker) settle() {
	for _, d := range c.outline.doubts {
		if wrong := d.judge(d.verdict); wrong != "" && !c.holds(d.rule, d.Entry) {
			c.breaks(d.rule, d.Entry, wrong)
		}
	}
	c.outline = newOutline()
}

// Crash notes that the manager of the running reconcile crashes, so that the rest of its plan will never be known.
func (c *Checker) Crash() { c.outline = newOutline() }

// breaks records that a write breaks a rule.
func (c *Checker) breaks(r rule, e *apiserver.Entry, wrong string) {
	c.violate("%s broken at resource version %d by %s of %s: %s", r.name, e.Version, e.Actor, e.Write, wrong)
}

// sentAway reports whether the plan deletes a pod of surge. Surge has no successor, and does not count beside what else the plan does.
func (v *verdict) sentAway(pod *corev1.Pod) bool {
	return isSurge(pod) && v.checker.outline.deletes[apiserver.KeyOf(pod)]
}
