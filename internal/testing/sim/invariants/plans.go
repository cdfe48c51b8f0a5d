// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// outline is what is known of the plan of the running reconcile. A plan is made at once, and its writes come one after the other.
type outline struct {
	// active is how many active pods of the set its manager has known at most.
	active int
	// silent holds the pods that it has updated in place without a new image. A write that was decided before may be committed after it.
	silent map[apiserver.Key]bool
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

func newOutline() outline {
	return outline{silent: make(map[apiserver.Key]bool), deletes: make(map[apiserver.Key]bool)}
}

// see records a write of the plan.
func (o *outline) see(v *verdict) {
	o.active = max(o.active, v.count(IsActive))
	if v.movesSilently() {
		o.silent[v.Key] = true
	}
}

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

// sentAway reports whether the plan deletes a pod of surge. Surge has no successor, and does not count beside what else the plan does.
func (v *verdict) sentAway(pod *corev1.Pod) bool {
	return isSurge(pod) && v.checker.outline.deletes[apiserver.KeyOf(pod)]
}
