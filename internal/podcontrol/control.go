// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package podcontrol carries out plans. It is the only writer of pods and claims, and so the only one that expects
// anything of the cache.
//
// The rule: what is written is first planned and then expected. Deletes carry the UID of the pod that was judged, so
// that no successor can be hit by mistake. Creates start slowly, 1, 2, 4, … at a time, and stop at the first batch in
// which one is refused, because the next would be refused as well. Nothing is read from the API server, unless it says
// that a name is taken: then one look tells whose the object is. Ours is what we wanted; a stranger's blocks its own
// identity and no other.
package podcontrol

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/observed"
)

// Runner calls f(0) … f(n-1), in any order and any number at a time, and returns when all have returned.
type Runner func(n int, f func(i int))

// Bounded returns a Runner that has at most limit calls under way.
func Bounded(limit int) Runner {
	return func(n int, f func(i int)) {
		var calls sync.WaitGroup
		free := make(chan struct{}, limit)
		for i := range n {
			free <- struct{}{}
			calls.Go(func() {
				defer func() { <-free }()
				f(i)
			})
		}
		calls.Wait()
	}
}

// Control writes pods and claims.
type Control struct {
	// Client writes.
	Client client.Writer
	// Live reads past the cache, to see whose an object is whose name is taken.
	Live client.Reader
	// Expectations learn of every write.
	Expectations *expectations.Store
	// Events tell users of every batch of writes.
	Events events.EventRecorder
	// Run runs the writes of a batch.
	Run Runner
}

// Result is what became of a plan.
type Result struct {
	// Creates and Deletes count the pods.
	Creates, Deletes Count
	// CreateError and DeleteError are why the first failing create and delete failed; nil if none did.
	CreateError, DeleteError error
	// Blocked says of identities why no pod can be made for them; they do not count as failing.
	Blocked map[string]observed.Block
	// NamespaceGone is true when the namespace is being deleted, so that trying again is pointless.
	NamespaceGone bool
}

// Count is how many writes went well and how many did not.
type Count struct{ Done, Failed int }

// Apply carries out a plan for a set of which o is the observation.
func (c *Control) Apply(ctx context.Context, set *v1alpha1.RollSet, o *observed.Set, plan action.Plan) Result {
	var deletes []action.Delete
	var creates []action.Create
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case action.Delete:
			deletes = append(deletes, a)
		case action.Create:
			creates = append(creates, a)
		}
	}
	w := newWriter(c, set, o)
	w.writeClaims(ctx, deletes)
	w.deleteAll(ctx, deletes)
	w.createAll(ctx, creates)
	w.tell(ctx)
	return w.result
}

func newWriter(c *Control, set *v1alpha1.RollSet, o *observed.Set) *writer {
	w := &writer{Control: c, set: set, observation: o}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return w
	}
	w.replicas = make(map[string]*observed.Replica, len(o.Replicas))
	w.byPod = make(map[types.UID]*observed.Replica, len(o.Replicas))
	for i := range o.Replicas {
		r := &o.Replicas[i]
		w.replicas[r.ID] = r
		if r.Pod != nil {
			w.byPod[r.Pod.UID] = r
		}
	}
	return w
}

// writer carries out one plan.
type writer struct {
	*Control

	set         *v1alpha1.RollSet
	observation *observed.Set
	// replicas and byPod find a replica of the observation; they are filled only if the set has claims.
	replicas map[string]*observed.Replica
	byPod    map[types.UID]*observed.Replica
	result   Result

	created []action.Create
	deleted []action.Delete
}

// PodKind is the kind of pods.
func PodKind() schema.GroupKind { return corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() }

// ClaimKind is the kind of claims.
func ClaimKind() schema.GroupKind {
	return corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind()
}
