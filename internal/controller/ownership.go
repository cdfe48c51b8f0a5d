// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/podcontrol"
)

// claimPods adopts the pods that belong to the set and have no controller, and releases those that it controls and that
// do not belong to it any more. It says whether anything was written; then the cache is behind.
func (r *Reconciler) claimPods(ctx context.Context, v *view) (wrote bool, err error) {
	orphans, err := r.orphans(ctx, v)
	if err != nil {
		return false, err
	}
	var changes []ownerChange
	for i := range v.replicas {
		if r := &v.replicas[i]; r.Pod != nil && !r.Selected && !r.Terminating {
			changes = append(changes, ownerChange{pod: r.Pod, verb: "release", owners: withoutOwner(r.Pod, v.set.UID)})
		}
	}
	for _, pod := range orphans {
		owners := append(slices.Clone(pod.OwnerReferences), claims.Owner(v.set.Name, v.set.UID))
		changes = append(changes, ownerChange{pod: pod, verb: "adopt", owners: owners})
	}
	wrote = len(changes) > 0
	changes = slices.DeleteFunc(changes, func(c ownerChange) bool { return v.memory.contested[c.pod.UID].left(c.pod, v.now) > 0 })
	if slices.ContainsFunc(changes, func(c ownerChange) bool { return c.verb == "adopt" }) {
		if err := r.checkStays(ctx, v.set); err != nil {
			return false, fmt.Errorf("adopt pods: %w", err)
		}
	}
	errs := make([]error, len(changes))
	r.Runner(len(changes), func(i int) { errs[i] = r.changeOwner(ctx, v.set, changes[i]) })
	for i, err := range errs {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // an event is on its way
			v.memory.contest(changes[i].pod, v.now)
			errs[i] = nil
		}
	}
	return wrote, errors.Join(errs...)
}

// contest is that a pod or a revision was not as the cache shows it, or not there.
type contest struct {
	resourceVersion string
	until           time.Time
}

// left is how long it is pointless to try again, because the cache still shows the same.
func (c contest) left(object metav1.Object, now time.Time) time.Duration {
	if c.resourceVersion != object.GetResourceVersion() {
		return 0
	}
	return max(0, c.until.Sub(now))
}

// contest notes that a pod or a revision is not as the cache shows it, and returns for how long it is left alone at most.
func (m *recollection) contest(object metav1.Object, now time.Time) time.Duration {
	maps.DeleteFunc(m.contested, func(_ types.UID, c contest) bool { return !now.Before(c.until) })
	m.contested[object.GetUID()] = contest{resourceVersion: object.GetResourceVersion(), until: now.Add(expectations.DoubtTimeout)}
	return expectations.DoubtTimeout
}

// ownerChange is a change of a pod's owners.
type ownerChange struct {
	pod    *corev1.Pod
	verb   string
	owners []metav1.OwnerReference
}

// orphans lists the pods without a controller that the set may adopt.
func (r *Reconciler) orphans(ctx context.Context, v *view) ([]*corev1.Pod, error) {
	pods, err := r.Pods(ctx, v.set.Namespace, Orphan)
	if err != nil {
		return nil, fmt.Errorf("list orphans: %w", err)
	}
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !adoptable(v, pod) }), nil
}

// adoptable says whether the set may adopt a pod without a controller: one that its selector matches and that can take
// the place of a pod of its own.
func adoptable(v *view, pod *corev1.Pod) bool {
	if podstate.Terminating(pod) || !v.selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	if v.set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		_, canonical := identity.ParseOrdinal(v.set.Name, pod.Name)
		return canonical
	}
	return !podstate.Finished(pod) // nothing but its name is left of it, and names are not scarce
}

// errSetChanged means that nothing new is to belong to a set, for it is being deleted or was replaced by a namesake.
var errSetChanged = errors.New("the set is being deleted, or was replaced by another of its name")

// checkStays looks at the set past the cache. A set that is gone must not take what it left to somebody else, and what is
// made for it the garbage collector deletes, so that it would be made again until the cache shows the deletion.
func (r *Reconciler) checkStays(ctx context.Context, set *v1alpha1.RollSet) error {
	live := &v1alpha1.RollSet{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
		return fmt.Errorf("get the set: %w", err)
	}
	if live.UID != set.UID || live.DeletionTimestamp != nil {
		return errSetChanged
	}
	return nil
}

func withoutOwner(pod *corev1.Pod, owner types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(pod.OwnerReferences), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
}

// changeOwner patches the owners of a pod, if it is still as it was seen.
func (r *Reconciler) changeOwner(ctx context.Context, set *v1alpha1.RollSet, c ownerChange) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             c.pod.UID,
		"resourceVersion": c.pod.ResourceVersion,
		"ownerReferences": c.owners,
	}})
	if err != nil {
		return fmt.Errorf("%s pod %s: %w", c.verb, c.pod.Name, err)
	}
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = c.pod.Name, c.pod.Namespace
	if err := r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("%s pod %s: %w", c.verb, c.pod.Name, err)
	}
	r.Expectations.Wrote(set.UID, podcontrol.PodKind(), pod.ResourceVersion)
	logr.FromContextOrDiscard(ctx).Info("changed owner of pod", "change", c.verb, "pod", c.pod.Name)
	return nil
}
