// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// The bounds of what a manager may write. All are well above what a correct controller needs, and far below the writes
// of a hot loop.
const (
	maxInARow     = 6                // writes of one manager to one pod, claim or revision without a write of another client between them
	maxWasted     = 40               // pods that a manager created and deleted again, with no write of another client to them or to the set
	maxStatuses   = 10               // writes of the status in a second, by one life of a manager
	maxFailures   = 60               // failures of the same write in failureWindow, by one life of a manager: of two kinds of patches of one pod
	failureWindow = 10 * time.Minute //
	rewrittenRest = 10 * time.Second // for maxRewritten patches that admission changes in the same way, by one life of a manager
	maxRewritten  = 1                // the answer tells
	maxMisfits    = 12               // pods in a minute that admission makes none of the set's, by one life of a manager
	maxMessage    = 4 << 10          // bytes of a message in a condition
	maxNotes      = 16 << 10         // bytes of the annotations of a pod
)

// bounds records what the rules about too many writes need.
type bounds struct {
	inARow   map[apiserver.Key]streak
	statuses map[string][]time.Time
	failures map[string][]time.Time
	// rewritten is when patches were last changed by admission, and misfits when pods were made that are none of the set's.
	rewritten map[string][]time.Time
	misfits   []time.Time
	wasted    int // pods that managers created and deleted before anything happened to them
}

// streak counts the writes in a row of one manager to an object during one generation of the set.
type streak struct {
	actor      string
	generation int64 // of the set that the manager knows
	writes     int
	lives      int  // objects of the same name that were deleted
	created    bool // by the first of the writes
}

func newBounds() *bounds {
	return &bounds{inARow: make(map[apiserver.Key]streak), statuses: make(map[string][]time.Time), failures: make(map[string][]time.Time), rewritten: make(map[string][]time.Time)}
}

// restart forgets what a manager did before its restart, because it cannot know. It does not know either which deletions were
// refused, so it may prepare these pods again.
func (b *bounds) restart(manager string) {
	delete(b.statuses, manager)
	maps.DeleteFunc(b.inARow, func(key apiserver.Key, _ streak) bool {
		return len(b.failures[manager+" "+apiserver.Write{Verb: apiserver.Delete, Key: key}.String()]) > 0
	})
	clear(b.failures)
	b.forgetRewritten()
}

func (b *bounds) forgetRewritten() {
	clear(b.rewritten)
	b.misfits = nil
}

// rewrite records a write that admission changed. It returns what is wrong if the same was tried a moment ago.
func (b *bounds) rewrite(w apiserver.Write, generation int64, now time.Time) string {
	if w.Verb == apiserver.Patch {
		what := rewrittenBy(w, generation)
		if w.Key.Kind == apiserver.RollSets { // a status that differs from the last one may be that of before
			maps.DeleteFunc(b.rewritten, func(other string, _ []time.Time) bool {
				return other != what && strings.HasPrefix(other, w.Actor+" ") && strings.Contains(other, " "+string(apiserver.RollSets)+" ")
			})
		}
		b.rewritten[what] = within(append(b.rewritten[what], now), rewrittenRest)
		if n := len(b.rewritten[what]); n > maxRewritten {
			return fmt.Sprintf("I10 hot loop: %s was changed by admission %d times in %s", what, n, rewrittenRest)
		}
	}
	return ""
}

// rewrittenBy returns what tells a patch that admission changes from others. Generation is that of the set that the manager knows.
func rewrittenBy(w apiserver.Write, generation int64) string {
	return fmt.Sprintf("%s %s %s for generation %d", w.Actor, w, patchedKeys(w.Body), generation)
}

// lost forgets the last time that admission changed a write: the manager got no answer, and does not know.
func (b *bounds) lost(w apiserver.Write, generation int64) {
	what := rewrittenBy(w, generation)
	b.rewritten[what] = b.rewritten[what][:max(0, len(b.rewritten[what])-1)]
}

