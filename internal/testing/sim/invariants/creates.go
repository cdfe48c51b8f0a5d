// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// creates records how creating pods goes. While creates are refused, a plan does not count on pods that do not exist yet (docs/adr/0011).
type creates struct {
	// failing holds the managers whose last creates were refused.
	failing map[string]bool
	// tried and failed count the creates of this reconcile.
	tried, failed int
	// unhoped holds the pods that it created while creates were refused.
	unhoped map[apiserver.Key]bool
	// refused holds the managers whose creates the API server has refused since the last one that it carried out.
	refused map[string]bool
	// conflicts counts the conflicts in a row of each object. More than tolerated count as a refusal.
	conflicts map[apiserver.Key]int
	// made maps each pod that a manager created for a set to the generation of the set. Adopted pods are not in it.
	made map[creation]int64
	// had is how many pods a set that limits their creation has had at once, as far as its status told.
	had int
}

// tolerated is the number of conflicts in a row that do not count as a refusal.
const tolerated = 3

// note records the outcome of a write.
func (c *creates) note(w apiserver.Write, err error) {
	if w.Verb != apiserver.Create || w.DryRun || w.Key.Kind == apiserver.Revisions {
		return
	}
	c.tried++
	if !apierrors.IsConflict(err) {
		delete(c.conflicts, w.Key)
	} else if c.conflicts[w.Key]++; c.conflicts[w.Key] > tolerated {
		c.failed++
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		c.failed++
		c.refused[w.Actor] = true
	}
	if err == nil {
		delete(c.refused, w.Actor)
	}
}

// see records a write of a manager.
func (c *creates) see(e *apiserver.Entry, v *verdict) {
	if !v.createsPod() {
		return
	}
	if v.set != nil {
		c.made[creation{e.New.GetUID(), v.set.UID}] = v.set.Generation
	}
	c.unhoped[e.Key] = c.failing[e.Actor]
}

// InConflict reports whether the last try to create a pod met a conflict. No status tells that, because it is tried again at once.
func (c *Checker) InConflict() bool { return len(c.creates.conflicts) > 0 }

// end closes the reconcile of a manager.
func (c *creates) end(manager string) {
	if c.tried > 0 {
		c.failing[manager] = c.failed > 0
	}
	c.tried, c.failed = 0, 0
	clear(c.unhoped)
}
