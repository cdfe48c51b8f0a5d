// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Claims plays the controllers that bind claims and let their volumes be resized and modified, and the one that protects a claim
// while a pod uses it.
type Claims struct {
	// Store is the API server.
	Store *apiserver.Store
	// Driver, if not nil, changes the new status of a claim before it is written. before is the status that the claim had.
	Driver func(before *corev1.PersistentVolumeClaimStatus, claim *corev1.PersistentVolumeClaim)

	dirty []apiserver.Key
	users map[apiserver.Key]int
}

// Waits reports whether there is a claim to look at.
func (c *Claims) Waits() bool { return len(c.dirty) > 0 }

// Load adds a pod that is there from the beginning, as a user of its claims.
func (c *Claims) Load(pod *corev1.Pod) { c.count(pod, 1) }

// Add adds a claim to look at.
func (c *Claims) Add(claim apiserver.Key) { c.dirty = append(c.dirty, claim) }

// Observe takes notice of a write.
func (c *Claims) Observe(e *apiserver.Entry) {
	switch e.Key.Kind {
	case apiserver.Claims:
		c.Add(e.Key)
	case apiserver.Pods:
		was, _ := e.Old.(*corev1.Pod)
		is, _ := e.New.(*corev1.Pod)
		c.count(was, -1)
		c.count(is, 1)
		if is == nil || apiserver.HasEnded(is) {
			c.dirty = append(c.dirty, apiserver.ClaimsOf(cmp.Or(is, was))...)
		}
	default:
	}
}

// count counts a pod that has a node and has not ended as a user of its claims.
func (c *Claims) count(pod *corev1.Pod, n int) {
	if pod == nil || pod.Spec.NodeName == "" || apiserver.HasEnded(pod) {
		return
	}
	if c.users == nil {
		c.users = map[apiserver.Key]int{}
	}
	for _, key := range apiserver.ClaimsOf(pod) {
		c.users[key] += n
	}
}

// Step binds one claim, lets its volume be what it asks for, or removes its finalizer once no pod uses it.
func (c *Claims) Step() error {
	key := c.dirty[0]
	c.dirty = c.dirty[1:]
	claim, ok := c.Store.Get(key).(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	claim = apiserver.Clone(claim)
	write := apiserver.Write{Actor: ClaimsName}
	switch {
	case claim.DeletionTimestamp != nil:
		if c.users[key] > 0 || !slices.Contains(claim.Finalizers, apiserver.ClaimProtection) {
			return nil
		}
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == apiserver.ClaimProtection })
	case claim.Spec.VolumeName == "":
		claim.Spec.VolumeName = "pv-" + string(claim.UID)
	default:
		write.Subresource = "status"
		before := claim.Status.DeepCopy()
		if carryOut(claim); c.Driver != nil {
			c.Driver(before, claim)
		}
	}
	_, err := c.Store.Update(write, claim)
	return err
}

// carryOut brings the status of a claim that has a volume to what the claim asks for.
func carryOut(claim *corev1.PersistentVolumeClaim) {
	size := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || size.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0 {
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
	}
	if asked := claim.Spec.VolumeAttributesClassName; asked != nil && *asked != "" {
		claim.Status.CurrentVolumeAttributesClassName = asked
	}
	claim.Status.ModifyVolumeStatus, claim.Status.Conditions = nil, nil
}

// MissingClaim returns the scheduler's message if a pod cannot get one of its claims; empty if it can get all.
func MissingClaim(store *apiserver.Store, pod *corev1.Pod) string {
	for _, key := range apiserver.ClaimsOf(pod) {
		switch claim := store.Get(key); {
		case claim == nil:
			return fmt.Sprintf("persistentvolumeclaim %q not found.", key.Name)
		case claim.GetDeletionTimestamp() != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted.", key.Name)
		}
	}
	return ""
}
