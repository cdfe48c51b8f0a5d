// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller is the shell around the pure core: it reads, lets the core decide, writes, and reports.
//
// The rule: observe → plan → apply → report. One observation per reconcile, taken from caches that show all earlier
// writes; one plan, made by pure functions; one status write, also when something failed. Nothing here waits,
// writes a spec, depends on anything that it was not given, or reads past the cache, but for what Reconciler.Live names.
package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/podcontrol"
)

// lookAgain is how soon a cache that is behind is asked again. An event usually comes first; a cache can catch up
// without one, though, when what was written is gone before it was seen.
const lookAgain = 200 * time.Millisecond

const (
	controllerName = "rollset"
	// minRetry and maxRetry bound the wait after an error.
	minRetry = 5 * time.Millisecond
	maxRetry = 5 * time.Minute
)

// Reconciler brings one set after another to its wanted state. Its exported fields are all that it depends on; they are
// set before the first Reconcile and not changed afterwards.
type Reconciler struct {
	// Client reads from the cache and writes to the API server. The cache needs the indexes of package informer.
	Client client.Client
	// Live reads past the cache. It is asked before an adoption, before a new pod uses a claim that is there already, before
	// a revision is made again, or given up or tried again as a user asks, at the first sight of a rollout in steps, before the
	// partition is ignored because its revision was
	// never complete, after the API server said that a name is taken or that
	// a pod changed before it could be written, and when a cache that has just been filled shows none of the pods that a
	// status tells of, or pods are to be made and it has never shown the newest one that a status tells of.
	Live client.Reader
	// Pods reads the pods of sets from the cache.
	Pods informer.Pods
	// Watermarks says how far the cache has come.
	Watermarks informer.Watermarks
	// Clock is the only clock.
	Clock clock.PassiveClock
	// Events tell users what was done.
	Events events.EventRecorder
	// Runner runs the writes of a batch.
	Runner podcontrol.Runner
	// Expectations remember what was written until the cache shows it.
	Expectations *expectations.Store
	// Metrics count what was done.
	Metrics *metrics.Metrics

	memory memory
	router watch.Router
}

