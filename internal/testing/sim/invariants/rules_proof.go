// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// proofs holds what managers have found out about revisions.
type proofs struct {
	// seen holds the revisions that a manager saw proven.
	seen map[numbered]bool
	// begun is when each revision was made first, on the clock of the manager that made it.
	begun map[apiserver.Key]time.Time
}

// numbered is a revision by its name, and its number when it was last rolled out.
type numbered struct {
	name   string
	number int64
}

// everSaw reports whether a manager ever saw a revision proven.
func (p *proofs) everSaw(name string) bool {
	for r := range p.seen {
		if r.name == name {
			return true
		}
	}
	return false
}

// proof is what the caches of a manager show about a revision.
type proof struct{ *verdict }

// notesTheTruth checks that a revision is marked as proven only if the manager's cache shows that it is. Either it is that of the
// spec, and a pod of it is available in each place. Or the spec has another, this one is the newest before it, no pod that stays is at
// the one that was proven last, and no more than maxUnavailable pods of it are missing.
func notesTheTruth(v *verdict) string {
	is, ok := v.New.(*appsv1.ControllerRevision)
	was, existed := v.Old.(*appsv1.ControllerRevision)
	if !ok || v.set == nil {
		return ""
	}
	note, noted := is.Annotations[completed]
	switch {
	case !existed && noted && note != "0":
		return "a new revision is proven"
	case !existed, was.Annotations[completed] == note, !isNumber(was.Annotations[completed]):
		return "" // a missing or unreadable note is written anew from the status
	case v.checker.proofs.seen[numbered{is.Name, was.Revision}], v.set.Status.CurrentRevision == is.Name && v.checker.proofs.everSaw(is.Name):
		return "" // it was proven before, and that could not be written or was lost
	default:
		return proof{v}.unproven(is)
	}
}

// givesUpWithReason checks that a revision is rejected only for what the manager's cache shows: because a user asks for it, or because
// the deadline has passed and a pod of it is there that does not become available. Gates judge the steps.
func givesUpWithReason(v *verdict) string {
	is, ok := v.New.(*appsv1.ControllerRevision)
	was, existed := v.Old.(*appsv1.ControllerRevision)
	if !ok || !existed || v.set == nil {
		return ""
	}
	_, rejected := was.Annotations[rejection]
	switch why := is.Annotations[rejection]; {
	case rejected, why == "", strings.HasPrefix(why, "StepFailed"):
		return ""
	case why == "Aborted":
		if asked := v.set.Annotations[v1beta1.AbortAnnotation]; asked != is.Name {
			return fmt.Sprintf("%s is aborted, and the user asks it of %q", is.Name, asked)
		}
		return ""
	}
	made := proof{v}.madeAt(is)
	// A manager whose clock was set back counts from when it saw progress by its new one.
	if age := max(v.now.Sub(made), v.world.now().Sub(made)); age < time.Duration(*v.set.Spec.ProgressDeadlineSeconds)*time.Second-time.Second {
		return fmt.Sprintf("%s is rejected %s after it was made", is.Name, age)
	}
	failed := func(pod *corev1.Pod) bool {
		return v.world.Version(pod) == v.world.VersionNamed(is.Name) && pod.DeletionTimestamp == nil && (!v.isAvailable(pod) || pod.Annotations[inPlaceState] != "") && len(pod.Spec.SchedulingGates) == 0
	}
	if !slices.ContainsFunc(v.cached(), failed) {
		return is.Name + " is rejected, and none of its pods is there and unavailable"
	}
	return ""
}

// begins notes when a revision is made for the first time.
func (v proof) begins() {
	if _, again := v.checker.proofs.begun[v.Key]; !again && v.Key.Kind == apiserver.Revisions && v.Verb == apiserver.Create {
		v.checker.proofs.begun[v.Key] = v.now
	}
}

// madeAt returns when a revision was made first. A user may have deleted it meanwhile, and the manager's clock may be behind.
func (v proof) madeAt(is *appsv1.ControllerRevision) time.Time {
	made := is.CreationTimestamp.Time
	if begun, known := v.checker.proofs.begun[v.Key]; known && begun.Before(made) {
		made = begun
	}
	for e := range v.world.Store.History(apiserver.Revisions) {
		if e.Key == v.Key && e.Verb == apiserver.Create && e.New.GetCreationTimestamp().Time.Before(made) {
			made = e.New.GetCreationTimestamp().Time
		}
	}
	return made
}

// watch records the revisions that the manager of a reconcile sees proven. It may be unable to write that for a while, or to own
// the object of the update revision.
func (v proof) watch() {
	if v.set == nil {
		return
	}
	seen := v.checker.proofs.seen
	for obj := range v.view.Cache(apiserver.Revisions) {
		r := apiserver.MustBe[*appsv1.ControllerRevision](obj)
		if !seen[numbered{r.Name, r.Revision}] && (metav1.IsControlledBy(r, v.set) || r.Name == v.set.Status.UpdateRevision) && v.unproven(r) == "" {
			seen[numbered{r.Name, r.Revision}] = true
		}
	}
}

