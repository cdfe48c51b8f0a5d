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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/optional"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/podcontrol"
)

// lookAgain is the longest wait for a cache that is behind. An event usually ends the wait. There is none if the written object is
// deleted before the cache shows it.
const lookAgain = 200 * time.Millisecond

const controllerName = "rollset"

// NewLine returns the line of a Reconciler, with as many sets of one namespace worked on at a time as given, and twice as many in all.
func NewLine(concurrency int, c clock.WithTickerAndDelayedExecution) *watch.Line {
	return watch.NewLine(controllerName, 2*concurrency, c)
}

// Reconciler brings sets to their wanted state. It depends on its exported fields only; they are set before the first Reconcile and not
// changed afterwards.
type Reconciler struct {
	// Client reads from the cache and writes to the API server. The cache needs the indexes of package informer.
	Client client.Client
	// Live reads past the cache. It is used
	//   - before an adoption, and before a new pod uses a claim that exists;
	//   - before a revision is recorded again, and before it is given up or tried again for a user;
	//   - before the first pod is created, and before the first plan of a rollout in steps;
	//   - before the partition is ignored because its revision was never proven;
	//   - when a new template takes effect, and one pod more would have proven the revision before it;
	//   - after the API server said that a name is taken, or that a pod changed before it could be written;
	//   - when the cache does not show a write of a pod in time that got no answer;
	//   - when a new cache shows no pod of a set whose status counts pods, and before pods are created while it has not shown
	//     the newest one that the status knows of.
	Live client.Reader
	// Pods reads the pods of sets from the cache.
	Pods informer.Pods
	// Nodes reads nodes from the cache, if Optional says that it holds them.
	Nodes informer.Nodes
	// Watermarks says how far the cache has come.
	Watermarks informer.Watermarks
	// Optional reports whether the cache holds a kind that only some sets need: nodes, and disruption budgets.
	Optional optional.Lookup
	// Clock is the only clock.
	Clock clock.PassiveClock
	// ClockAhead returns by how much it is ahead of the API server's; zero for less than a few seconds. Nil means that it is not
	// known.
	ClockAhead func() time.Duration
	// Events records events for users.
	Events events.EventRecorder
	// Runner runs the writes of a batch.
	Runner podcontrol.Runner
	// Expectations remember what was written until the cache shows it.
	Expectations *expectations.Store
	// Metrics count what was done.
	Metrics *metrics.Metrics
	// Line is where sets wait to be reconciled.
	Line *watch.Line

	memory memory
	router watch.Router
}

// Reconcile brings a set one step nearer to its wanted state.
func (r *Reconciler) Reconcile(ctx context.Context, set *v1beta1.RollSet) (ctrl.Result, error) {
	defer r.forgetIfGone(ctx, set)
	s, err := r.open(set)
	if err != nil {
		return answer(ctrl.Result{}, err)
	}
	result, err := r.decide(ctx, s)
	r.Line.Order.Charge(client.ObjectKeyFromObject(set), s.cost()) // before the writes: their events wait for the next look
	if err != nil || result.RequeueAfter > 0 {
		return answer(result, err)
	}
	if result := r.apply(ctx, s); result.RequeueAfter > 0 {
		return result, nil
	}
	return answer(later(r.reporter(s).report(ctx, s)), s.failure)
}

// decide goes through the phases before the writes, until one of them asks for another reconcile.
func (r *Reconciler) decide(ctx context.Context, s *step) (ctrl.Result, error) {
	for _, phase := range []phase{r.see, r.record, r.observe, r.plan} {
		if result, err := phase(ctx, s); err != nil || result.RequeueAfter > 0 {
			return result, err
		}
	}
	s.wrote = s.planned()
	return ctrl.Result{}, nil
}

// atOnce is the result that asks for another reconcile at once, with the priority of a user's edit.
func atOnce() ctrl.Result { return ctrl.Result{RequeueAfter: time.Nanosecond, Priority: new(0)} }

// later returns the result that asks for another reconcile after a wait, like an event. A wait of zero asks for none.
func later(wait time.Duration) ctrl.Result {
	if wait <= 0 {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: wait, Priority: new(watch.Priority)}
}

// answer returns the result of a reconcile for the queue. A conflict is not an error: another client changed the object first, and its
// event will follow. A namespace that is being deleted is not an error either, because the set is deleted with it.
func answer(result ctrl.Result, err error) (ctrl.Result, error) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	case err != nil:
		return ctrl.Result{}, err
	default:
		return result, nil
	}
}

// Sources are the kinds whose events lead to reconciles.
func (r *Reconciler) Sources() []watch.Source {
	return r.router.Sources(r.cluster())
}

// OptionalSources are the kinds that only some sets need, and whose events lead to reconciles of these.
func (r *Reconciler) OptionalSources() []watch.Source { return r.router.OptionalSources(r.cluster()) }

func (r *Reconciler) cluster() watch.Cluster {
	return watch.Cluster{Cache: r.Client, Gone: r.forget}
}

// forget drops all memory of a deleted set.
func (r *Reconciler) forget(set client.Object) {
	r.Expectations.Forget(set.GetUID())
	r.memory.forget(set.GetUID())
	r.router.Forget(set)
	r.Line.Order.Forget(client.ObjectKeyFromObject(set))
	r.Metrics.Forget(client.ObjectKeyFromObject(set))
}

// forgetIfGone forgets a set whose deletion was handled during its reconcile; the entries of the reconcile would stay forever. If
// the cache still shows the set, the event of its deletion follows.
func (r *Reconciler) forgetIfGone(ctx context.Context, set *v1beta1.RollSet) {
	now := &v1beta1.RollSet{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(set), now, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && now.UID != set.UID {
		r.forget(set)
	}
}

// SetupWithManager registers the Reconciler. Its events come from Sources and from the other sources.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, others ...source.Source) error {
	b := ctrl.NewControllerManagedBy(mgr).Named(controllerName).WithOptions(controller.Options{
		MaxConcurrentReconciles: r.Line.Workers,
		NewQueue: func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return r.Line
		},
	})
	for _, w := range r.Sources() {
		b = b.Watches(w.Object, w.Handler)
	}
	for _, other := range others {
		b = b.WatchesRawSource(other)
	}
	return b.Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}
