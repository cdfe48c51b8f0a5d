// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// retry lets the scheduler look again at pods that found no node.
func (c *cluster) retry(hopeful func(*corev1.Pod) bool) {
	c.refused = slices.DeleteFunc(c.refused, func(key apiserver.Key) bool {
		pod, ok := c.store.Get(key).(*corev1.Pod)
		if ok && hopeful(pod) {
			c.unbound = append(c.unbound, key)
		}
		return !ok || hopeful(pod)
	})
}

// schedule binds the pod that has waited longest to the node with the fewest pods.
func (c *cluster) schedule() error {
	key := c.unbound[0]
	c.unbound = c.unbound[1:]
	pod, ok := c.store.Get(key).(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return nil
	}
	pod = pod.DeepCopy()
	nodes := c.nodesFor(pod)
	if why := cmp.Or(c.missingClaim(pod), c.Refuses(pod), c.noneOf(nodes)); why != "" {
		c.refused = append(c.refused, key)
		setCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: why, LastTransitionTime: metav1.NewTime(c.clock.Now()),
		})
		_, err := c.store.Update(apiserver.Write{Actor: schedulerActor, Subresource: "status"}, pod)
		return err
	}
	pod.Spec.NodeName = slices.MinFunc(nodes, func(a, b string) int { return cmp.Compare(c.load[a], c.load[b]) })
	for key, value := range c.Labels[pod.Spec.NodeName] {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	_, err := c.store.Update(apiserver.Write{Actor: schedulerActor, Subresource: "binding"}, pod)
	return err
}

// nodesFor returns the nodes that a pod tolerates. A node whose name alone is known takes every pod.
func (c *cluster) nodesFor(pod *corev1.Pod) []string {
	var names []string
	for _, name := range c.Nodes {
		if node, ok := c.store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: name}).(*corev1.Node); !ok || podstate.Tolerates(&pod.Spec, node) {
			names = append(names, name)
		}
	}
	return names
}

// noneOf returns the scheduler's message if no node is left; empty if one is.
func (c *cluster) noneOf(nodes []string) string {
	if len(nodes) > 0 {
		return ""
	}
	return fmt.Sprintf("0/%d nodes are available: none stays and takes new pods.", len(c.Nodes))
}

// missingClaim returns which of its claims a pod cannot get; empty if it can get all.
func (c *cluster) missingClaim(pod *corev1.Pod) string {
	for _, key := range claimsOf(pod) {
		switch claim := c.store.Get(key); {
		case claim == nil:
			return fmt.Sprintf("persistentvolumeclaim %q not found.", key.Name)
		case claim.GetDeletionTimestamp() != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted.", key.Name)
		}
	}
	return ""
}

// keepClaim binds one claim, expands its volume, or removes its finalizer once no pod uses it.
func (c *cluster) keepClaim() error {
	key := c.dirty[0]
	c.dirty = c.dirty[1:]
	claim, ok := c.store.Get(key).(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	claim = claim.DeepCopy()
	w := apiserver.Write{Actor: claimActor}
	switch {
	case claim.DeletionTimestamp != nil:
		if c.users[key] > 0 || !slices.Contains(claim.Finalizers, claimProtection) {
			return nil
		}
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == claimProtection })
	case claim.Spec.VolumeName == "":
		claim.Spec.VolumeName = "pv-" + string(claim.UID)
	default:
		apiserver.CarryOut(claim)
		w.Subresource = "status"
	}
	_, err := c.store.Update(w, claim)
	return err
}