// sawProven reports whether a revision is the one that was proven last, or a manager saw it proven since it was last rolled out. The
// status may not say so yet.
func (v proof) sawProven(name string) bool {
	r := v.world.revision(name)
	if r == nil {
		return false
	}
	// What a step is at work for may still be given up.
	if _, stepping := v.world.stepAtWork(v.set); !stepping && v.checker.proofs.seen[numbered{name, r.Revision}] {
		return true
	}
	last, highest := "", 0
	for other := range apiserver.Each[*appsv1.ControllerRevision](v.world.Store) {
		if number, err := strconv.Atoi(other.Annotations[completed]); err == nil && number > highest && metav1.IsControlledBy(other, v.set) {
			last, highest = other.Name, number
		}
	}
	return last == name
}

// sawUnproven reports whether the manager's cache does not show the current revision, or shows it as one that was never complete.
// Another manager may have noted meanwhile that it is, or the set is gone and has left it behind.
func (v proof) sawUnproven() bool {
	current, shown := v.view.Cached(v.world.revisionKey(v.set.Status.CurrentRevision)).(*appsv1.ControllerRevision)
	return !shown && v.set.Status.CurrentRevision != "" || unproven(v.set, current)
}

// unproven returns why the manager's cache does not show that a revision is proven.
func (v proof) unproven(is *appsv1.ControllerRevision) string {
	if *v.set.Spec.Replicas == 0 {
		return is.Name + " is proven by a set without replicas"
	}
	version, l := v.world.VersionNamed(is.Name), limitsOf(&v.set.Spec)
	surplus := func(pod *corev1.Pod) bool { return !IsActive(pod) || v.outside(pod) || v.surges(pod) } // surge that goes again has no place
	members := slices.DeleteFunc(v.cached(), surplus)
	available := 0
	for _, pod := range members {
		if v.world.Version(pod) == version && v.isAvailable(pod) {
			available++
		}
	}
	isUpdate := version == v.world.VersionOf(&v.set.Spec.Template)
	if isUpdate && available >= l.Replicas {
		return ""
	}
	if why := v.servedLast(is, available, members); why != "" {
		return why
	}
	template := v.world.TemplateOf(is.Name)
	if isUpdate && (template == nil || equality.Semantic.DeepEqual(template, &v.set.Spec.Template)) { // a default may stand for an edit
		return fmt.Sprintf("%s is proven by %d of %d pods", is.Name, available, l.Replicas)
	}
	return ""
}

// countAt returns how many pods are at a revision.
func countAt(pods []*corev1.Pod, name string) (n int) {
	for _, pod := range pods {
		if pod.Labels[v1beta1.RevisionLabel] == name {
			n++
		}
	}
	return n
}

// servedLast returns why a revision is not what served last before the template in the spec.
func (v proof) servedLast(is *appsv1.ControllerRevision, available int, members []*corev1.Pod) string {
	l := limitsOf(&v.set.Spec)
	if available < max(1, l.Replicas-l.maxUnavailable) {
		return fmt.Sprintf("%s has served with %d of %d pods, and maxUnavailable is %d", is.Name, available, l.Replicas, l.maxUnavailable)
	}
	if _, rejected := is.Annotations[rejection]; rejected {
		return is.Name + " was rejected, and is proven"
	}
	var last string
	var highest int
	update := v.world.VersionOf(&v.set.Spec.Template)
	for obj := range v.view.Cache(apiserver.Revisions) {
		other := apiserver.MustBe[*appsv1.ControllerRevision](obj)
		if !metav1.IsControlledBy(other, v.set) || other.Name == is.Name {
			continue
		}
		if other.Revision > is.Revision && v.world.VersionNamed(other.Name) != update && v.world.TemplateOf(other.Name) != nil {
			return fmt.Sprintf("%s is proven, and %s is newer", is.Name, other.Name)
		}
		if number, err := strconv.Atoi(other.Annotations[completed]); err == nil && number > highest {
			last, highest = other.Name, number
		}
	}
	staying := 0
	if last != "" {
		staying = countAt(members, last)
	}
	if surplus := max(0, len(members)-l.Replicas); staying > surplus {
		return fmt.Sprintf("%s is proven, and %d pods are at %s", is.Name, staying, last)
	}
	return ""
}

// knewAt reports whether the manager knew a pod at a revision when it planned: the cache shows it there, or the manager has brought it
// there. The answer to another write of the pod may show what another manager did.
func (v proof) knewAt(pod *corev1.Pod, revision string) bool {
	isAt := func(obj client.Object) bool {
		p, ok := obj.(*corev1.Pod)
		return ok && p.UID == pod.UID && p.Labels[v1beta1.RevisionLabel] == revision
	}
	if isAt(v.view.Cached(apiserver.KeyOf(pod))) {
		return true
	}
	for own := range v.view.Unseen(apiserver.Pods) {
		if own.Actor == v.Actor && isAt(own.New) && !isAt(own.Old) {
			return true
		}
	}
	return false
}
