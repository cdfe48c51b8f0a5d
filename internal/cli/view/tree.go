// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// objects are a set and what belongs to it.
type objects struct {
	set       *v1beta1.RollSet
	revisions []*appsv1.ControllerRevision
	pods      []*corev1.Pod
	claims    []*corev1.PersistentVolumeClaim
}

// state is the state of a pod.
type state int

// These are the states, the best first.
const (
	available state = iota
	ready
	updating
	starting
	terminating
	ended
)

// mark returns the character for a state.
func (s state) mark() string { return [...]string{"✔", "●", "↻", "○", "⊘", "✖"}[s] }

// String returns the state in words.
func (s state) String() string {
	return [...]string{"available", "ready", "updating in place", "not ready", "terminating", "ended"}[s]
}

// leaf is a pod in a tree.
type leaf struct {
	pod    *corev1.Pod
	state  state
	why    string
	claims []*corev1.PersistentVolumeClaim
}

// branch is a revision in a tree.
type branch struct {
	name, role, images string
	number             int64
	leaves             []leaf
}

// tree is a set in the form that the command get prints.
type tree struct {
	set      *v1beta1.RollSet
	limits   snapshot.Limits
	reason   string
	message  string
	branches []branch
	// unused are the claims that no pod mounts.
	unused []*corev1.PersistentVolumeClaim
	now    time.Time
}

// grow builds the tree of a set as it is at a time.
func grow(o objects, now time.Time) *tree {
	t := &tree{set: o.set, now: now, reason: "Unobserved", message: "waiting for the controller to observe the set"}
	t.limits, _ = snapshot.ResolveLimits(&o.set.Spec)
	if c := meta.FindStatusCondition(o.set.Status.Conditions, v1beta1.ConditionReady); c != nil && o.set.Status.ObservedGeneration >= o.set.Generation {
		t.reason, t.message = c.Reason, c.Message
	}
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, c := range o.claims {
		claims[c.Name] = c
	}
	byRevision := map[string][]leaf{}
	for _, pod := range o.pods {
		name := pod.Labels[v1beta1.RevisionLabel]
		byRevision[name] = append(byRevision[name], leafOf(o.set, pod, claims, now))
	}
	t.addBranches(o, byRevision)
	t.unused = slices.SortedFunc(maps.Values(claims), func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// addBranches adds the revisions that have pods, or that the set moves to, newest first.
func (t *tree) addBranches(o objects, byRevision map[string][]leaf) {
	add := func(name string, r *appsv1.ControllerRevision) {
		b := branch{name: name, leaves: byRevision[name]}
		if r != nil {
			b.number, b.role = r.Revision, inParentheses(role(o.set, r), proven(r))
			if decoded, err := template(r); err == nil {
				b.images = images(decoded)
			}
		}
		slices.SortFunc(b.leaves, func(a, b leaf) int { return compareNames(a.pod.Name, b.pod.Name) })
		t.branches = append(t.branches, b)
		delete(byRevision, name)
	}
	for _, r := range slices.Backward(o.revisions) {
		if len(byRevision[r.Name]) > 0 || r.Name == o.set.Status.UpdateRevision {
			add(r.Name, r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byRevision)) {
		add(name, nil)
	}
}

// compareNames orders names so that web-2 comes before web-10.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// leafOf returns a pod with its state, and removes the claims that it mounts from claims.
func leafOf(set *v1beta1.RollSet, pod *corev1.Pod, claims map[string]*corev1.PersistentVolumeClaim, now time.Time) leaf {
	l := leaf{pod: pod, why: podstate.Why(pod)}
	since, isReady := podstate.ReadySince(pod)
	minReady := time.Duration(set.Spec.MinReadySeconds) * time.Second
	switch lifecycle := v1beta1.LifecycleState(pod.Labels[v1beta1.LifecycleStateLabel]); {
	case podstate.Terminating(pod):
		l.state = terminating
	case podstate.Finished(pod):
		l.state = ended
	case inplace.GateOf(pod).Closed(), lifecycle == v1beta1.LifecyclePreparingUpdate, lifecycle == v1beta1.LifecycleUpdating:
		l.state = updating
	case !isReady:
		l.state = starting
	case !podstate.Available(since, minReady, now):
		l.state, l.why = ready, fmt.Sprintf("ready for less than %v", minReady)
	default:
		l.state = available
	}
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		if claim, ok := claims[source.ClaimName]; ok {
			l.claims = append(l.claims, claim)
			delete(claims, source.ClaimName)
		}
	}
	return l
}

// counts returns how many pods are in each state, in words, such as "940 available, 10 not ready".
func counts(leaves []leaf) string {
	n := map[state]int{}
	for i := range leaves {
		n[leaves[i].state]++
	}
	var parts []string
	for s := available; s <= ended; s++ {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return strings.Join(parts, ", ")
}

// progress returns the share of the pods wanted at the update revision that is available.
func (t *tree) progress() float64 {
	wanted := t.limits.Replicas - t.limits.Partition
	if wanted <= 0 {
		return 1
	}
	return min(1, float64(t.set.Status.UpdatedAvailableReplicas)/float64(wanted))
}
