// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// obstacle is something in the cluster that may keep a set from its wanted state. words are those by which a user knows it, each
// enough by itself; there are none for what no status can tell.
type obstacle struct {
	what  string
	words []string
}

func takenName() obstacle {
	return obstacle{"a taken name", []string{"the name is taken", "a taken name", "already exists"}}
}

// obstacles returns what may keep the set from its wanted state now.
func (j judge) obstacles() (all []obstacle) {
	add := func(is bool, what string, words ...string) {
		if is {
			all = append(all, obstacle{what, words})
		}
	}
	s := j.scheduler
	add(s.cordoned || len(s.takers(nil)) == 0, "no node takes pods", "unschedulable")
	add(len(s.down) > 0, "a zone is down") // a pod on a node that is down says what its kubelet said last
	add(j.Store.MaxPods >= 0 || j.Store.MaxCPU != nil, "a quota", "exceeded quota", "a full quota")
	add(len(j.Store.Admission) > 0, "a policy for all", "is forbidden", "accepted the write")
	for _, p := range j.refusals.policies {
		add(true, "refuse "+p.verb+" "+p.object+" "+p.answer, p.words()...)
	}
	if j.occupied {
		all = append(all, takenName())
	}
	return all
}

// isStranger reports whether a pod has the name of one of the set, and is none.
func (j judge) isStranger(pod *corev1.Pod) bool {
	set := j.Set()
	return set != nil && invariants.OwnerOf(pod) != set.UID && strings.HasPrefix(pod.Name, SetName+"-")
}

// words returns those of the API server that a refused manager reads. It tries again after a conflict, and does not tell users.
func (p policy) words() []string {
	switch p.answer {
	case "conflict":
		return nil
	case "quota":
		return []string{"exceeded quota"}
	case "rights":
		return []string{"cannot"}
	case "hang":
		return []string{"deadline exceeded"}
	case "webhook":
		return []string{"failed calling webhook"}
	default:
		return []string{"denied the request"}
	}
}

// checkNamed checks that the status of a settled set says that it lacks something, and what is in the way: one of the obstacles, if
// nothing else is.
func (j judge) checkNamed() error {
	set := j.Set()
	if set == nil || set.DeletionTimestamp != nil || j.untold(set) || j.checker.InConflict() {
		return nil
	}
	lacks := j.Lacks(set)
	if lacks == nil {
		return nil
	}
	ready := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil || ready.Status == "True" {
		return fmt.Errorf("condition Ready says nothing of this: %w", lacks)
	}
	if ready.Reason == v1beta1.ReasonInvalidSpec || j.hasOtherReasons(set) {
		return nil
	}
	obstacles := j.obstacles()
	if slices.ContainsFunc(j.Pods(), j.isStranger) { // one that the set has released may be in its way
		obstacles = append(obstacles, takenName())
	}
	words, what := append(j.checker.Unanswered(), "sim: "), []string(nil) // the last try may have met a fault of chance, and not the obstacle
	for _, o := range obstacles {
		if len(o.words) == 0 {
			return nil
		}
		words, what = append(words, o.words...), append(what, o.what)
	}
	if len(what) == 0 {
		return fmt.Errorf("nothing is in the way, and all the same: %w", lacks)
	}
	for i := range set.Status.Conditions {
		text := set.Status.Conditions[i].Message
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) }) {
			return nil
		}
	}
	return fmt.Errorf("no condition names what is in the way (%s); Ready: %s", strings.Join(what, ", "), ready.Message)
}

// heldAfter is how long after a change a set has done with a bad template what it can do.
const heldAfter = 3 * time.Minute

// checkHeld checks what a bad template leaves of the set, if nothing else keeps that from anything, and nothing happens until a time.
func (j judge) checkHeld(until time.Time) error {
	set := j.Set()
	if set == nil || set.DeletionTimestamp != nil || until.Sub(j.lastWrite(j.acted)) < heldAfter || !neverAvailable(&set.Spec.Template) ||
		len(j.obstacles()) > 0 || j.untold(set) || j.checker.InConflict() {
		return nil
	}
	current := j.TemplateOf(set.Status.CurrentRevision)
	own, _ := j.OwnPods(set)
	if current == nil || neverAvailable(current) || isMember(&corev1.Pod{Spec: current.Spec}) || meta.IsStatusConditionTrue(set.Status.Conditions, v1beta1.ConditionReplicaFailure) ||
		slices.ContainsFunc(own, func(pod *corev1.Pod) bool { return j.kubelets.isLost(pod.UID) }) {
		return nil
	}
	return j.CheckHeld(set)
}

// untold reports whether no manager can write the status or what is proven, or one whose clock differs may take pods for available.
func (j judge) untold(set *v1beta1.RollSet) bool {
	if slices.ContainsFunc(j.Managers, func(m *Manager) bool { return m.Skew != 0 }) {
		return true
	}
	status := apiserver.Write{Verb: apiserver.Patch, Key: apiserver.KeyOf(set), Subresource: "status"}
	proof := apiserver.Write{Verb: apiserver.Patch, Key: apiserver.Key{Kind: apiserver.Revisions, Namespace: set.Namespace, Name: set.Status.CurrentRevision}}
	return slices.ContainsFunc(j.refusals.policies, func(p policy) bool { return p.refuses(status) || p.refuses(proof) })
}

// hasOtherReasons reports whether the set may lack something although nothing in the cluster is in its way.
func (j judge) hasOtherReasons(set *v1beta1.RollSet) bool {
	own, _ := j.OwnPods(set)
	leaves := func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || j.kubelets.isLost(pod.UID) }
	failure := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionReplicaFailure)
	return !j.isHopeful(set) || set.Spec.Lifecycle != nil || set.Status.Rollout != nil ||
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy == v1beta1.InPlaceOnlyPod ||
		failure != nil && failure.Reason == v1beta1.ReasonClaimConflict ||
		slices.ContainsFunc(own, leaves)
}
