// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// done remembers which pods a manager has created and deleted in its present life, and when.
type done struct {
	created map[creation]time.Time
	deleted map[types.UID]time.Time
}

// creation is a pod and the set that it was created for.
type creation struct{ pod, set types.UID }

func newDone() done {
	return done{created: make(map[creation]time.Time), deleted: make(map[types.UID]time.Time)}
}

// again returns what is wrong with a write that repeats an earlier one of the same manager. A manager may repeat a
// write only when its cache has not shown it for some time. It may also reuse the names of pods that were released, or
// that belonged to an earlier set of the same name.
func (c *Checker) again(w apiserver.Write, err error) string {
	if w.Key.Kind != apiserver.Pods || w.Subresource != "" || w.DryRun {
		return ""
	}
	before, ok := c.done[w.Actor]
	if !ok {
		before = newDone()
		c.done[w.Actor] = before
	}
	recent := func(t time.Time) bool { return !t.IsZero() && c.world.now().Sub(t) < answerTimeout }
	pod := c.world.Store.Get(w.Key)
	if w.Verb == apiserver.Create && pod != nil {
		made := creation{pod.GetUID(), OwnerOf(pod)}
		switch {
		case err == nil:
			before.created[made] = c.world.now()
		case apierrors.IsAlreadyExists(err) && c.works(made.set) && recent(before.created[made]):
			return "I11 again: " + w.Key.Name + " is created by who created it before"
		}
	}
	if p := w.DeleteOptions.Preconditions; w.Verb == apiserver.Delete && p != nil && p.UID != nil {
		switch {
		case recent(before.deleted[*p.UID]):
			return "I11 again: " + w.Key.Name + " is deleted by who deleted it before"
		case err == nil:
			before.deleted[*p.UID] = c.world.now()
		}
	}
	return ""
}

// works reports whether a set is the one that the manager works on.
func (c *Checker) works(set types.UID) bool {
	seen := c.reconcile.set()
	return seen != nil && seen.UID == set
}
