// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/revisions"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/plan/observe"
	"rollset.dev/rollset/internal/podcontrol"
)

// phase is a part of a reconcile. A result that asks for another reconcile ends this one, as does an error.
type phase func(ctx context.Context, s *step) (ctrl.Result, error)

// step is the state of one reconcile.
type step struct {
	*view

	// names knows the identities that cannot get their names.
	names takenNames
	// found says which revisions the set has, and failure what kept them from being recorded: then nothing is planned.
	found   revision.Resolution
	failure error
	// snap is the snapshot, plan what the planners planned on it, and result the result of the plan.
	snap   *snapshot.Set
	plan   action.Plan
	result podcontrol.Result
	// wrote is how many pods wait for the writes.
	wrote int
}

// open begins a reconcile of a set.
func (r *Reconciler) open(set *v1beta1.RollSet) (*step, error) {
	v, err := newView(set, r.memory.of(set.UID), r.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	if r.ClockAhead != nil {
		v.ClockAhead = r.ClockAhead()
	}
	v.budgeted = r.router.HadBudget(set.UID)
	for kind := range informer.Watched() {
		v.cache.Synced[kind] = r.Watermarks(kind, set.Namespace)
	}
	v.cache.Synced[expectations.BudgetKind()] = r.Watermarks(expectations.BudgetKind(), set.Namespace)
	return &step{view: v, names: takenNames{view: v, cache: r.Client, pods: r.Pods, router: &r.router}}, nil
}

// cost returns the cost of the look at the set.
func (s *step) cost() watch.Look { return watch.Look{Pods: len(s.Pods), Writes: s.wrote} }

// see reads what the set owns, unless the cache is behind. Most often the resource versions show this without a list.
func (r *Reconciler) see(ctx context.Context, s *step) (ctrl.Result, error) {
	if reached, remaining := r.Expectations.Reached(s.Set.UID, s.cache.Synced); !reached {
		return later(min(remaining, lookAgain)), nil
	}
	if err := s.look(ctx, r.Client, r.Pods); err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	if err := s.lookAround(ctx, r.Client, r.Nodes, r.Optional); err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}
	switch met, remaining := r.Expectations.Met(s.Set.UID, s.cache); {
	case !met && remaining > 0:
		return later(min(remaining, lookAgain)), nil
	case !met:
		if wait, err := s.catchUp(ctx, r.Live, r.Expectations); wait > 0 || err != nil {
			return later(wait), err
		}
	}
	wait, err := s.unseen(ctx, r.Live)
	return later(wait), err
}

