// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package podcontrol carries out plans. It is the only writer of pods and claims, and so the only one that expects
// anything of the cache.
//
// The rule: what is written is first planned and then expected. Deletes carry the UID and the resource version of what
// was judged, so that neither a successor can be hit by mistake nor a pod that has been given away. Creates start slowly,
// 1, 2, 4, … at a time, and stop at the first batch in which one is refused, because the next would be refused as well.
// What comes or goes with data is looked at past the cache: a claim before a new pod uses it, a pod's name before its claim
// is deleted. Else nothing is read from the API server, unless it says that a name is taken, or that a pod changed before it
// could be written: then one look tells whose the object is, or what became of it. Ours is what we wanted; a stranger's
// blocks its own identity and no other.
package podcontrol

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Runner calls f(0) … f(n-1), in any order and any number at a time, and returns when all have returned.
type Runner func(n int, f func(i int))

// Bounded returns a Runner that has at most so many calls under way for each who uses it, and at most total for all.
func Bounded(each, total int) Runner {
	free := make(chan struct{}, total)
	return func(n int, f func(i int)) {
		var calls sync.WaitGroup
		mine := make(chan struct{}, each)
		for i := range n {
			mine <- struct{}{}
			free <- struct{}{}
			calls.Go(func() {
				defer func() { <-free; <-mine }()
				f(i)
			})
		}
		calls.Wait()
	}
}

// slowly runs n calls in batches of 1, 2, 4, …, until one of a batch fails. It returns how many it ran.
func (run Runner) slowly(n int, f func(i int) error) int {
	done := 0
	for size := 1; done < n; size *= 2 {
		errs := make([]error, min(size, n-done))
		run(len(errs), func(i int) { errs[i] = f(done + i) })
		if done += len(errs); errors.Join(errs...) != nil {
			break
		}
	}
	return done
}

// Client writes objects and subresources of them.
type Client interface {
	client.Writer
	client.SubResourceClientConstructor
}

// Control writes pods and claims.
type Control struct {
	// Client writes.
	Client Client
	// Live reads past the cache, to see whose an object is whose name is taken.
	Live client.Reader
	// Expectations learn of every write.
	Expectations *expectations.Store
	// Events tell users of every batch of writes.
	Events events.EventRecorder
	// Run runs the writes of a batch.
	Run Runner
}

// MaxWrites is how many pods one plan may create or change, and how many claims it may change; the rest comes with the next one.
const MaxWrites = 500

// Result is what became of a plan.
type Result struct {
	// Creates, Deletes, Relabels and Updates are what became of pods that were to be created, deleted, adopted, released or
	// labeled anew, and changed in place, Claims of claims that were to be changed.
	Creates, Deletes, Relabels, Updates, Claims Tally
	// Attempts are the writes that were tried, one by one.
	Attempts []Attempt
	// Blocked says of identities why no pod can be made for them; they do not count as failing.
	Blocked map[string]snapshot.Block
	// Preflights are the answers to preflights by revision.
	Preflights map[string]snapshot.Preflight
	// NamespaceGone is true when the namespace is being deleted, so that trying again is pointless.
	NamespaceGone bool
}

// Attempt is a write that was tried, and what became of it.
type Attempt struct {
	// Key names the write. Where all of its verb share what is in the way, a full quota or an API server in trouble, it is
	// the key of all of them.
	Key action.Key
	// Seen is the resource version at which the object was judged; empty if there was none.
	Seen string
	// Err is why the write had no effect; nil if all is as it was to be.
	Err error
	// Overtaken is true if the object is not as it was judged any more, and Blocked if something is in the way of the identity.
	Overtaken, Blocked bool
}

// RefusesResize reports whether the API server will not resize a pod. There are other ways then.
func (a Attempt) RefusesResize() bool { return a.Key.Verb == action.Resizing && Refused(a.Err) }

// Tally is how many writes went well, how many did not, and why the first of these did not.
type Tally struct {
	Done, Failed int
	Err          error
}

