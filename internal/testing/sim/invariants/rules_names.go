// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// naming judges the names of new pods.
type naming struct{ *verdict }

// namesOnce checks that no pod of a set with random names gets the name of an earlier pod, unless the pod takes over
// its claims. A manager knows the names that its caches have shown as those of pods of the set since it started, and those that
// the status counts. It cannot know pods that were created, or adopted, and deleted before either showed them.
func namesOnce(v *verdict) string {
	n := naming{v}
	if !v.createsPod() || v.set == nil || v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity || n.hadClaims() {
		return ""
	}
	if set := v.world.Set(); set == nil || set.UID != v.set.UID || set.DeletionTimestamp != nil {
		return "" // the set is gone or goes, and the garbage collector takes its pods
	}
	known := v.view.HasShown(v.Key, v.set.UID) || n.place(v.Key.Name) < int(v.set.Status.IssuedIDs)
	own := func(pod client.Object) bool { return OwnerOf(pod) == v.set.UID }
	if known && slices.ContainsFunc(n.earlier(), own) {
		return "a pod of the set had that name before"
	}
	return ""
}

// hadClaims reports whether the manager knows of claims for a pod, mounted or not.
func (v naming) hadClaims() bool {
	for claim := range v.view.Cache(apiserver.Claims) {
		if strings.HasSuffix(claim.GetName(), "-"+v.Key.Name) {
			return true
		}
	}
	return len(ClaimsOf(v.New)) > 0
}

// maxAhead is more ids than a set gives out in a history. An id further ahead is one of another set's sequence: its claims were left
// by an earlier set of the same name.
const maxAhead = 2048

// countsNames checks that a status counts the id of every pod that its manager knows.
func countsNames(v *verdict) string {
	n := naming{v}
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
		ahead := n.place(key.Name) - int(set.Status.IssuedIDs)
		if made && ahead >= 0 && ahead < maxAhead && n.shows(pod) {
			return fmt.Sprintf("%d ids are counted, and %s has the one in place %d", set.Status.IssuedIDs, v.world.Name(pod), n.place(key.Name))
		}
	}
	return ""
}

// earlier returns the pods that had the name of the new one before.
func (v naming) earlier() (pods []client.Object) {
	for e := range v.world.Store.History(apiserver.Pods) {
		if e.Key == v.Key && e.Gone() {
			pods = append(pods, e.Old)
		}
	}
	return pods
}

// shows reports whether the manager's cache shows a pod as the set's own.
func (v naming) shows(pod client.Object) bool {
	shown, ok := v.view.Cached(apiserver.KeyOf(pod)).(*corev1.Pod)
	return ok && shown.UID == pod.GetUID() && OwnerOf(shown) == v.set.UID
}

// place returns the position of a name in the sequence of the set.
func (v naming) place(name string) int {
	return identity.NewSequence(v.set.UID).PlaceOf(strings.TrimPrefix(name, v.set.Name+"-"))
}

// collides reports whether the manager knows a pod, or would try its name. A restarted manager tries the names of the
// pods that it created before, even if its caches do not show them. It does not if the spec has changed, or a name that
// comes first has become free, or the cache shows an earlier pod of that name (docs/adr/0006).
func (v naming) collides(pod *corev1.Pod) bool {
	key := apiserver.KeyOf(pod)
	if known := v.pods[key]; known != nil {
		return known.UID == pod.UID
	}
	return key == v.Key || v.checker.creates.made[creation{pod.UID, v.set.UID}] == v.set.Generation && len(v.earlier()) == 0
}
