// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// creates is what the reconcile that goes on now knows of how creating pods went. While that is refused no pod is counted on that
// is yet to be created (docs/adr/0011).
type creates struct {
	// failing are the managers whose last reconcile that created something failed in that.
	failing map[string]bool
	// tried and failed count what this reconcile creates.
	tried, failed int
	// unhoped are the pods that it created nevertheless.
	unhoped map[apiserver.Key]bool
	// conflicts counts those in a row that an object met; after tolerated of them one more is a refusal.
	conflicts map[apiserver.Key]int
}

// tolerated is how many conflicts in a row a create may meet before they count as a refusal.
const tolerated = 3

// note takes note of the outcome of a write.
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
	}
}

// end closes the reconcile of a manager.
func (c *creates) end(manager string) {
	if c.tried > 0 {
		c.failing[manager] = c.failed > 0
	}
	c.tried, c.failed = 0, 0
	clear(c.unhoped)
}