// misfit records a pod that admission made none of the set's. It returns what is wrong if there were too many.
func (b *bounds) misfit(now time.Time) string {
	if b.misfits = within(append(b.misfits, now), time.Minute); len(b.misfits) > maxMisfits {
		return fmt.Sprintf("I10 hot loop: %d pods in a minute that are none of the set's", len(b.misfits))
	}
	return ""
}

// patchedKeys returns the object that a patch is for, what it changes of metadata, and the status that it writes.
func patchedKeys(body []byte) string {
	var says struct {
		Status   json.RawMessage
		Metadata struct {
			UID                 string
			Labels, Annotations map[string]any
			OwnerReferences     []any
		}
	}
	if json.Unmarshal(body, &says) != nil {
		return ""
	}
	return fmt.Sprint(says.Metadata.UID, " ", slices.Sorted(maps.Keys(says.Metadata.Labels)), slices.Sorted(maps.Keys(says.Metadata.Annotations)), len(says.Metadata.OwnerReferences), string(says.Status))
}

// see records a write of any client. For a manager, generation is the generation of the set that it knows.
func (b *bounds) see(e *apiserver.Entry, byManager bool, generation int64) {
	if e.Gone() {
		defer b.forget(e.Key)
	}
	switch {
	case byManager && e.Key.Kind == apiserver.RollSets:
		b.statuses[e.Actor] = within(append(b.statuses[e.Actor], e.At), time.Second)
		maps.DeleteFunc(b.rewritten, func(what string, _ []time.Time) bool { // what another manager wants now differs from another status
			return strings.Contains(what, " "+string(apiserver.RollSets)+" ") && !strings.HasPrefix(what, e.Actor+" ")
		})
	case byManager:
		if e.Key.Kind == apiserver.Revisions { // two managers that want different revisions take turns to number theirs as the newest
			maps.DeleteFunc(b.inARow, func(key apiserver.Key, s streak) bool { return key.Kind == apiserver.Revisions && s.actor != e.Actor })
		}
		last := b.inARow[e.Key]
		// Two managers with different caches may undo each other's work, and a manager with a late cache its own.
		if last.actor != e.Actor || last.generation != generation {
			last = streak{actor: e.Actor, generation: generation, created: e.Verb == apiserver.Create}
		}
		if last.created && e.Verb == apiserver.Delete && e.Key.Kind == apiserver.Pods {
			b.wasted++
		}
		last.writes++
		b.inARow[e.Key] = last
	case e.Key.Kind == apiserver.RollSets:
		clear(b.inARow) // the set has changed
		clear(b.failures)
		b.forgetRewritten()
		b.wasted = 0
	case e.Actor == User && e.Key.Kind == apiserver.Pods && e.Subresource == "status":
		// The gate of one pod decides what the guard allows for the others.
		maps.DeleteFunc(b.inARow, func(key apiserver.Key, _ streak) bool { return key.Kind == apiserver.Pods })
	default:
		delete(b.inARow, e.Key)
	}
}

// forget drops the writes to an object that is gone, because the next one of its name is another object. It counts how many went in a row.
func (b *bounds) forget(key apiserver.Key) {
	maps.DeleteFunc(b.rewritten, func(what string, _ []time.Time) bool { return strings.Contains(what, " "+key.String()+" ") })
	last := b.inARow[key]
	last.lives++
	last.writes = last.lives
	b.inARow[key] = last
}

// try records the outcome of a write that a manager tried. It returns what is wrong if there were too many.
func (b *bounds) try(w apiserver.Write, err error, now time.Time) string {
	what := w.Actor + " " + w.String()
	if err == nil {
		delete(b.failures, what)
		return ""
	}
	b.failures[what] = within(append(b.failures[what], now), failureWindow)
	limit := maxFailures
	if w.DryRun { // which of the two revisions of the set it is about is not known
		limit *= 2
	}
	if n := len(b.failures[what]); n > limit {
		return fmt.Sprintf("I10 hot loop: %s failed %d times in %s: %v", what, n, failureWindow, err)
	}
	return ""
}

