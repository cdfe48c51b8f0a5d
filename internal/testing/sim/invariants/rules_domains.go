// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// domains judges which failure domains a write disturbs.
type domains struct{ *verdict }

// oneDomainAtATime checks that no available pod is moved or replaced while a pod of another failure domain is unavailable, as
// far as the manager knows.
func oneDomainAtATime(v *verdict) string {
	key := domainKey(v.set)
	if key == "" || v.set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy {
		return ""
	}
	pod := domains{v}.disturbed()
	if pod == nil {
		return ""
	}
	for _, other := range v.pods {
		home, moved := v.checker.places.home(other)
		switch {
		case !domains{v}.lacks(other), moved && home == "":
			continue
		case !moved:
			home = domainOf(other, key)
		}
		if home != domainOf(pod, key) {
			return fmt.Sprintf("a pod of domain %s is disturbed while %s of domain %s is unavailable", domainOf(pod, key), v.world.Name(other), home)
		}
	}
	if home := v.checker.places.awaits(v, pod); home != "" {
		return fmt.Sprintf("a pod of domain %s is disturbed while one of domain %s is missing", domainOf(pod, key), home)
	}
	return ""
}

// disturbed returns the available pod that a write takes out of service for another reason than scaling down; nil if it takes
// none.
func (v domains) disturbed() *corev1.Pod {
	pod := v.pod()
	if pod == nil || !v.isAvailable(pod) || restarts(pod) || preparing(pod) {
		return nil
	}
	u, patched := v.update()
	withdraws := patched && (!u.sameImages() || IsUpdating(u.after) && !IsUpdating(u.before) || preparing(u.after) && !preparing(u.before))
	if !withdraws && !v.deletesPod() || v.outside(pod) || isSurge(pod) {
		return nil
	}
	old := v.world.Version(pod) != v.world.VersionOf(&v.set.Spec.Template)
	if v.checker.outline.active > v.world.Limits(v.set).Replicas && (!old || v.specified(pod)) {
		return nil // it may be surplus
	}
	return pod
}

// preparing reports whether a pod waits for a lifecycle hook. The set does not count on it then.
func preparing(pod *corev1.Pod) bool {
	state := pod.Labels[v1beta1.LifecycleStateLabel]
	return state != "" && state != string(v1beta1.LifecycleNormal)
}

// lacks reports whether a pod of the set is unavailable and holds other domains. Pods without a node are in no domain, unless they
// take the place of others. Pods that are added, and surge that starts, are not needed yet, also if the same plan deletes them. A
// terminating pod is not missed once there are enough others.
func (v domains) lacks(pod *corev1.Pod) bool {
	_, moved := v.checker.places.home(pod)
	known, ok := v.view.Cached(apiserver.KeyOf(pod)).(*corev1.Pod)
	unplaced := pod.Spec.NodeName == "" || ok && known.Spec.NodeName == "" // the answer to a write may show more, after the plan was made
	switch {
	case unplaced && !moved, v.checker.places.adds(pod) && (!isGoing(pod) || v.checker.outline.deletes[apiserver.KeyOf(pod)]), v.outside(pod), v.isAvailable(pod), pod.Labels[v1beta1.SurgeLabel] == "true":
		return false
	case pod.DeletionTimestamp != nil:
		return v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity || v.count(isGoing) <= int(*v.set.Spec.Replicas)-v.count(v.isAvailable)
	default:
		return v.checker.outline.active <= int(*v.set.Spec.Replicas)
	}
}

// isGoing reports whether a pod is terminating.
func isGoing(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// domainOf returns the failure domain of a pod: the value of a label, or the pod itself.
func domainOf(pod *corev1.Pod, key string) string {
	if value, ok := pod.Labels[key]; ok {
		return value
	}
	return "of " + pod.Name
}