// record joins pods and claims, and brings the revisions up to date. If the spec of the set cannot be understood, nothing is written.
func (r *Reconciler) record(ctx context.Context, s *step) (ctrl.Result, error) {
	s.replicas = s.memory.seen.Join(&s.Objects)
	in := s.memory.seen.RevisionInput(&s.Objects, s.replicas)
	in.Served = func(known map[string]snapshot.Revision, revision, current string) (served, near bool) {
		return observe.Members(r.seen(s), &s.memory.seen, known).Served(revision, current)
	}
	if s.undecided() {
		s.found, s.failure = revision.Resolve(in)
		return ctrl.Result{}, nil
	}
	var wrote bool
	if s.found, wrote, s.failure = r.revisions(s).Resolve(ctx, s.revisions, in); wrote && s.failure == nil {
		s.wrote = len(s.Pods) // all of them wait for it
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	return ctrl.Result{}, nil
}

// observe freezes what the view shows into the snapshot that everything is decided on. Of a spec that cannot be understood it
// holds what can; nothing is decided on that.
func (r *Reconciler) observe(ctx context.Context, s *step) (ctrl.Result, error) {
	in := r.seen(s)
	in.Resolution, in.Gone = s.found, r.router.TakeGone(s.Set.UID)
	in.FinishedWait, in.Preflights = s.writes.ReplaceWait(s.found.Update.Name), s.answers(s.found.Update.Name)
	s.snap = observe.Snapshot(in, &s.memory.seen)
	maps.Copy(s.snap.Blocked, s.names.blocked(ctx, s.snap))
	s.names.mark(ctx, s.snap)
	return ctrl.Result{}, nil
}

// seen returns what the view shows of pods.
func (r *Reconciler) seen(s *step) observe.Input {
	return observe.Input{
		Objects: &s.Objects, Numbers: s.spec, Replicas: s.replicas, Sighting: r.router.Sighting, Refusals: s.writes.Refusals(),
	}
}

// plan decides what is to be done, unless the cache does not show what that depends on.
func (r *Reconciler) plan(ctx context.Context, s *step) (ctrl.Result, error) {
	if s.undecided() {
		return ctrl.Result{}, nil
	}
	s.plan = plan.Next(s.snap)
	if wait, err := s.outdated(ctx, r.Live, r.Expectations); wait > 0 || err != nil {
		return later(wait), err
	}
	wait, err := s.unshown(ctx, r.Live, s.plan)
	return later(wait), err
}

// planned returns how many pods wait for what the plan writes: all of them, if the plan for other pods depends on it.
func (s *step) planned() int {
	if slices.ContainsFunc(s.plan.Actions, decidesMore) {
		return len(s.Pods)
	}
	return len(s.plan.Actions)
}

// plannedSurge returns how many pods of surge the plan creates that are deleted again.
func (s *step) plannedSurge() (n int) {
	for _, a := range s.plan.Actions {
		if c, ok := a.(action.Create); ok && c.Surge {
			n++
		}
	}
	return n
}

// decidesMore reports whether the plan for other pods depends on an action.
func decidesMore(a action.Action) bool {
	verbs := []attempt.Verb{attempt.Adopting, attempt.Releasing, attempt.Relabeling, attempt.Unmarking, attempt.Preflighting}
	return slices.Contains(verbs, action.KeyOf(a).Verb)
}

// undecided reports whether nothing can be planned, or may be: the garbage collector deletes what a deleted set owns.
func (s *step) undecided() bool { return s.invalid != nil || s.failure != nil || s.deleting() }

func (s *step) deleting() bool { return !s.Set.DeletionTimestamp.IsZero() }

// apply carries out the plan, and removes revisions that are not needed.
func (r *Reconciler) apply(ctx context.Context, s *step) ctrl.Result {
	if s.undecided() {
		return ctrl.Result{}
	}
	s.result = r.pods().Apply(ctx, s.Set, s.snap, s.plan)
	r.remember(s)
	if s.learned() || slices.ContainsFunc(s.result.Attempts, attempt.Result.RefusesResize) {
		return atOnce() // what is to be done depends on the answers, and no event brings them
	}
	failed := slices.ContainsFunc(s.result.Attempts, func(a attempt.Result) bool { return a.Err != nil })
	if failed || s.result.Relabels.Done > 0 { // what was meant for one that failed may do for others
		s.plan.Wake(lookAgain)
	}
	if !s.plan.Empty() { // a write that had no effect brings no event
		s.plan.Wake(expectations.UnsettledTimeout)
	}
	r.revisions(s).Prune(ctx, s.revisions, s.found.Prune)
	return ctrl.Result{}
}

// learned reports whether a preflight was answered, or failed in another way than the last time. One that never answers would else
// keep the status from being written.
func (s *step) learned() bool {
	for name, answer := range s.result.Preflights {
		if last := s.snap.Preflights[name]; !answer.Failed || !last.Failed || answer.Refusal != last.Refusal {
			return true
		}
	}
	return false
}

// remember notes what the next reconcile should know of this one.
func (r *Reconciler) remember(s *step) {
	for _, a := range s.result.Attempts {
		s.writes.Attempted(a, s.result.NamespaceGone)
		if a.Key.Verb == attempt.Creating && attempt.IsAltered(a.Err) && !s.snap.Ordinal() { // its name was given out
			r.router.NoteGone(s.Set.UID, s.snap.PodName(a.Key.Object))
		}
	}
	s.memory.seen.Planned(&s.plan)
	for _, a := range s.plan.Actions {
		if adopt, ok := a.(action.Adopt); ok { // it may go before the cache shows it as the set's
			r.router.NoteGone(s.Set.UID, adopt.Pod.Name)
		}
	}
	ended := func(a action.Action) bool {
		d, ok := a.(action.Delete)
		return ok && d.Cause == action.Finished && podstate.EndedSoon(d.Pod, s.Now)
	}
	if s.result.Deletes.Done > 0 && slices.ContainsFunc(s.plan.Actions, ended) {
		s.writes.EndedSoon(s.snap.Update.Name)
	}
	s.rememberPreflights(s.result.Preflights)
	if s.result.Creates.Done > 0 {
		s.snap.Reached = s.memory.seen.Made(s.result.Creates.Done - s.plannedSurge())
		s.rememberMade()
	}
	s.names.remember(s.result.Blocked)
	s.forgetPreflights(s.snap.Update.Name)
	s.memory.seen.Decoder.Keep(s.Revisions)
	s.memory.revisions.Keep(s.Revisions)
	r.Metrics.Wrote(s.result.Creates, s.result.Deletes, s.result.Updates)
}

func (r *Reconciler) pods() *podcontrol.Control {
	return &podcontrol.Control{
		Client:       r.Client,
		Live:         r.Live,
		Expectations: r.Expectations,
		Events:       r.Events,
		Run:          r.Runner,
	}
}

func (r *Reconciler) revisions(s *step) *revisions.Control {
	return &revisions.Control{
		Client:       r.Client,
		Live:         r.Live,
		Stays:        func(ctx context.Context, set *v1beta1.RollSet) error { return podcontrol.CheckStays(ctx, r.Live, set) },
		Behind:       func(ctx context.Context) (bool, error) { return s.behind(ctx, r.Live, r.Expectations) },
		Expectations: r.Expectations,
		Events:       r.Events,
	}
}
