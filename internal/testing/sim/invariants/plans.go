// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// outline is what is known of the plan of the running reconcile. A plan is made at once, and its writes come one after the other.
type outline struct {
	// active is how many active pods of the set its manager has known at most.
	active int
	// silent holds the pods that it has updated in place without a new image. A write that was decided before may be committed after it.
	silent map[apiserver.Key]bool
	// deletes holds the pods that it has tried to delete.
	deletes map[apiserver.Key]bool
	// doubts are its writes that break a rule about whole plans, unless it deletes surge later.
	doubts []doubt
}

// doubt is a write that breaks a rule by what is known of its plan.
type doubt struct {
	rule
	*verdict
}

func newOutline() outline {
	return outline{silent: make(map[apiserver.Key]bool), deletes: make(map[apiserver.Key]bool)}
}

// see records a write of the plan.
func (o *outline) see(v *verdict) {
	o.active = max(o.active, v.count(IsActive))
	if (guard{v}).movesSilently() {
		o.silent[v.Key] = true
	}
}

// note records a write that the plan tried.
func (o *outline) note(w apiserver.Write) {
	if w.Verb == apiserver.Delete && w.Key.Kind == apiserver.Pods {
		o.deletes[w.Key] = true
	}
}

// doubt judges a write by what is known of its plan.
func (o *outline) doubt(v *verdict) {
	for _, r := range rulesOfPlans() {
		if r.judge(v) != "" {
			o.doubts = append(o.doubts, doubt{r, v})
		}
	}
}

// service is when pods of the set were available.
type service struct {
	// servedAt is when a pod of the set was last seen available. againAt is when one was available again after a while without, and
	// beforeAt when the last one before that was.
	servedAt, againAt, beforeAt time.Time
}

// see notes whether a pod of the set is available.
func (s *service) see(world *Cluster) {
	set := world.Set()
	if set == nil {
		return
	}
	for _, pod := range world.Pods() {
		if now := world.now(); OwnerOf(pod) == set.UID && IsAvailable(pod, set.Spec.MinReadySeconds, now) {
			if now.Sub(s.servedAt) >= time.Minute {
				s.againAt, s.beforeAt = now, s.servedAt
			}
			s.servedAt = now
			return
		}
	}
}

// guard judges moves to the update revision and new pods at it while too many pods at it are unavailable.
type guard struct{ *verdict }

// sentAway reports whether the plan deletes a pod of surge. Surge has no successor, and does not count beside what else the plan does.
func (v guard) sentAway(pod *corev1.Pod) bool {
	return isSurge(pod) && v.checker.outline.deletes[apiserver.KeyOf(pod)]
}

// guardsMoves checks the guard: while the allowed number of pods at the update revision is unavailable, no other pod is
// moved to it, by a delete or in place. It applies only where every pod is wanted at that revision and none is surplus.
func guardsMoves(v *verdict) string {
	if v.set == nil || v.set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy || v.world.Rejected(v.set) {
		return ""
	}
	l, active := v.world.Limits(v.set), v.count(IsActive)
	ended := len(slices.DeleteFunc(v.cached(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || !apiserver.HasEnded(pod) }))
	g, update := guard{v}, v.world.VersionOf(&v.set.Spec.Template)
	if placed := active - v.count(v.surges) + g.replacedNow(); l.Partition > 0 || g.beginsSteps() || !g.movesTo(update, placed <= l.Replicas) {
		return ""
	}
	away := v.count(g.sentAway)
	surge, broken := v.count(v.surges)-away, g.brokenAt(update, func(*corev1.Pod) bool { return true })
	l.maxSurge = max(l.maxSurge, surge) // marked pods go again, also those that a user marked
	if limit := max(1, l.maxUnavailable+min(l.maxSurge, max(surge, active+ended-away-l.Replicas))); broken >= limit && !g.passesGuard(update, limit) {
		return fmt.Sprintf("%d pods at %s are unavailable already, at most %d may be", broken, update, limit)
	}
	return ""
}

