// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package podcontrol applies plans. It is the only writer of pods, claims and disruption budgets, and so the only package that
// adds expectations.
//
// The rule: every write is planned first and expected afterwards. A delete carries the UID and resourceVersion of the pod
// that was judged, so that it hits neither a successor nor a pod that was given away. Creates start slowly, 1, 2, 4, … at a
// time. They stop at the first batch in which one is refused, because the next batch would be refused too.
//
// Before data is used or deleted, podcontrol reads past the cache: a claim before a new pod uses it, and a pod's name before
// its claim is deleted. Otherwise it reads from the API server only if a name is taken, or if a pod changed before it was
// written. One read then shows who owns the object, or what happened to it. If the set owns it, the write is done. A foreign
// object blocks its identity and no other.
package podcontrol

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Runner calls f(0) … f(n-1) for a namespace, in any order and any number at a time, and returns when all have returned.
type Runner func(namespace string, n int, f func(i int))

// Bounded returns a Runner that runs at most each calls at a time for one caller, and at most total calls for all callers. Calls for
// one namespace never hold more of these than are free, so that others find a free one even if all of them hang.
func Bounded(each, total int) Runner {
	s := &slots{free: total, held: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	return func(namespace string, n int, f func(i int)) {
		var calls sync.WaitGroup
		mine := make(chan struct{}, each)
		for i := range n {
			mine <- struct{}{}
			s.take(namespace)
			calls.Go(func() {
				defer func() { s.give(namespace); <-mine }()
				f(i)
			})
		}
		calls.Wait()
	}
}

// slots are the calls that may run at a time.
type slots struct {
	mu      sync.Mutex
	changed *sync.Cond
	free    int
	held    map[string]int
}

// take waits until a namespace may have one more slot.
func (s *slots) take(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.free <= s.held[namespace] {
		s.changed.Wait()
	}
	s.free--
	s.held[namespace]++
}

func (s *slots) give(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.held[namespace]--; s.held[namespace] == 0 {
		delete(s.held, namespace)
	}
	s.changed.Broadcast()
}

// slowly runs n calls in batches of 1, 2, 4, … until a call in a batch fails. It returns how many it ran.
func (run Runner) slowly(namespace string, n int, f func(i int) error) int {
	done := 0
	for size := 1; done < n; size *= 2 {
		errs := make([]error, min(size, n-done))
		run(namespace, len(errs), func(i int) { errs[i] = f(done + i) })
		if done += len(errs); errors.Join(errs...) != nil {
			break
		}
	}
	return done
}

// Client writes objects and their subresources.
type Client interface {
	client.Writer
	client.SubResourceClientConstructor
}

// Control writes pods and claims.
type Control struct {
	// Client sends the writes.
	Client Client
	// Live reads past the cache, to find the owner of an object whose name is taken.
	Live client.Reader
	// Expectations records every write.
	Expectations *expectations.Store
	// Events records an event for every batch of writes.
	Events events.EventRecorder
	// Run runs the writes of a batch.
	Run Runner
}

// MaxWrites is the maximum number of pods that one plan may create or change, and of claims that it may change. The next
// plan does the rest.
const MaxWrites = 500

// Result is the result of a plan.
type Result struct {
	// Creates, Deletes, Relabels, Updates and Claims are the results by kind of write. Relabels are pods that were adopted,
	// released or labeled with another revision. Updates are pods that were changed in place. Claims are claims that were
	// changed.
	Creates, Deletes, Relabels, Updates, Claims attempt.Tally
	// Attempts holds the writes that were tried, one by one.
	Attempts []attempt.Result
	// Blocked holds why no pod can be created for an identity. These creates do not count as failed.
	Blocked map[string]snapshot.Block
	// Preflights holds the answers to preflights, by revision.
	Preflights map[string]snapshot.Preflight
	// NamespaceGone is true if the namespace is being deleted, so that a retry is pointless.
	NamespaceGone bool
}

// Apply applies a plan for a set. snap is the snapshot that the plan was made from.
func (c *Control) Apply(ctx context.Context, set *v1beta1.RollSet, snap *snapshot.Set, plan action.Plan) Result {
	w := &writer{Control: c, set: set, snap: snap}
	w.stays = sync.OnceValue(func() error { return CheckStays(ctx, c.Live, set) })
	var deletes []action.Delete
	var creates []action.Create
	var keeps, relabels, updates []action.Action
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case action.Preflight:
			if _, asked := w.result.Preflights[a.Revision]; !asked { // several planners may want to know
				creator{w}.ask(ctx, a)
			}
		case action.Delete:
			deletes = append(deletes, a)
		case action.Create:
			creates = append(creates, a)
		case action.Adopt, action.Release, action.Relabel, action.Unmark:
			relabels = append(relabels, a)
		case action.CloseGate, action.OpenGate, action.UpdateInPlace, action.Resize, action.SetState:
			updates = append(updates, a)
		case action.CreateClaims, action.OwnClaim, action.ChangeClaim, action.DeleteClaim:
			keeps = append(keeps, a)
		case action.CreateBudget, action.UpdateBudget, action.DeleteBudget:
			budgetWriter{w}.keepBudget(ctx, a)
		}
	}
	if len(keeps) > 0 || snap.HasClaims() {
		w.findReplicas()
	}
	staying := claimWriter{w}.keepClaims(ctx, keeps)
	deletes = slices.DeleteFunc(deletes, func(d action.Delete) bool { return staying[d.Pod.UID] })
	updater{w}.updateAll(ctx, relabels, &w.result.Relabels)
	if snap.OrderedReady() { // a pod is created while all below it are available, including those that are disturbed next
		creator{w}.createAll(ctx, creates)
		updater{w}.updateAll(ctx, updates, &w.result.Updates)
		deleter{w}.deleteAll(ctx, deletes)
	} else {
		updater{w}.updateAll(ctx, updates, &w.result.Updates)
		deleter{w}.deleteAll(ctx, deletes)
		creator{w}.createAll(ctx, creates)
	}
	w.tell(ctx)
	return w.result
}

