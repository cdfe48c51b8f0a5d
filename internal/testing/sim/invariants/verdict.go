// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// verdict is one write together with what its manager could know.
type verdict struct {
	*apiserver.Entry
	knownSet

	world   *Cluster
	checker *Checker
	// view holds the caches of the manager.
	view *apiserver.View
	// now is the time on the manager's clock.
	now time.Time
	// pods holds the set's pods as the manager knew them before the write.
	pods map[apiserver.Key]*corev1.Pod
}

// knownSet is a set as a manager sees it, and what that says of pods.
type knownSet struct {
	// set is nil if the manager sees none.
	set *v1beta1.RollSet
	// selector is the set's selector; nil until a pod is held against it.
	selector labels.Selector
	// ordinals are those that the set uses; nil until they are asked for.
	ordinals []int
}

// newVerdict returns a write in the running reconcile, as if the set had no pods.
func newVerdict(c *Checker, e *apiserver.Entry) *verdict {
	return &verdict{
		Entry: e, knownSet: knownSet{set: c.reconcile.set()}, world: c.world, checker: c, view: c.reconcile.View, now: c.reconcile.Clock.Now(),
		pods: make(map[apiserver.Key]*corev1.Pod),
	}
}

// verdictOn returns a write together with what its manager could know before it.
func (c *Checker) verdictOn(e *apiserver.Entry) *verdict {
	sent := *e
	sent.New = asSent(e) // a manager answers for that
	v := newVerdict(c, &sent)
	if v.set == nil {
		return v
	}
	for pod := range v.view.Cache(apiserver.Pods) {
		v.know(apiserver.KeyOf(pod), pod)
	}
	for own := range v.view.Unseen(apiserver.Pods) {
		if own.Version >= e.Version {
			break
		}
		since, unanswered := c.unanswered[own.Version]
		doubtful := unanswered && e.At.Sub(since) >= doubtTimeout && !v.mayGo(own)
		if own.Actor == e.Actor && own.Version > c.reconcile.Born && !doubtful {
			v.know(own.Key, v.planned(own))
		}
	}
	return v
}

// planned returns what the plan knew of the object of an earlier write of the same manager. The answer may show that another manager
// has deleted it.
func (v *verdict) planned(own *apiserver.Entry) client.Object {
	obj := asSent(own)
	pod, isPod := obj.(*corev1.Pod)
	known, cached := v.view.Cached(own.Key).(*corev1.Pod)
	if !isPod || !cached || own.Verb == apiserver.Delete || pod.DeletionTimestamp == nil || known.UID != pod.UID || known.DeletionTimestamp != nil {
		return obj
	}
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = nil
	return pod
}

// asSent returns the object of a write as the manager sent it. What admission made of it may be known only once all writes of a plan are
// on their way.
func asSent(e *apiserver.Entry) client.Object {
	if e.Sent != nil {
		return e.Sent
	}
	return e.New
}

// mayGo reports whether another write of the manager deleted a pod. As long as the manager does not know, it may try again, but no
// other pod may go in the place of that one.
func (v *verdict) mayGo(own *apiserver.Entry) bool {
	return own.Key.Kind == apiserver.Pods && own.Verb == apiserver.Delete && own.Key != v.Key
}

// know records the known state of a pod if it is the set's.
func (v *verdict) know(key apiserver.Key, obj client.Object) {
	delete(v.pods, key)
	if pod, ok := obj.(*corev1.Pod); ok && OwnerOf(pod) == v.set.UID && v.selects(pod) {
		v.pods[key] = pod
	}
}

// pod returns the pod before the write as the manager knew it; nil if the manager did not know it, or the write is not
// to a pod.
func (v *verdict) pod() *corev1.Pod { return v.pods[v.Key] }

// deletesPod reports whether the write deletes a pod of the set.
func (v *verdict) deletesPod() bool {
	return v.Key.Kind == apiserver.Pods && v.Verb == apiserver.Delete
}

// createsPod reports whether the write creates a pod.
func (v *verdict) createsPod() bool {
	return v.Key.Kind == apiserver.Pods && v.Verb == apiserver.Create
}

// count counts the known pods before the write that fulfill a condition.
func (v *verdict) count(is func(*corev1.Pod) bool) int {
	n := 0
	for _, pod := range v.pods {
		if is(pod) {
			n++
		}
	}
	return n
}

// isAvailable reports whether a pod is available. A pod that its hook preNormal holds back is not, nor is one whose
// gate is closed, nor one that is prepared for its deletion or update.
func (v *verdict) isAvailable(pod *corev1.Pod) bool {
	return IsAvailable(pod, v.set.Spec.MinReadySeconds, v.now) && !IsUpdating(pod) && !v.heldBack(pod) && !v.prepared(pod) && !v.changed(pod)
}

// prepares reports whether the write brings a pod to a state in which it counts as prepared.
func (v *verdict) prepares(state v1beta1.LifecycleState) bool {
	u, ok := v.update()
	return ok && stateOf(u.after) == state && stateOf(u.before) != state && v.prepared(u.after)
}