// keepsTheGood checks the guard for new pods: while as many pods at the update revision are unavailable as an update and its
// surge may break, no pod comes at that revision, whatever is missing. Then a bad template breaks no more, whatever else
// happens to the set.
func keepsTheGood(v *verdict) string {
	g, p, r := guard{v}, proof{v}, rollout{v}
	if v.set == nil || !v.createsPod() || v.set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy ||
		v.world.Rejected(v.set) || v.world.unproven(v.set) || p.sawUnproven() || g.beginsSteps() {
		return ""
	}
	if v.world.now().Sub(g.servedAt()) >= time.Minute && g.tried() {
		return "" // nothing is left to protect
	}
	created := apiserver.MustBe[*corev1.Pod](v.New)
	if p.sawProven(created.Labels[v1beta1.RevisionLabel]) || !r.gains(created) || r.wasThere(created) {
		return ""
	}
	update, l := v.world.VersionOf(&v.set.Spec.Template), v.world.Limits(v.set)
	counts := func(pod *corev1.Pod) bool {
		// Those that a hook let go on were judged when they were prepared, and those below the partition go back. The plan was made before
		// the answer to a write showed another version.
		return !v.changed(pod) && !v.belowPartition(pod, l) && g.wasCachedAt(pod, update)
	}
	if broken, limit := g.brokenAt(update, counts), max(1, l.maxUnavailable+max(l.maxSurge, v.count(isSurge))); broken >= limit {
		return fmt.Sprintf("one more pod at %s, where %d are unavailable already, at most %d may be", update, broken, limit)
	}
	return ""
}

// brokenAt counts the unavailable pods of a version that stay and that fulfill a condition, without the pod of the write.
func (v guard) brokenAt(version string, counts func(*corev1.Pod) bool) int {
	goes := func(pod *corev1.Pod) bool {
		return v.sentAway(pod) || isSurge(pod) && v.outside(pod) && v.reserved(v.ordinalByName(pod))
	}
	broken := func(pod *corev1.Pod) bool {
		return apiserver.KeyOf(pod) != v.Key && v.stays(pod) && !goes(pod) && v.world.Version(pod) == version && !v.isAvailable(pod) && v.runsSpec(pod) &&
			!v.specified(pod) && !v.checker.creates.unhoped[apiserver.KeyOf(pod)] && !v.checker.outline.silent[apiserver.KeyOf(pod)] && counts(pod)
	}
	return v.count(broken) - v.going(broken)
}

// runsSpec reports whether a pod runs the template in the spec, as far as that is known. Two revisions of one version differ in
// a default of a newer API server. Nothing says what a pod of a lost revision runs, unless that of the spec is lost too.
func (v guard) runsSpec(pod *corev1.Pod) bool {
	template := v.world.TemplateOf(pod.Labels[v1beta1.RevisionLabel])
	if template == nil {
		return !v.world.records(&v.set.Spec.Template)
	}
	return equality.Semantic.DeepEqual(template, &v.set.Spec.Template)
}

// beginsSteps reports whether the set is rolled out in steps, and its status does not speak of this rollout yet. The first step
// keeps pods where they are, and its first writes come before the status.
func (v guard) beginsSteps() bool {
	r := v.set.Status.Rollout
	return len(v.set.Spec.UpdateStrategy.RollingUpdate.Steps) > 0 &&
		(r == nil || v.world.VersionNamed(r.Revision) != v.world.VersionOf(&v.set.Spec.Template))
}

// servedAt returns when a pod of the set was last available, as the manager knows it: its cache may not show yet that one is again.
func (v guard) servedAt() time.Time {
	s := &v.checker.service
	if v.count(v.isAvailable) == 0 && (v.world.now().Sub(s.againAt) < time.Minute || v.missed(s.againAt)) {
		return s.beforeAt
	}
	return s.servedAt
}

// tried reports whether a pod at the current revision was not ready for a minute, or whether that may have been: the manager has started
// again, or managers have deleted pods that were not ready, as they do to move them.
func (v guard) tried() bool {
	fails := func(pod *corev1.Pod, until time.Time) bool {
		return pod != nil && OwnerOf(pod) == v.set.UID && v.world.Version(pod) == v.world.VersionNamed(v.set.Status.CurrentRevision) &&
			!IsReady(pod) && until.Sub(unreadySince(pod)) >= time.Minute
	}
	if v.checker.born[v.Actor] > 0 {
		return true
	}
	for e := range v.world.Store.History(apiserver.Pods) {
		before, _ := e.Old.(*corev1.Pod)
		moves := e.Verb == apiserver.Delete && v.checker.managers[e.Actor] && e.At.After(v.servedAt()) && before != nil && !IsReady(before)
		if moves || fails(before, e.At) {
			return true
		}
	}
	return v.count(func(pod *corev1.Pod) bool { return fails(pod, v.now) }) > 0
}

