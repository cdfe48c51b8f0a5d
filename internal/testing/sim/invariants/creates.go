// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// creates records how creating pods goes in the running reconcile. While creates are refused, a plan does not count on
// pods that do not exist yet (docs/adr/0011).
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
