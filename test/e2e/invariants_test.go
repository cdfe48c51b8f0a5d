// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
)

// mark is a place in the record.
type mark int

// mark returns the place of the last change of a pod in the record.
func (f *fixture) mark() mark {
	return read(f.record, func() mark { return mark(len(f.record.pods.changes)) })
}

// replay calls look with the pods that a set controlled at each moment from the mark on: once as they were at the mark, and
// then after every change of any pod. In the middle of a list there is no moment.
func (f *fixture) replay(set *v1beta1.RollSet, from mark, look func(moment string, pods []*corev1.Pod)) {
	GinkgoHelper()
	changes := read(f.record, func() []change[*corev1.Pod] { return slices.Clone(f.record.pods.changes) })
	pods := map[types.UID]*corev1.Pod{}
	for i, c := range changes {
		if c.gone || !metav1.IsControlledBy(c.object, set) {
			delete(pods, c.object.UID)
		} else {
			pods[c.object.UID] = c.object
		}
		if i+1 >= int(from) && !c.listing {
			look(fmt.Sprintf("%s, after change %d, of pod %s", c.at.Format("15:04:05.000"), i, c.object.Name), slices.Collect(maps.Values(pods)))
		}
	}
}

// expectLiveAtMost fails the spec if at any moment since the mark the set had more than n pods that were not terminating.
func (f *fixture) expectLiveAtMost(set *v1beta1.RollSet, from mark, n int) {
	GinkgoHelper()
	f.replay(set, from, func(moment string, pods []*corev1.Pod) {
		if live := count(pods, isLive); live > n {
			Fail(fmt.Sprintf("%d pods of %s at %s, at most %d allowed:\n%s", live, set.Name, moment, n, describe(pods)))
		}
	})
}

// expectAvailableAtLeast fails the spec if at any moment since the mark fewer than n pods of the set were ready and not
// terminating. It is only for sets without minReadySeconds whose pods no other client disrupts.
func (f *fixture) expectAvailableAtLeast(set *v1beta1.RollSet, from mark, n int) {
	GinkgoHelper()
	f.replay(set, from, func(moment string, pods []*corev1.Pod) {
		if available := count(pods, isAvailable); available < n {
			Fail(fmt.Sprintf("%d pods of %s available at %s, at least %d wanted:\n%s", available, set.Name, moment, n, describe(pods)))
		}
	})
}

// expectNoPodLost fails the spec if any of the pods has been deleted, or replaced, since it was read.
func (f *fixture) expectNoPodLost(pods []*corev1.Pod) {
	GinkgoHelper()
	for _, pod := range pods {
		now := f.pod(pod.Name)
		if now == nil || now.UID != pod.UID || !isLive(now) {
			Fail(fmt.Sprintf("pod %s (%s) has been deleted", pod.Name, pod.UID))
		}
	}
}

// expectUniqueIdentities fails the spec if two pods of one set ever had the same identity at the same time. Pods of Random
// sets have it in a label, those of Ordinal sets in their name, which the API server keeps unique.
func (f *fixture) expectUniqueIdentities() {
	GinkgoHelper()
	sets := read(f.record, func() []*v1beta1.RollSet {
		return sorted(f.record.sets.now, func(*v1beta1.RollSet) bool { return true })
	})
	for _, set := range sets {
		f.replay(set, 0, func(moment string, pods []*corev1.Pod) {
			owner := map[string]string{}
			for _, pod := range pods {
				id, ok := pod.Labels[v1beta1.InstanceIDLabel]
				if other, taken := owner[id]; ok && taken {
					Fail(fmt.Sprintf("pods %s and %s of %s share the identity %s at %s", pod.Name, other, set.Name, id, moment))
				}
				owner[id] = pod.Name
			}
		})
	}
}

// created and deleted count pods of a set since the mark: the first sight of each, and the first sight of it as terminating
// or gone.
func (f *fixture) created(set *v1beta1.RollSet, from mark) int { return f.tally(set, from).created }

func (f *fixture) deleted(set *v1beta1.RollSet, from mark) int { return f.tally(set, from).deleted }

type tally struct{ created, deleted int }

func (f *fixture) tally(set *v1beta1.RollSet, from mark) (t tally) {
	changes := read(f.record, func() []change[*corev1.Pod] { return slices.Clone(f.record.pods.changes) })
	seen, ended := map[types.UID]bool{}, map[types.UID]bool{}
	for i, c := range changes {
		if !metav1.IsControlledBy(c.object, set) {
			continue
		}
		before := tally{len(seen), len(ended)}
		seen[c.object.UID] = true
		if c.gone || !isLive(c.object) {
			ended[c.object.UID] = true
		}
		if i >= int(from) {
			t.created += len(seen) - before.created
			t.deleted += len(ended) - before.deleted
		}
	}
	return t
}

func count(pods []*corev1.Pod, is func(*corev1.Pod) bool) (n int) {
	for _, pod := range pods {
		if is(pod) {
			n++
		}
	}
	return n
}

func isLive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil }

func isReady(pod *corev1.Pod) bool { return !readySince(pod).IsZero() }

// readySince returns when a pod became ready, as reported by its kubelet; zero if it is not.
func readySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func isAvailable(pod *corev1.Pod) bool { return isLive(pod) && isReady(pod) }

// at matches pods of a revision.
func at(revision string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return isLive(pod) && pod.Labels[v1beta1.RevisionLabel] == revision }
}