// writer applies one plan. It has a method or two for each kind of write; all of them share the result and the limits.
type writer struct {
	*Control

	set  *v1beta1.RollSet
	snap *snapshot.Set
	// replicas holds the observed replicas by identity. It is filled only if there are claims.
	replicas map[string]*snapshot.Replica
	result   Result

	created []action.Create
	deleted []action.Delete
	updated []change
	kept    []action.Action
	// stays returns what the API server said when asked whether the set still exists and may adopt pods.
	stays func() error
}

// tried records the result of an action.
func (w *writer) tried(a action.Action, out outcome) {
	tried := attempt.Result{Key: action.KeyOf(a), Seen: action.SeenAt(a), Err: out.err, Overtaken: out.stale, OfClaim: out.claim}
	if out.block != nil {
		tried.Err, tried.Blocked = errors.New(out.block.Reason), true
	}
	full := quotaExceeded(out.err) && slices.Contains([]attempt.Verb{attempt.Creating, attempt.Resizing}, tried.Key.Verb)
	if full || out.err != nil && !out.stale && (attempt.InTrouble(out.err) || attempt.LacksRights(out.err)) {
		tried.Key = attempt.Any(tried.Key.Verb)
	}
	w.result.Attempts = append(w.result.Attempts, tried)
}

func (w *writer) findReplicas() {
	w.replicas = make(map[string]*snapshot.Replica, len(w.snap.Replicas))
	for i := range w.snap.Replicas {
		w.replicas[w.snap.Replicas[i].ID] = &w.snap.Replicas[i]
	}
}

// replica returns the replica of an identity. One that was not observed has neither pod nor claims.
func (w *writer) replica(id string) *snapshot.Replica {
	if r, ok := w.replicas[id]; ok {
		return r
	}
	return &snapshot.Replica{Content: snapshot.Content{Identity: snapshot.Identity{ID: id}}}
}

func (w *writer) block(id string, b snapshot.Block) {
	if w.result.Blocked == nil {
		w.result.Blocked = map[string]snapshot.Block{}
	}
	w.result.Blocked[id] = b
}
