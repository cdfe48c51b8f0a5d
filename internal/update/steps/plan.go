// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package steps plans how a rollout in steps proceeds.
//
// The rule: a step is a partition over time and nothing else. The status names the step at work. A step begins with the
// status write that names it: only from then on pods move for it and gates count. So no crash can skip or repeat a step. If
// the status does not, because it was lost or a user edited the steps, the step at work is the smallest that allows as many
// pods at the update revision as there are. After an edit it is the last one if there are more, and these pods stay.
//
// A step that the partition or a pause keeps from moving its pods waits: no soak and no limit of a gate runs meanwhile. Without
// replicas there is no step.
package steps

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Input is the input of [Plan], which does not change it.
type Input struct {
	// Snap is the snapshot, all but its Rollout.
	Snap *snapshot.Set
	// Status is the status that the API server has.
	Status *v1beta1.RollSetStatus
	// Promotion is the value of the annotation that promotes a step.
	Promotion string
	// WasProven is true if the update revision was proven before: going back to it takes no steps.
	WasProven bool
}

// Plan returns which step is at work, what it waits for, and the new status of the rollout.
func Plan(in Input) snapshot.Rollout {
	snap := in.Snap
	sizes := snap.Limits.Steps
	if len(sizes) == 0 || snap.Limits.Replicas == 0 || snap.Strategy() != v1beta1.RollingUpdateStrategy || !snap.Rolling() || snap.Unproven || in.WasProven {
		return snapshot.Rollout{}
	}
	p := planner{Input: in, sizes: sizes, steps: snap.Spec.UpdateStrategy.RollingUpdate.Steps}
	if r := in.Status.Rollout; r != nil && r.Revision == snap.Update.Name {
		p.was = r
	}
	if snap.Rejected {
		return p.givenUp()
	}
	step, begins := p.locate()
	p.out.Keeps = p.keeps(step)
	switch {
	case begins:
		p.begin(step)
	case step > len(sizes):
		p.out.Next = p.was.DeepCopy()
	case p.promoted("all"):
		p.begin(len(sizes) + 1)
	default:
		p.judge(step)
	}
	return p.out
}

// planner plans the step at work. Its methods judge one condition each, on the same status and set.
type planner struct {
	Input
	sizes []int
	steps []v1beta1.RolloutStep
	// was is the status of this rollout; nil if there is none.
	was *v1beta1.RolloutStatus
	// edited is true if the steps are others than when that status was written.
	edited bool
	out    snapshot.Rollout
}

// givenUp returns the rollout of a revision that is rolled back: no step is at work.
func (p *planner) givenUp() snapshot.Rollout {
	next := &v1beta1.RolloutStatus{
		Revision: p.Snap.Update.Name, Steps: int32(len(p.sizes)), Phase: v1beta1.RolloutFailed, Since: p.now(),
	}
	if p.was != nil && p.was.Step == 0 {
		next.Since = p.was.Since
	}
	return snapshot.Rollout{Next: next}
}

// keeps returns how many pods a step keeps at the current revision; none when all are done.
func (p *planner) keeps(step int) int {
	if step > len(p.sizes) {
		return 0
	}
	return p.Snap.Limits.Replicas - max(p.sizes[step-1], p.exceeding(step))
}

// exceeding returns how many pods at the update revision stay although the last step has fewer; 0 if none do. The status records
// how many there were when the steps were edited. Those that are lost since come back at the current revision.
func (p *planner) exceeding(step int) int {
	if step < len(p.sizes) || p.was == nil || p.was.Updated == nil {
		return 0
	}
	return min(p.was.Updated.IntValue(), p.reach())
}

// locate returns the step at work, and whether it is yet to begin. A revision that was given up and is retried begins with
// the first.
func (p *planner) locate() (step int, begins bool) {
	switch {
	case p.was != nil && p.was.Step == 0:
		return 1, true
	case p.was == nil, p.was.Step > p.was.Steps && p.was.Steps != int32(len(p.steps)):
		return p.reached(), true
	case int(p.was.Steps) != len(p.steps), int(p.was.Step) > len(p.steps)+1:
		p.edited = true
	default:
		step = int(p.was.Step)
		p.edited = step <= len(p.steps) && (p.was.Updated == nil || *p.was.Updated != p.steps[step-1].Updated) &&
			p.exceeding(step) <= p.sizes[step-1]
	}
	if p.edited {
		return min(p.reached(), len(p.steps)), true
	}
	return step, false
}

// reached returns the smallest step that allows as many pods at the update revision as there are; one more than all if none
// does.
func (p *planner) reached() int {
	pods := p.updated()
	for i, size := range p.sizes {
		if pods <= size {
			return i + 1
		}
	}
	return len(p.sizes) + 1
}

// begin makes a step the one at work. Its gates are closed, whatever their earlier status.
func (p *planner) begin(step int) {
	next := &v1beta1.RolloutStatus{
		Revision: p.Snap.Update.Name, Step: int32(step), Steps: int32(len(p.steps)), Phase: v1beta1.RolloutRolling, Since: p.now(),
	}
	p.out.Next, p.out.Turning = next, true
	if step > len(p.steps) {
		return
	}
	next.Updated = &p.steps[step-1].Updated
	if p.edited && p.updated() > p.sizes[step-1] {
		there := p.reach()
		next.Updated = new(intstr.FromInt(there))
		p.out.Keeps = p.Snap.Limits.Replicas - there
	}
	if p.names(strconv.Itoa(step)) || p.names("all") && p.stale() {
		next.IgnoredPromotion = p.Promotion
	}
	for _, g := range p.steps[step-1].Gates {
		p.out.Gates = append(p.out.Gates, g.ConditionType)
	}
	p.out.Begins, p.out.Closed = p.out.Gates, p.out.Gates
}

// names reports whether the promotion names this revision and a step, or all.
func (p *planner) names(what string) bool { return p.Promotion == p.Snap.Update.Name+"/"+what }

// stale reports whether the promotion was there before this rollout began.
func (p *planner) stale() bool {
	return p.was == nil || p.was.Step == 0 || p.was.IgnoredPromotion == p.Promotion
}

// promoted reports whether a user promoted a step, or all, since the step at work began.
func (p *planner) promoted(what string) bool {
	return p.names(what) && p.Promotion != p.was.IgnoredPromotion
}

// now returns the time of the observation in whole seconds, as the API keeps it. It is rounded up, so that nothing ends
// early.
func (p *planner) now() *metav1.Time { return ceil(p.Snap.Now) }

func ceil(t time.Time) *metav1.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return &metav1.Time{Time: whole}
}
