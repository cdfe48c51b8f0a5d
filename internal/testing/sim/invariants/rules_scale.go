// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// observeScale records how many pods a set with scaleStrategy.maxUnavailable has had at once since its replicas were lowered
// last, as far as a manager has told of them in the status. The verdict is nil if the write is not a manager's.
func (c *creates) observeScale(key apiserver.Key, e *apiserver.Entry, v *verdict) {
	set, ok := e.New.(*v1beta1.RollSet)
	if e.Key != key || !ok || e.Verb == apiserver.Create || !limitsCreation(set) {
		if e.Key == key {
			c.had = 0
		}
		return
	}
	replicas := int(*set.Spec.Replicas)
	c.had = min(c.had, replicas)
	switch {
	case v == nil: // a status that a user empties is forgotten
		c.had = min(c.had, int(set.Status.ReachedReplicas))
	case v.set != nil && e.Subresource == "status":
		placed := v.count(func(pod *corev1.Pod) bool { return IsActive(pod) && !isSurge(pod) && !v.outside(pod) })
		c.had = max(c.had, min(placed, int(set.Status.Replicas), replicas))
	}
}

func limitsCreation(set *v1beta1.RollSet) bool {
	return set.Spec.ScaleStrategy != nil && set.Spec.ScaleStrategy.MaxUnavailable != nil
}

// holdsAfter is how long after a change a set has filled the places that it can fill.
const holdsAfter = time.Minute

// CheckPlaces checks that scaleStrategy.maxUnavailable keeps no place empty that had a pod, if nothing has happened to the set
// since a given time.
func (c *Checker) CheckPlaces(since time.Time) error {
	set := c.world.Set()
	if set == nil || set.DeletionTimestamp != nil || set.Status.ObservedGeneration != set.Generation {
		return nil
	}
	now, progressing := c.world.now(), meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing)
	if now.Sub(since) < holdsAfter || now.Sub(c.LastWrite) < holdsAfter {
		return nil
	}
	if progressing == nil || !strings.Contains(progressing.Message, "scaleStrategy.maxUnavailable: ") {
		return nil
	}
	if own, _ := c.world.OwnPods(set); len(own) < c.creates.had {
		return fmt.Errorf("scale limit: there were %d pods, there are %d, and the status says: %s", c.creates.had, len(own), progressing.Message)
	}
	return nil
}