func (t *Tally) fail(err error) {
	t.Failed++
	if t.Err == nil {
		t.Err = err
	}
}

// Apply carries out a plan for a set of which o is the observation.
func (c *Control) Apply(ctx context.Context, set *v1alpha1.RollSet, o *snapshot.Set, plan action.Plan) Result {
	w := &writer{Control: c, set: set, observation: o}
	w.stays = sync.OnceValue(func() error { return CheckStays(ctx, c.Live, set) })
	var deletes []action.Delete
	var creates []action.Create
	var keeps, relabels, updates []action.Action
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case action.Preflight:
			w.ask(ctx, a)
		case action.Delete:
			deletes = append(deletes, a)
		case action.Create:
			creates = append(creates, a)
		case action.Adopt, action.Release, action.Relabel, action.Unmark:
			relabels = append(relabels, a)
		case action.CloseGate, action.OpenGate, action.UpdateInPlace, action.Resize, action.SetState:
			updates = append(updates, a)
		case action.CreateClaims, action.OwnClaim, action.GrowClaim, action.DeleteClaim:
			keeps = append(keeps, a)
		}
	}
	if len(keeps) > 0 || o.HasClaims() {
		w.findReplicas()
	}
	staying := w.keepClaims(ctx, keeps)
	deletes = slices.DeleteFunc(deletes, func(d action.Delete) bool { return staying[d.Pod.UID] })
	w.updateAll(ctx, relabels, &w.result.Relabels)
	if o.OrderedReady() { // a pod comes while all below it are available, also those that are disturbed next
		w.createAll(ctx, creates)
		w.updateAll(ctx, updates, &w.result.Updates)
		w.deleteAll(ctx, deletes)
	} else {
		w.updateAll(ctx, updates, &w.result.Updates)
		w.deleteAll(ctx, deletes)
		w.createAll(ctx, creates)
	}
	w.tell(ctx)
	return w.result
}

// writer carries out one plan.
type writer struct {
	*Control

	set         *v1alpha1.RollSet
	observation *snapshot.Set
	// replicas are those of the observation by identity, filled only if there are claims.
	replicas map[string]*snapshot.Replica
	result   Result

	created []action.Create
	deleted []action.Delete
	updated []change
	kept    []action.Action
	// stays is what the API server said when it was asked whether the set is still there to adopt pods.
	stays func() error
}

// tried enters what became of an action into the result.
func (w *writer) tried(a action.Action, out outcome) {
	attempt := Attempt{Key: action.KeyOf(a), Seen: action.SeenAt(a), Err: out.err, Overtaken: out.stale}
	if out.block != nil {
		attempt.Err, attempt.Blocked = errors.New(out.block.Reason), true
	}
	full := quotaExceeded(out.err) && attempt.Key.Verb == action.Creating
	if full || out.err != nil && !out.stale && inTrouble(out.err) {
		attempt.Key = action.Any(attempt.Key.Verb)
	}
	w.result.Attempts = append(w.result.Attempts, attempt)
}

func (w *writer) findReplicas() {
	w.replicas = make(map[string]*snapshot.Replica, len(w.observation.Replicas))
	for i := range w.observation.Replicas {
		w.replicas[w.observation.Replicas[i].ID] = &w.observation.Replicas[i]
	}
}

// replica is the one of an identity, which has neither pod nor claims if it was not observed.
func (w *writer) replica(id string) *snapshot.Replica {
	if r, ok := w.replicas[id]; ok {
		return r
	}
	return &snapshot.Replica{ID: id}
}

func (w *writer) block(id string, b snapshot.Block) {
	if w.result.Blocked == nil {
		w.result.Blocked = map[string]snapshot.Block{}
	}
	w.result.Blocked[id] = b
}

// PodKind is the kind of pods.
func PodKind() schema.GroupKind { return corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() }

// ClaimKind is the kind of claims.
func ClaimKind() schema.GroupKind {
	return corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind()
}
