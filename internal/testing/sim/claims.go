// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// claims plays the controllers that bind claims, and let a storage driver resize and modify their volumes, and the one that protects a claim while a pod uses it.
type claims struct {
	world  *World
	dirty  []apiserver.Key
	driver driver
}

func (c *claims) observe(e *apiserver.Entry) {
	switch e.Key.Kind {
	case apiserver.Claims:
		c.dirty = append(c.dirty, e.Key)
	case apiserver.Pods:
		if e.Gone() || apiserver.HasEnded(apiserver.MustBe[*corev1.Pod](e.New)) {
			c.dirty = append(c.dirty, invariants.ClaimsOf(e.Old)...)
		}
	default:
	}
}

func (c *claims) turns(add func(turn)) {
	if len(c.dirty) > 0 {
		add(turn{who: claimActor, at: c.world.Now(), take: func(context.Context) error { return c.step() }})
	}
}

// step handles one claim.
func (c *claims) step() error {
	key := c.dirty[0]
	c.dirty = c.dirty[1:]
	claim, ok := c.world.Store.Get(key).(*corev1.PersistentVolumeClaim)
	switch {
	case !ok:
		return nil
	case claim.DeletionTimestamp != nil:
		if c.inUse(key) || !slices.Contains(claim.Finalizers, apiserver.ClaimProtection) {
			return nil
		}
		claim = apiserver.Clone(claim)
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == apiserver.ClaimProtection })
		_, err := c.world.Store.Update(apiserver.Write{Actor: claimActor}, claim)
		return err
	case claim.Spec.VolumeName == "":
		claim = apiserver.Clone(claim)
		claim.Spec.VolumeName = "pv-" + string(claim.UID)
		_, err := c.world.Store.Update(apiserver.Write{Actor: claimActor}, claim)
		return err
	}
	claim = apiserver.Clone(claim)
	if !c.driver.carryOut(claim) {
		return nil
	}
	_, err := c.world.Store.Update(apiserver.Write{Actor: claimActor, Subresource: "status"}, claim)
	return err
}

// inUse reports whether a pod that has a node and has not ended mounts a claim.
func (c *claims) inUse(key apiserver.Key) bool {
	for pod := range apiserver.Each[*corev1.Pod](c.world.Store) {
		if pod.Spec.NodeName != "" && !apiserver.HasEnded(pod) && slices.Contains(invariants.ClaimsOf(pod), key) {
			return true
		}
	}
	return false
}