// writesLittle checks I10 and I11: a manager does not write the same object over and over, and writes the status of a
// set at a bounded rate.
func writesLittle(v *verdict) string {
	switch b := v.checker.bounds; {
	case b.inARow[v.Key].writes > maxInARow:
		return fmt.Sprintf("the object was written %d times in a row, and nothing else happened to it", b.inARow[v.Key].writes)
	case b.wasted > maxWasted:
		return fmt.Sprintf("%d pods were created and deleted again, and nothing else happened to them", b.wasted)
	case len(b.statuses[v.Actor]) > maxStatuses:
		return fmt.Sprintf("the status was written %d times in a second", len(b.statuses[v.Actor]))
	default:
		return ""
	}
}

// staysSmall checks I15: nothing that a manager writes grows without bound.
func staysSmall(v *verdict) string {
	switch o := v.New.(type) {
	case *v1beta1.RollSet:
		for i := range o.Status.Conditions {
			if n := len(o.Status.Conditions[i].Message); n > maxMessage {
				return fmt.Sprintf("condition %s has a message of %d bytes", o.Status.Conditions[i].Type, n)
			}
		}
	case *corev1.Pod:
		if n := noteBytes(o); n > maxNotes && n > noteBytes(v.Old) {
			return fmt.Sprintf("the pod has %d bytes of annotations now", n)
		}
	}
	return ""
}

func noteBytes(obj client.Object) int {
	if obj == nil {
		return 0
	}
	n := 0
	for key, value := range obj.GetAnnotations() {
		n += len(key) + len(value)
	}
	return n
}

// runsSpec reports whether a pod runs the template in the spec, as far as that is known. Two revisions of one version differ in
// a default of a newer API server. Nothing says what a pod of a lost revision runs, unless that of the spec is lost too.
func (v *verdict) runsSpec(pod *corev1.Pod) bool {
	template := v.world.TemplateOf(pod.Labels[v1beta1.RevisionLabel])
	if template == nil {
		return !v.world.records(&v.set.Spec.Template)
	}
	return equality.Semantic.DeepEqual(template, &v.set.Spec.Template)
}

// guardsMoves checks the guard: while the allowed number of pods at the update revision is unavailable, no other pod is
// moved to it, by a delete or in place. It applies only where every pod is wanted at that revision and none is surplus.
func guardsMoves(v *verdict) string {
	if v.set == nil || v.set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy || v.world.Rejected(v.set) {
		return ""
	}
	l, active := v.world.Limits(v.set), v.count(IsActive)
	update := v.world.VersionOf(&v.set.Spec.Template)
	if placed := active - v.count(v.surges) + v.replacedNow(); l.Partition > 0 || v.beginsSteps() || !v.movesTo(update, placed <= l.Replicas) {
		return ""
	}
	away := v.count(v.sentAway)
	surge, broken := v.count(v.surges)-away, v.brokenAt(update, func(*corev1.Pod) bool { return true })
	l.maxSurge = max(l.maxSurge, surge) // marked pods go again, also those that a user marked
	if limit := max(1, l.maxUnavailable+min(l.maxSurge, max(surge, active-away-l.Replicas))); broken >= limit && !v.passesGuard(update, limit) {
		return fmt.Sprintf("%d pods at %s are unavailable already, at most %d may be", broken, update, limit)
	}
	return ""
}

// brokenAt counts the unavailable pods of a version that stay and that fulfill a condition, without the pod of the write.
func (v *verdict) brokenAt(version string, counts func(*corev1.Pod) bool) int {
	goes := func(pod *corev1.Pod) bool {
		return v.sentAway(pod) || isSurge(pod) && v.outside(pod) && v.reserved(v.ordinalByName(pod))
	}
	broken := func(pod *corev1.Pod) bool {
		return apiserver.KeyOf(pod) != v.Key && v.stays(pod) && !goes(pod) && v.world.Version(pod) == version && !v.isAvailable(pod) && v.runsSpec(pod) &&
			!v.specified(pod) && !v.checker.creates.unhoped[apiserver.KeyOf(pod)] && !v.checker.outline.silent[apiserver.KeyOf(pod)] && counts(pod)
	}
	return v.count(broken) - v.going(broken)
}

