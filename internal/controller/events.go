// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/claims"
)

// Watch is a kind whose events lead to reconciles.
type Watch struct {
	Object  client.Object
	Handler handler.EventHandler
}

// Watches are all the kinds that matter to sets, and which set an event of each concerns. Status updates of sets come
// back as events too: they are what a reconcile waits for that finds its own last report not yet in the cache.
func (r *Reconciler) Watches() []Watch {
	return []Watch{
		{Object: &v1alpha1.RollSet{}, Handler: r.setEvents()},
		{Object: &corev1.Pod{}, Handler: r.podEvents()},
		{Object: &corev1.PersistentVolumeClaim{}, Handler: wakeUp{reconciler: r, sets: r.setsOfClaim}},
		{Object: &appsv1.ControllerRevision{}, Handler: wakeUp{reconciler: r, sets: setOfRevision}},
		{Object: &storagev1.StorageClass{}, Handler: wakeUp{reconciler: r, sets: r.setsWithClaims}},
	}
}

// setEvents reconciles a set at once when it comes or a user edits it, and forgets all about one that is gone. Its status
// is the controller's own: an update of nothing else is like an event of a pod.
func (r *Reconciler) setEvents() handler.EventHandler {
	enqueue := &handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: enqueue.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // the deletion between the two was never seen
				r.forget(e.ObjectOld)
			}
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && !edited(e.ObjectOld, e.ObjectNew) {
				r.wake(q, wakePriority, []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}})
				return
			}
			enqueue.Update(ctx, e, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			r.forget(e.Object)
		},
	}
}

// edited says whether more than the status of a set changed.
func edited(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// forget drops all that is remembered of a set that is gone.
func (r *Reconciler) forget(set client.Object) {
	r.Expectations.Forget(set.GetUID())
	r.memory.forget(set.GetUID(), client.ObjectKeyFromObject(set))
	r.attention.forget(client.ObjectKeyFromObject(set))
	r.Metrics.forget(client.ObjectKeyFromObject(set))
}

// forgetIfGone is for the end of a reconcile: what it noted of a set whose deletion was handled meanwhile would stay. If the
// cache still shows the set, its deletion is yet to be handled.
func (r *Reconciler) forgetIfGone(ctx context.Context, set *v1alpha1.RollSet) {
	now := &v1alpha1.RollSet{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(set), now, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && now.UID != set.UID {
		r.forget(set)
	}
}

// setsOfPod returns the set that controls a pod; for a pod that nobody controls, the sets that may adopt it; and for a
// pod of others, the set that waits for its name.
func (r *Reconciler) setsOfPod(ctx context.Context, pod client.Object) []reconcile.Request {
	var requests []reconcile.Request
	if set, ok := r.memory.waiter(client.ObjectKeyFromObject(pod)); ok {
		requests = append(requests, reconcile.Request{NamespacedName: set})
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return append(requests, setOfOwner(pod, owner)...)
	}
	return append(requests, r.setsSelecting(ctx, pod)...)
}

// setsSelecting returns the sets of a pod's namespace whose selectors match its labels.
func (r *Reconciler) setsSelecting(ctx context.Context, pod client.Object) []reconcile.Request {
	candidates := []string{AnyLabel}
	for k, v := range pod.GetLabels() {
		candidates = append(candidates, k+"="+v)
	}
	slices.Sort(candidates)
	var requests []reconcile.Request
	for _, candidate := range candidates {
		sets := &v1alpha1.RollSetList{}
		err := r.Client.List(ctx, sets, client.InNamespace(pod.GetNamespace()),
			client.MatchingFields{SelectorIndex: candidate}, client.UnsafeDisableDeepCopy)
		if err != nil {
			continue // only a cache without the index fails, and then the manager does not start
		}
		for i := range sets.Items {
			selector, err := metav1.LabelSelectorAsSelector(sets.Items[i].Spec.Selector)
			if err == nil && selector.Matches(labels.Set(pod.GetLabels())) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
			}
		}
	}
	return requests
}

// setsOfClaim returns the set of a claim's label; for a claim without it, the sets that its name is made for.
func (r *Reconciler) setsOfClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	_, labeled := claim.GetLabels()[v1alpha1.SetLabel]
	var requests []reconcile.Request
	for _, name := range setsOf(claim) {
		key := types.NamespacedName{Namespace: claim.GetNamespace(), Name: name}
		if labeled || r.mayUse(ctx, key, claim.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// mayUse says whether there is a set of which a claim could be one, by its name.
func (r *Reconciler) mayUse(ctx context.Context, key types.NamespacedName, claim string) bool {
	set := &v1alpha1.RollSet{}
	if err := r.Client.Get(ctx, key, set); err != nil {
		return false
	}
	_, ok := claims.IDOf(set.Name, set.Spec.VolumeClaimTemplates, claim)
	return ok
}

// setsWithClaims returns all sets that have claims: storage classes change so rarely that nobody needs to know which.
func (r *Reconciler) setsWithClaims(ctx context.Context, _ client.Object) []reconcile.Request {
	sets := &v1alpha1.RollSetList{}
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return nil // a cache that cannot list sets does not start
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		if len(sets.Items[i].Spec.VolumeClaimTemplates) > 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}

func setOfRevision(_ context.Context, revision client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOfNoCopy(revision); owner != nil {
		return setOfOwner(revision, owner)
	}
	return nil
}

// setOfOwner returns the set that a reference refers to, if it is a reference to a set.
func setOfOwner(o client.Object, owner *metav1.OwnerReference) []reconcile.Request {
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || group.Group != v1alpha1.GroupVersion.Group || owner.Kind != setKind().Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}}}
}
