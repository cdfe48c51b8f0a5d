// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Cluster reads what a store holds about one set. It shares no code with the controller, so that it does not share its
// mistakes. It names pods in the order in which they appear.
type Cluster struct {
	revisions

	// Store is its API server.
	Store *apiserver.Store
	// Misfits are the pods that admission made none of the set's when a manager created them. How many there are depends on faults.
	Misfits map[types.UID]bool

	set   apiserver.Key
	now   func() time.Time
	names map[types.UID]string // of pods with random names
	// excused is when CheckService last found a reason for a pod to be out of service.
	excused map[types.UID]time.Time
}

// NewCluster returns a reader of a store, about a set that may not exist yet.
func NewCluster(store *apiserver.Store, set apiserver.Key, now func() time.Time) *Cluster {
	return &Cluster{
		revisions: revisions{
			store: store, namespace: set.Namespace, encoded: make(map[string]string), versions: make(map[string]string),
			held: make(map[*appsv1.ControllerRevision]*corev1.PodTemplateSpec),
		},
		Store: store, Misfits: make(map[types.UID]bool), set: set, now: now, names: make(map[types.UID]string), excused: make(map[types.UID]time.Time),
	}
}

// Set returns the set; nil if it does not exist.
func (c *Cluster) Set() *v1beta1.RollSet {
	set, _ := c.Store.Get(c.set).(*v1beta1.RollSet)
	return set
}

// OwnPods returns the pods of a set, and the active ones among them.
func (c *Cluster) OwnPods(set *v1beta1.RollSet) (own, active []*corev1.Pod) {
	for _, pod := range c.Pods() {
		if OwnerOf(pod) != set.UID {
			continue
		}
		own = append(own, pod)
		if IsActive(pod) {
			active = append(active, pod)
		}
	}
	return own, active
}

// Pods returns all pods in order of creation, and pods with ordinals in the order of their ordinals.
func (c *Cluster) Pods() []*corev1.Pod {
	pods := slices.Collect(apiserver.Each[*corev1.Pod](c.Store))
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(ordinal(a), ordinal(b)), cmp.Compare(a.UID, b.UID))
	})
	return pods
}

// Mark returns the state of a pod in one character.
func (c *Cluster) Mark(pod *corev1.Pod) string {
	minReady := int32(0)
	if set := c.Set(); set != nil {
		minReady = set.Spec.MinReadySeconds
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return "x"
	case apiserver.HasEnded(pod):
		return "!"
	case IsUpdating(pod):
		return "~"
	case IsAvailable(pod, minReady, c.now()):
		return "+"
	case IsReady(pod):
		return "r"
	default:
		return "."
	}
}

// IsUpdating reports whether a pod was taken out of service by its gate. The condition has no effect on a pod without
// the gate.
func IsUpdating(pod *corev1.Pod) bool {
	return hasGate(pod) && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1beta1.InPlaceUpdateReady && c.Status == corev1.ConditionFalse
	})
}

func hasGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == v1beta1.InPlaceUpdateReady })
}

// Condition returns the state of a pod in a word.
func (c *Cluster) Condition(pod *corev1.Pod) string {
	switch c.Mark(pod) {
	case "!":
		return string(pod.Status.Phase)
	case "+":
		return "available"
	case "r":
		return "ready"
	case "~":
		return "being updated"
	case "x":
		return "terminating"
	default:
		return "not ready"
	}
}

// Name returns a pod's ordinal, or a letter if its name is random: the first such pod to appear is a.
func (c *Cluster) Name(pod *corev1.Pod) string {
	if pod.Labels[v1beta1.PodIndexLabel] != "" {
		return pod.Labels[v1beta1.PodIndexLabel]
	}
	if _, ok := c.names[pod.UID]; !ok {
		c.names[pod.UID] = Letters(len(c.names))
	}
	return c.names[pod.UID]
}

// Letters returns the n-th of a, b, … z, aa, ab, ….
func Letters(n int) string {
	text := string(rune('a' + n%26))
	if n >= 26 {
		text = Letters(n/26-1) + text
	}
	return text
}

// claimsInUse returns the names of the claims that pods mount, by UID.
func (c *Cluster) claimsInUse(pods []*corev1.Pod) map[types.UID]string {
	claims := map[types.UID]string{}
	for _, pod := range pods {
		for _, key := range ClaimsOf(pod) {
			if claim := c.Store.Get(key); claim != nil {
				claims[claim.GetUID()] = key.Name
			}
		}
	}
	return claims
}