// keepsTheGood checks the guard for new pods: while as many pods at the update revision are unavailable as an update and its
// surge may break, no pod comes at that revision, whatever is missing. Then a bad template breaks no more, whatever else
// happens to the set.
func keepsTheGood(v *verdict) string {
	if v.set == nil || !v.createsPod() || v.set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy ||
		v.world.Rejected(v.set) || v.world.unproven(v.set) || v.sawUnproven() || v.beginsSteps() {
		return ""
	}
	if v.world.now().Sub(v.servedAt()) >= time.Minute {
		return "" // nothing is left to protect
	}
	if v.sawProven(v.New.GetLabels()[v1beta1.RevisionLabel]) {
		return ""
	}
	update, current, created := v.world.VersionOf(&v.set.Spec.Template), v.world.currentTemplate(v.set), apiserver.MustBe[*corev1.Pod](v.New)
	if current == nil || v.world.VersionOf(current) == update || v.world.Version(created) != update || v.wasThere(update, created) {
		return ""
	}
	l := v.world.Limits(v.set)
	counts := func(pod *corev1.Pod) bool {
		// Those that a hook let go on were judged when they were prepared, and those below the partition go back. The plan was made before
		// the answer to a write showed another version.
		return !v.changed(pod) && !v.belowPartition(pod, l) && v.wasCachedAt(pod, update)
	}
	if broken, limit := v.brokenAt(update, counts), max(1, l.maxUnavailable+max(l.maxSurge, v.count(isSurge))); broken >= limit {
		return fmt.Sprintf("one more pod at %s, where %d are unavailable already, at most %d may be", update, broken, limit)
	}
	return ""
}

// beginsSteps reports whether the set is rolled out in steps, and its status does not speak of this rollout yet. The first step
// keeps pods where they are, and its first writes come before the status.
func (v *verdict) beginsSteps() bool {
	r := v.set.Status.Rollout
	return len(v.set.Spec.UpdateStrategy.RollingUpdate.Steps) > 0 &&
		(r == nil || v.world.VersionNamed(r.Revision) != v.world.VersionOf(&v.set.Spec.Template))
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

// servedAt returns when a pod of the set was last available, as the manager knows it: its cache may not show yet that one is again.
func (v *verdict) servedAt() time.Time {
	s := &v.checker.service
	if v.count(v.isAvailable) == 0 && v.world.now().Sub(s.againAt) < time.Minute {
		return s.beforeAt
	}
	return s.servedAt
}

// passesGuard reports whether a broken pod may be moved although the guard holds, because as many pods as the guard allows have not been
// ready at the version for a minute. That is so if no pod that stays has been available for as long, or if the pod is at neither of the
// two revisions that the set wants.
func (v *verdict) passesGuard(version string, limit int) bool {
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
func (v *verdict) wasCachedAt(pod *corev1.Pod, version string) bool {
	known, ok := v.checker.reconcile.View.Cached(apiserver.KeyOf(pod)).(*corev1.Pod)
	return !ok || known.UID != pod.UID || v.world.Version(known) == version
}

// belowPartition reports whether a pod has an ordinal below the partition, so that it goes back to the current revision.
func (v *verdict) belowPartition(pod *corev1.Pod, l Limits) bool {
	return v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity && slices.Index(v.inUse(), v.ordinalByName(pod)) < l.Partition && !v.outside(pod)
}

// movesSilently reports whether the write moves a pod in place and leaves its images.
func (v *verdict) movesSilently() bool {
	u, ok := v.update()
	return ok && u.sameImages() && v.world.Version(u.before) != v.world.Version(u.after)
}

// movesTo reports whether the write moves a pod to a version, or prepares it for that. It does if it changes the pod's images,
// or deletes a pod of another version that is neither specified nor surplus or surge, nor given up. A prepared pod was judged when it was prepared.
func (v *verdict) movesTo(version string, deleteMoves bool) bool {
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
func (v *verdict) givenUp(pod *corev1.Pod) bool {
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