// Reconcile brings a set one step nearer to its wanted state.
func (r *Reconciler) Reconcile(ctx context.Context, set *v1alpha1.RollSet) (ctrl.Result, error) {
	if !set.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	defer r.forgetIfGone(ctx, set)
	v, wait, err := r.see(ctx, set)
	if v == nil {
		return answer(wait, err)
	}
	look := watch.Look{Pods: len(v.Pods)}
	defer func() { r.router.Charge(client.ObjectKeyFromObject(set), v.Now, look) }()
	if wait > 0 || err != nil {
		return answer(wait, err)
	}
	v.replicas = v.Join(&v.memory.seen)
	revisions, wrote, prepareErr := r.findRevisions(ctx, v)
	if wrote && prepareErr == nil {
		look.Writes = len(v.Pods) // all of them wait for it
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	o := r.observe(ctx, v, revisions)
	if behind, err := r.checkSteps(ctx, v, o); behind || err != nil {
		return answer(lookAgain, err)
	}
	s := step{view: v, observed: o, revisions: revisions, failure: prepareErr}
	if v.invalid == nil && prepareErr == nil {
		s.plan = plan.Next(o)
		if wait, err := r.unshown(ctx, v, s.plan); wait > 0 || err != nil {
			return answer(wait, err)
		}
		r.apply(ctx, &s)
		if look.Writes = s.waiting(); s.answered { // what is to be done depends on the answers, and no event brings them
			return ctrl.Result{RequeueAfter: time.Nanosecond}, nil
		}
	}
	return answer(r.report(ctx, s), s.failure)
}

// apply carries out the plan, and removes revisions that are not needed.
func (r *Reconciler) apply(ctx context.Context, s *step) {
	s.result = r.pods().Apply(ctx, s.Set, s.observed, s.plan)
	r.remember(*s)
	s.answered = len(s.result.Preflights) > 0 || slices.ContainsFunc(s.result.Attempts, podcontrol.Attempt.RefusesResize)
	if s.answered {
		return
	}
	failed := slices.ContainsFunc(s.result.Attempts, func(a podcontrol.Attempt) bool { return a.Err != nil })
	if failed || s.result.Relabels.Done > 0 { // what was meant for one that failed may do for others
		s.plan.Wake(lookAgain)
	}
	if !s.plan.Empty() { // a write that had no effect brings no event
		s.plan.Wake(expectations.DoubtTimeout)
	}
	r.pruneRevisions(ctx, s.view, s.revisions.Prune)
}

// see reads what the set owns, unless the cache is behind: then it says how long to wait. Whether the cache shows the set's
// own writes can most often be told without a list.
func (r *Reconciler) see(ctx context.Context, set *v1alpha1.RollSet) (v *view, wait time.Duration, err error) {
	if v, err = r.open(set); err != nil {
		return nil, 0, fmt.Errorf("observe: %w", err)
	}
	if reached, remaining := r.Expectations.Reached(set.UID, v.cache.Synced); !reached {
		return v, min(remaining, lookAgain), nil
	}
	if err := r.look(ctx, v); err != nil {
		return v, 0, fmt.Errorf("observe: %w", err)
	}
	if met, remaining := r.Expectations.Met(set.UID, v.cache); !met {
		return v, min(remaining, lookAgain), nil
	}
	wait, err = r.unseen(ctx, v)
	return v, wait, err
}

// step is one reconcile: what was seen, decided and done.
type step struct {
	*view

	observed  *snapshot.Set
	revisions revision.Resolution
	// plan is what the core planned, and result what became of it.
	plan   action.Plan
	result podcontrol.Result
	// answered is true if the API server answered a question of the plan.
	answered bool
	// failure is what kept the plan from being made.
	failure error
}

// waiting is how many pods wait for what was done: all, if others are planned for only then.
func (s step) waiting() int {
	if s.answered || s.result.Relabels.Done > 0 {
		return len(s.Pods)
	}
	return len(s.plan.Actions)
}

// findRevisions brings the revisions up to date. It says whether anything was written; then the cache is behind. Of a set
// whose spec cannot be understood nothing is touched.
func (r *Reconciler) findRevisions(ctx context.Context, v *view) (found revision.Resolution, wrote bool, err error) {
	if v.invalid != nil {
		found, err = revision.Resolve(v.RevisionInput(v.replicas, &v.memory.seen))
		return found, false, err
	}
	return r.resolveRevisions(ctx, v)
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

// answer tells the queue when to come back. A conflict is no error: somebody was faster, and an event is on its way.
// Nor is a namespace that is being deleted: nothing can be made in it any more, and the set goes with it.
func answer(wait time.Duration, err error) (ctrl.Result, error) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		return ctrl.Result{}, err
	default:
		return ctrl.Result{RequeueAfter: wait, Priority: new(watch.Priority)}, nil
	}
}

// Sources are the kinds whose events lead to reconciles.
func (r *Reconciler) Sources() []watch.Source {
	return r.router.Sources(watch.Cluster{Cache: r.Client, Clock: r.Clock, Gone: r.forget})
}

// forget drops all that is remembered of a set that is gone.
func (r *Reconciler) forget(set client.Object) {
	r.Expectations.Forget(set.GetUID())
	r.memory.forget(set.GetUID())
	r.router.Forget(set)
	r.Metrics.Forget(client.ObjectKeyFromObject(set))
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

// SetupWithManager registers the Reconciler, with as many sets worked on at a time as given.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	b := ctrl.NewControllerManagedBy(mgr).Named(controllerName).WithOptions(controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
	})
	for _, w := range r.Sources() {
		b = b.Watches(w.Object, w.Handler)
	}
	return b.Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}
