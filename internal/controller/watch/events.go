// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch turns events into reconciles: it finds the sets that an event concerns, and decides when they are reconciled.
//
// The rule: an event puts the sets that it concerns into one line, in the Order of this package. An update of a pod on which no
// decision depends concerns no set. Among equals, a set that has lost a pod comes first, then edits, new sets and all other events.
package watch

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/model/podstate"
)

// Source is a kind whose events lead to reconciles.
type Source struct {
	Object  client.Object
	Handler handler.EventHandler
}

// Router finds the sets that an event concerns, and remembers facts of events that a later look cannot show. All of it may be lost at
// any time. The zero Router is ready to use.
type Router struct {
	sightings sightings
	names     names
	budgeted  budgeted
}

// Cluster gives a Router access to the cache, the clock and the queue.
type Cluster struct {
	// Cache has the indexes of package informer.
	Cache client.Reader
	// Gone is called for each set that is gone.
	Gone func(set client.Object)
}

// events handles the events of one cluster.
type events struct {
	*Router
	Cluster
}

// Sources returns the kinds that matter to sets, with handlers that find the sets of an event. Status updates of sets are events too: a
// reconcile that does not find its last report in the cache waits for them.
func (r *Router) Sources(c Cluster) []Source {
	e := events{Router: r, Cluster: c}
	return []Source{
		{Object: &v1beta1.RollSet{}, Handler: e.ofSets()},
		{Object: &corev1.Pod{}, Handler: e.ofPods()},
		{Object: &corev1.PersistentVolumeClaim{}, Handler: wakeUp{events: e, sets: e.setsOfClaim}},
		{Object: &appsv1.ControllerRevision{}, Handler: wakeUp{events: e, sets: setOfRevision}},
		{Object: &storagev1.StorageClass{}, Handler: wakeUp{events: e, sets: e.setsWithClaims}},
	}
}

// Forget drops all entries of a deleted set.
func (r *Router) Forget(set client.Object) {
	r.names.forget(set.GetUID(), client.ObjectKeyFromObject(set))
	r.budgeted.forget(set.GetUID())
}

// ofSets reconciles a set at once when it is created or edited, and forgets it when it is deleted. The controller itself writes the
// status, so an update of the status only has the priority of an event of a pod.
func (e events) ofSets() handler.EventHandler {
	enqueue := &handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, c event.CreateEvent, q queue) {
			priority := newPriority
			if c.IsInInitialList {
				priority = handler.LowPriority
			}
			add(q, priority, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c.Object)})
		},
		UpdateFunc: func(ctx context.Context, u event.UpdateEvent, q queue) {
			if u.ObjectOld.GetUID() != u.ObjectNew.GetUID() { // the deletion between the two was never seen
				e.Gone(u.ObjectOld)
			}
			if u.ObjectOld.GetResourceVersion() != u.ObjectNew.GetResourceVersion() && !edited(u.ObjectOld, u.ObjectNew) {
				add(q, Priority, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(u.ObjectNew)})
				return
			}
			enqueue.Update(ctx, u, q)
		},
		DeleteFunc: func(_ context.Context, d event.DeleteEvent, _ queue) {
			e.Gone(d.Object)
		},
	}
}

// edited reports whether more than the status of a set changed.
func edited(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// ofPods records the Sighting that each event of a pod shows, and puts the sets that it concerns into the line. Kubelets, schedulers and
// network plugins write to pods often, and the cost of a look grows with the number of pods. So updates are ignored unless a decision or
// a message depends on them.
func (e events) ofPods() handler.EventHandler {
	return podWatch{wakeUp{events: e, sets: e.setsOfPod, changed: e.podChanged, priority: priorityOfPod}}
}

// priorityOfPod returns a higher priority for a set that may have lost a pod: the pod was deleted, terminates, or has ended.
func priorityOfPod(before, after client.Object) int {
	out := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && (podstate.Terminating(pod) || podstate.Finished(pod))
	}
	if after == nil || out(after) && !out(before) {
		return lostPriority
	}
	return Priority
}

// podChanged reports whether a decision could depend on the difference between two versions of a pod.
func (e events) podChanged(ctx context.Context, before, after client.Object) bool {
	a, isPod := before.(*corev1.Pod)
	b, isPodToo := after.(*corev1.Pod)
	return !isPod || !isPodToo || informer.Changed(a, b, func() map[string]string { return e.templateAnnotations(ctx, b) })
}

// templateAnnotations returns the annotations in the template of a pod's set; nil if the pod has no set.
func (e events) templateAnnotations(ctx context.Context, pod *corev1.Pod) map[string]string {
	key, ok := informer.SetOf(pod)
	if !ok {
		return nil
	}
	set := &v1beta1.RollSet{}
	if err := e.Cache.Get(ctx, key, set, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the event of the set itself leads to a reconcile
	}
	return set.Spec.Template.Annotations
}

// setsOfPod returns the set that controls a pod; for a pod without a controller, the sets that may adopt it; and for a
// pod of another controller, the set that waits for its name.
func (e events) setsOfPod(ctx context.Context, pod client.Object) []reconcile.Request {
	var requests []reconcile.Request
	if set, ok := e.names.waiter(client.ObjectKeyFromObject(pod)); ok {
		requests = append(requests, reconcile.Request{NamespacedName: set})
	}
	if metav1.GetControllerOfNoCopy(pod) == nil {
		return append(requests, e.setsSelecting(ctx, pod)...)
	}
	if set, ok := informer.SetOf(pod); ok {
		requests = append(requests, reconcile.Request{NamespacedName: set})
	}
	return requests
}

// setsSelecting returns the sets of a pod's namespace whose selectors match its labels.
func (e events) setsSelecting(ctx context.Context, pod client.Object) []reconcile.Request {
	candidates := []string{informer.AnyLabel}
	for k, v := range pod.GetLabels() {
		candidates = append(candidates, k+"="+v)
	}
	slices.Sort(candidates)
	var requests []reconcile.Request
	for _, candidate := range candidates {
		sets := &v1beta1.RollSetList{}
		err := e.Cache.List(ctx, sets, client.InNamespace(pod.GetNamespace()),
			client.MatchingFields{informer.SelectorIndex: candidate}, client.UnsafeDisableDeepCopy)
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

// setsOfClaim returns the set in a claim's label. For a claim without the label it returns the sets that its name may be
// made for, also from templates that the spec no longer has.
func (e events) setsOfClaim(ctx context.Context, claim client.Object) []reconcile.Request {
	_, labeled := claim.GetLabels()[v1beta1.SetLabel]
	var requests []reconcile.Request
	for _, name := range informer.SetsOf(claim) {
		key := types.NamespacedName{Namespace: claim.GetNamespace(), Name: name}
		if labeled || e.exists(ctx, key) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// exists reports whether there is a set of a name.
func (e events) exists(ctx context.Context, key types.NamespacedName) bool {
	return e.Cache.Get(ctx, key, &v1beta1.RollSet{}, client.UnsafeDisableDeepCopy) == nil
}

// setsWithClaims returns all sets that have claims: storage classes change too rarely to look for the sets that use one.
func (e events) setsWithClaims(ctx context.Context, _ client.Object) []reconcile.Request {
	return e.setsThat(ctx, "", func(set *v1beta1.RollSet) bool { return len(set.Spec.VolumeClaimTemplates) > 0 })
}

func setOfRevision(_ context.Context, revision client.Object) []reconcile.Request {
	if set, ok := informer.SetOf(revision); ok {
		return []reconcile.Request{{NamespacedName: set}}
	}
	return nil
}
