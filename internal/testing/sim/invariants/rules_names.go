// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// namesOnce checks that no pod of a set with random names gets the name of an earlier pod, unless the pod takes over
// its claims. A manager knows the names that its caches have shown as those of pods of the set since it started, and those that
// the status counts. It cannot know pods that were created, or adopted, and deleted before either showed them.
func namesOnce(v *verdict) string {
	if !v.createsPod() || v.set == nil || v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity || v.hadClaims() {
		return ""
	}
	if set := v.world.Set(); set == nil || set.UID != v.set.UID || set.DeletionTimestamp != nil {
		return "" // the set is gone or goes, and the garbage collector takes its pods
	}
	known := v.checker.reconcile.View.HasShown(v.Key, v.set.UID) || v.place(v.Key.Name) < int(v.set.Status.IssuedIDs)
	if known && v.hadName() {
		return "a pod of the set had that name before"
	}
	return ""
}

// hadClaims reports whether the manager knows of claims for a pod, mounted or not.
func (v *verdict) hadClaims() bool {
	for claim := range v.checker.reconcile.View.Cache(apiserver.Claims) {
		if strings.HasSuffix(claim.GetName(), "-"+v.Key.Name) {
			return true
		}
	}
	return len(ClaimsOf(v.New)) > 0
}

// hadName reports whether the set had a pod of that name before.
func (v *verdict) hadName() bool {
	for e := range v.world.Store.History(apiserver.Pods) {
		if e.Key == v.Key && e.Gone() && OwnerOf(e.Old) == v.set.UID {
			return true
		}
	}
	return false
}

// maxAhead is more ids than a set gives out in a history. An id further ahead is one of another set's sequence: its claims were left
// by an earlier set of the same name.
const maxAhead = 2048

// countsNames checks that a status counts the id of every pod that its manager knows.
func countsNames(v *verdict) string {
	set, ok := v.New.(*v1beta1.RollSet)
	if !ok || v.set == nil || set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		return ""
	}
	old := apiserver.MustBe[*v1beta1.RollSet](v.Old).Status.IssuedIDs
	if set.Status.IssuedIDs < old {
		return fmt.Sprintf("%d ids were issued, and now %d", old, set.Status.IssuedIDs)
	}
	for key, pod := range v.pods {
		_, made := v.checker.creates.made[creation{pod.UID, set.UID}]
		ahead := v.place(key.Name) - int(set.Status.IssuedIDs)
		if made && ahead >= 0 && ahead < maxAhead && v.shows(pod) {
			return fmt.Sprintf("%d ids are counted, and %s has the one in place %d", set.Status.IssuedIDs, v.world.Name(pod), v.place(key.Name))
		}
	}
	return ""
}

// shows reports whether the manager's cache shows a pod as the set's own.
func (v *verdict) shows(pod client.Object) bool {
	shown, ok := v.checker.reconcile.View.Cached(apiserver.KeyOf(pod)).(*corev1.Pod)
	return ok && shown.UID == pod.GetUID() && OwnerOf(shown) == v.set.UID
}

// place returns the position of a name in the sequence of the set.
func (v *verdict) place(name string) int {
	return identity.NewSequence(v.set.UID).PlaceOf(strings.TrimPrefix(name, v.set.Name+"-"))
}