// cached returns the pods of the set in the manager's cache, whatever the plan does to them.
func (v *verdict) cached() (pods []*corev1.Pod) {
	for obj := range v.view.Cache(apiserver.Pods) {
		if pod := apiserver.MustBe[*corev1.Pod](obj); OwnerOf(pod) == v.set.UID && v.selects(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// selects reports whether the set's selector matches a pod. A pod that does not match is to be released, and does not
// count even if that is refused.
func (k *knownSet) selects(pod *corev1.Pod) bool {
	if k.selector == nil {
		var err error
		if k.selector, err = metav1.LabelSelectorAsSelector(k.set.Spec.Selector); err != nil {
			k.selector = labels.Nothing()
		}
	}
	return k.selector.Matches(labels.Set(pod.Labels))
}

// changed reports whether a pod is in a state of the hook inPlaceUpdate that follows its update. Such a pod is not back in service.
func (k *knownSet) changed(pod *corev1.Pod) bool {
	state, hooks := stateOf(pod), k.set.Spec.Lifecycle
	return (state == v1beta1.LifecycleUpdating || state == v1beta1.LifecycleUpdated) && hooks != nil && hooks.InPlaceUpdate != nil
}

// prepared reports whether a pod is prepared for its deletion or update, under a hook of the set. It counts as unavailable from
// then on, so later edits of the budget do not concern it.
func (k *knownSet) prepared(pod *corev1.Pod) bool {
	switch hooks := k.set.Spec.Lifecycle; stateOf(pod) {
	case v1beta1.LifecyclePreparingDelete:
		return hooks != nil && hooks.PreDelete != nil
	case v1beta1.LifecyclePreparingUpdate:
		return hooks != nil && hooks.InPlaceUpdate != nil
	default:
		return false
	}
}

// heldBack reports whether the hook preNormal keeps a pod from being available. Another program decides when that ends, so such
// a pod counts as broken.
func (k *knownSet) heldBack(pod *corev1.Pod) bool {
	hooks := k.set.Spec.Lifecycle
	return hooks != nil && hooks.PreNormal != nil &&
		pod.Labels[v1beta1.LifecycleStateLabel] == string(v1beta1.LifecyclePreparingNormal)
}

// outside reports whether a pod's ordinal is not in use, so that scaling down deletes it even if other pods are broken.
func (k *knownSet) outside(pod *corev1.Pod) bool {
	if k.set.Spec.PodIdentity != v1beta1.OrdinalIdentity {
		return false
	}
	_, used := slices.BinarySearch(k.inUse(), k.ordinalByName(pod))
	return !used
}

// inUse returns the ordinals that the set uses, in order: from the start, without those that are reserved.
func (k *knownSet) inUse() []int {
	if k.ordinals != nil {
		return k.ordinals
	}
	next := 0
	if o := k.set.Spec.Ordinals; o != nil {
		next = int(o.Start)
	}
	k.ordinals = make([]int, 0, *k.set.Spec.Replicas)
	for ; len(k.ordinals) < int(*k.set.Spec.Replicas) && next <= math.MaxInt32; next++ {
		if !k.reserved(next) {
			k.ordinals = append(k.ordinals, next)
		}
	}
	return k.ordinals
}

// reserved reports whether the set reserves an ordinal.
func (k *knownSet) reserved(ordinal int) bool {
	return slices.ContainsFunc(k.set.Spec.ReserveOrdinals, func(r intstr.IntOrString) bool { return reserves(r, ordinal) })
}

// reserves reports whether an entry of reserveOrdinals, a number or a range such as "3-5", has an ordinal.
func reserves(entry intstr.IntOrString, ordinal int) bool {
	first, last, isRange := strings.Cut(entry.String(), "-")
	if !isRange {
		last = first
	}
	return numberOrNone(first) <= ordinal && ordinal <= numberOrNone(last)
}

// ordinalByName returns the ordinal in a pod's name; -1 if there is none. An adopted pod has no label for it.
func (k *knownSet) ordinalByName(pod *corev1.Pod) int {
	return numberOrNone(strings.TrimPrefix(pod.Name, k.set.Name+"-"))
}

// below reports whether a pod has an ordinal below those in use, where there is no place for surge.
func (k *knownSet) below(pod *corev1.Pod) bool {
	used := k.inUse()
	return len(used) > 0 && k.ordinalByName(pod) < used[0]
}

// belowPartition reports whether a pod has an ordinal below the partition, so that it goes back to the current revision.
func (k *knownSet) belowPartition(pod *corev1.Pod, l Limits) bool {
	return k.set.Spec.PodIdentity == v1beta1.OrdinalIdentity && slices.Index(k.inUse(), k.ordinalByName(pod)) < l.Partition && !k.outside(pod)
}

// named reports whether a user asked to delete the pod.
func (k *knownSet) named(pod *corev1.Pod) bool {
	if value, ok := pod.Labels[v1beta1.SpecifiedDeleteLabel]; ok && value != "false" {
		return true
	}
	return pod.Labels[v1beta1.ReplacedLabel] != "true" && k.set.Spec.ScaleStrategy != nil && slices.Contains(k.set.Spec.ScaleStrategy.PodsToDelete, pod.Name)
}

// hasIdentity reports whether the successor of a pod has its name: because of an ordinal, or because of claims.
func (k *knownSet) hasIdentity(pod *corev1.Pod) bool {
	return k.set.Spec.PodIdentity == v1beta1.OrdinalIdentity || len(ClaimsOf(pod)) > 0
}