// missed reports whether the cache shows no pod as it has been since a time.
func (v guard) missed(at time.Time) bool {
	for unseen := range v.view.Unseen(apiserver.Pods) {
		return !unseen.At.After(at)
	}
	return false
}

// passesGuard reports whether a broken pod may be moved although the guard holds, because as many pods as the guard allows have not been
// ready at the version for a minute. That is so if no pod that stays has been available for as long, or if the pod is at neither of the
// two revisions that the set wants.
func (v guard) passesGuard(version string, limit int) bool {
	pod := v.pod()
	stuck := v.count(func(pod *corev1.Pod) bool {
		return IsActive(pod) && v.world.Version(pod) == version && !IsReady(pod) && v.now.Sub(unreadySince(pod)) >= time.Minute
	})
	if pod != nil && stuck >= limit && !mayServe(pod) && v.isStray(pod) {
		return true // it comes back at the current revision
	}
	if served := v.servedAt(); served.IsZero() || v.world.now().Sub(served) >= time.Minute {
		return pod != nil && !mayServe(pod) && v.count(v.isAvailable) == 0 && stuck >= limit
	}
	served := v.count(func(pod *corev1.Pod) bool {
		since := unreadySince(pod)
		if ready, ok := readySince(pod); ok {
			since = ready
		}
		return v.stays(pod) && (v.isAvailable(pod) || v.now.Sub(since) < time.Minute)
	})
	return pod != nil && !mayServe(pod) && served == 0 && stuck >= limit
}

// wasCachedAt reports whether the cache shows a pod at a version, or not at all.
func (v guard) wasCachedAt(pod *corev1.Pod, version string) bool {
	known, ok := v.view.Cached(apiserver.KeyOf(pod)).(*corev1.Pod)
	return !ok || known.UID != pod.UID || v.world.Version(known) == version
}

// movesSilently reports whether the write moves a pod in place and leaves its images.
func (v guard) movesSilently() bool {
	u, ok := v.update()
	return ok && u.sameImages() && v.world.Version(u.before) != v.world.Version(u.after)
}

// movesTo reports whether the write moves a pod to a version, or prepares it for that. It does if it changes the pod's images,
// or deletes a pod of another version that is neither specified nor surplus or surge, nor given up. A prepared pod was judged when it was prepared.
func (v guard) movesTo(version string, deleteMoves bool) bool {
	pod := v.pod()
	if pod == nil || v.prepared(pod) {
		return false
	}
	deletes := v.deletesPod() || v.prepares(v1beta1.LifecyclePreparingDelete)
	switch u, changes := v.update(); {
	case deletes:
		return deleteMoves && IsActive(pod) && v.world.Version(pod) != version && !v.specified(pod) && !v.outside(pod) && !v.surges(pod) && !v.givenUp(pod)
	case !changes, v.world.Version(u.before) == version:
		return false
	default:
		return v.prepares(v1beta1.LifecyclePreparingUpdate) || !u.sameImages() && v.world.Version(u.after) == version
	}
}

// givenUp reports whether an update in place of a pod has had its time. It is recreated then, wherever its successor comes.
func (v guard) givenUp(pod *corev1.Pod) bool {
	if pod.Annotations[inPlaceState] == "" {
		return false
	}
	began := pod.CreationTimestamp.Time
	for e := range v.world.Store.History(apiserver.Pods) {
		before, _ := e.Old.(*corev1.Pod)
		if after, ok := e.New.(*corev1.Pod); ok && after.UID == pod.UID && before != nil && before.Annotations[inPlaceState] != after.Annotations[inPlaceState] {
			began = e.At
		}
	}
	return v.now.Sub(began) >= time.Duration(*v.set.Spec.ProgressDeadlineSeconds)*time.Second
}

// isStray reports whether a pod is neither at the current nor at the update revision.
func (v guard) isStray(pod *corev1.Pod) bool {
	version := v.world.Version(pod)
	return version != v.world.VersionNamed(v.set.Status.CurrentRevision) && version != v.world.VersionOf(&v.set.Spec.Template)
}

// replacedNow counts the pods on nodes that leave that the same plan has deleted. It replaces them.
func (v guard) replacedNow() int {
	n := 0
	for object := range v.view.Cache(apiserver.Pods) {
		pod := apiserver.MustBe[*corev1.Pod](object)
		known := v.pods[apiserver.KeyOf(pod)]
		if OwnerOf(pod) == v.set.UID && IsActive(pod) && Leaves(v.world.nodeOf(pod), pod, v.set) && (known == nil || !IsActive(known)) {
			n++
		}
	}
	return n
}
