// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package status computes the status of a set.
//
// The rule: a status is computed whole from what one reconcile observed, planned and was refused; it is never patched. The
// previous status is used only for what no observation can show: when a condition last changed, whether the wanted state was
// reached once, and the generation, which never decreases. The same observation makes the same status, byte for byte, so
// that nothing is written while nothing changes.
package status

import (
	"cmp"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Input is everything that a status depends on. Compute does not change it.
type Input struct {
	// Snap is the snapshot.
	Snap *snapshot.Set
	// Generation is the generation of the spec that was observed.
	Generation int64
	// Previous is the status that the API server has; nil if there is none.
	Previous *v1beta1.RollSetStatus
	// Plan is the plan of this reconcile.
	Plan action.Plan
	// Failure is the write that the API server refused last, until a write of its kind succeeds; nil if there is none.
	// Refusals in the Set need not be repeated.
	Failure *Failure
	// Aborts is true if a user asks to give up the update revision, and has not asked to retry it.
	Aborts bool
	// Invalid says what is wrong with a spec that is older than the validation that would have refused it; empty for any
	// other. Nothing is planned for such a set.
	Invalid string
	// Deleting is true for a set that is being deleted. Nothing is planned for it.
	Deleting bool
	// CollisionCount counts the names of revisions that were taken; nil counts as 0.
	CollisionCount *int32
	// VolumeClaims is how many claims match their templates.
	VolumeClaims []v1beta1.VolumeClaimStatus
	// Progress is the Progress that the set's last reconcile returned; the zero value if it is lost.
	Progress Progress
}

// Failure is a write that was refused.
type Failure struct {
	// Reason is one of FailedCreate, FailedDelete, FailedUpdate, ClaimConflict, NameConflict and InvalidTemplate.
	Reason string
	// Message is the API server's message.
	Message string
}

// Report is a status, with what follows from it.
type Report struct {
	// Status is the whole status.
	Status v1beta1.RollSetStatus
	// Blocking is the kind of the first thing that the set waits for; empty if there is none.
	Blocking Blocking
	// DeadlineExceeded is true if a rollout made no progress for progressDeadlineSeconds.
	DeadlineExceeded bool
	// Verdict is the verdict that rejects the update revision now; empty if it is not rejected. It is rejected if its
	// rollout failed at a step, or made no progress and one of its pods failed, the set asks for a rollback, and there is a
	// revision to go back to.
	Verdict string
	// Progress is for the Input of the next reconcile.
	Progress Progress
	// RequeueAfter is when time alone will change the status: a pod becomes available, or the deadline passes. Zero means
	// never.
	RequeueAfter time.Duration
}

// Compute returns the status of a set.
func Compute(in Input) Report {
	f := gather(&in)
	t := clock{f}.tellTime()
	blocker := obstacles{f}.blocker()
	r := Report{
		Blocking:         blocker.kind,
		DeadlineExceeded: t.exceeded,
		Verdict:          stepper{f}.rejection(t),
		Progress:         t.progress,
		RequeueAfter:     counters{f}.untilAvailable(),
	}
	waits := []time.Duration{t.wait, f.snap.Rollout.Wake}
	if t.exceeded {
		waits = append(waits, f.untilFailure())
	}
	for _, wait := range waits {
		r.RequeueAfter = action.Sooner(r.RequeueAfter, wait)
	}
	r.Status = counters{f}.counters()
	r.Status.Conditions = conditions{f}.conditions(t, blocker)
	return r
}

// counters fills the numbers of the status.
type counters struct{ *facts }

// counters returns the status without its conditions.
func (f counters) counters() v1beta1.RollSetStatus {
	update, current := f.revision(f.snap.Update.Name), f.revision(f.currentName())
	s := v1beta1.RollSetStatus{
		ObservedGeneration:       f.generation(),
		Replicas:                 clamp(f.total.active),
		ReadyReplicas:            clamp(f.total.ready),
		AvailableReplicas:        clamp(f.total.available),
		CurrentReplicas:          clamp(current.active),
		UpdatedReplicas:          clamp(update.active),
		UpdatedReadyReplicas:     clamp(update.ready),
		UpdatedAvailableReplicas: clamp(update.available),
		ExpectedUpdatedReplicas:  clamp(f.snap.Limits.Replicas - f.snap.Partition()),
		CurrentRevision:          cmp.Or(f.currentName(), f.previous.CurrentRevision),
		UpdateRevision:           cmp.Or(f.snap.Update.Name, f.previous.UpdateRevision),
		IssuedIDs:                max(f.previous.IssuedIDs, int64(f.snap.Issued)),
		ReachedReplicas:          f.reached(),
		Revisions:                f.listRevisions(),
		Images:                   f.images(),
		Rollout:                  stepper(f).rollout(),
		VolumeClaims:             slices.Clone(f.in.VolumeClaims),
	}
	if f.in.CollisionCount != nil {
		s.CollisionCount = new(*f.in.CollisionCount)
	}
	// The selector cannot be malformed: the API server parses it when it admits the object.
	if selector, err := metav1.LabelSelectorAsSelector(f.snap.Spec.Selector); err == nil {
		s.LabelSelector = selector.String()
	}
	return s
}

// reached returns how many pods the set has had at once; 0 if it has neither a limit nor failure domains, for which that matters.
func (f counters) reached() int32 {
	if s := f.snap.Spec.ScaleStrategy; (s == nil || s.MaxUnavailable == nil) && f.snap.Domains() == nil {
		return 0
	}
	return clamp(f.snap.Reached)
}

// generation returns the generation that the status is about. A cache that is behind must not decrease it. It is not raised
// without an update revision, because the two together say that this revision is the one of that generation.
func (f *facts) generation() int64 {
	if f.snap.Update.Name == "" {
		return f.previous.ObservedGeneration
	}
	return max(f.in.Generation, f.previous.ObservedGeneration)
}

// currentName returns the name of the current revision. A revision that was just proven is.
func (f counters) currentName() string {
	if f.proven {
		return f.snap.Update.Name
	}
	return f.snap.Current.Name
}

// maxRevisions is how many revisions the API allows a status to list.
const maxRevisions = 100

// listRevisions lists the revisions that active pods run, oldest first. Only the name of a stray's revision is known. It is
// older than the update revision, and listed before those with known numbers.
func (f counters) listRevisions() []v1beta1.RevisionStatus {
	numbers := map[string]int64{f.snap.Current.Name: f.snap.Current.Number, f.snap.Update.Name: f.snap.Update.Number}
	var list []v1beta1.RevisionStatus
	for name, n := range f.revisions {
		if name != "" && n.active > 0 {
			list = append(list, v1beta1.RevisionStatus{
				Name: name, Replicas: clamp(n.active), AvailableReplicas: clamp(n.available),
			})
		}
	}
	slices.SortFunc(list, func(a, b v1beta1.RevisionStatus) int {
		return cmp.Or(cmp.Compare(numbers[a.Name], numbers[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return list[max(0, len(list)-maxRevisions):]
}

const (
	// maxImages is how many images the API allows a status to list.
	maxImages = 100
	// maxImage is how many bytes of each it allows. The API server allows more in a template.
	maxImage = 1024
)

// images returns the images of the revisions that active pods run, each once.
func (f counters) images() []string {
	var images []string
	for _, r := range f.listRevisions() {
		template := f.snap.Known[r.Name].Template
		if template == nil {
			continue
		}
		for i := range template.Spec.Containers {
			if image := podstate.Printable(template.Spec.Containers[i].Image, maxImage); !slices.Contains(images, image) && len(images) < maxImages {
				images = append(images, image)
			}
		}
	}
	return images
}

// untilAvailable returns how long until the first pod becomes available by being ready for long enough; zero if none will.
func (f counters) untilAvailable() time.Duration {
	var first time.Duration
	for r := range f.snap.Unsteady() {
		first = action.Sooner(first, availableIn(f.snap, r))
	}
	return first
}

// availableIn returns how long until a pod of a set has been ready for long enough; zero if it is available, or waits for something
// else. A pod that became ready in the future became ready now, because clocks differ.
func availableIn(snap *snapshot.Set, r *snapshot.Replica) time.Duration {
	if !r.Active() || !r.Ready || r.Available {
		return 0
	}
	return max(0, snap.MinReady()-max(0, snap.Now.Sub(r.ReadySince)))
}

// clamp makes a count an int32 that is not negative.
func clamp(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
