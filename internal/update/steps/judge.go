// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// judge sets what the step at work waits for, and begins the next one if it waits for nothing.
func (p *planner) judge(step int) {
	spec := &p.steps[step-1]
	next := p.was.DeepCopy()
	if p.Promotion != next.IgnoredPromotion {
		next.IgnoredPromotion = ""
	}
	available, from := p.available()
	since := p.since(available, from)
	p.out.Waits = p.Snap.Paused() || !available && p.Snap.Limits.Partition > p.out.Keeps
	p.readGates(spec, since.Time, available && !p.out.Waits)
	next.Since, next.Until = since, nil

	soaked := since.Add(time.Duration(spec.SoakSeconds) * time.Second)
	now := p.Snap.Now
	switch {
	case p.out.Failure != "":
		next.Phase = v1beta1.RolloutFailed
	case p.Snap.Paused():
		if awaits := next.Phase == v1beta1.RolloutPaused && p.was.Since != nil; !awaits || !available {
			next.Since = nil // what it has soaked counts only if it has done so
		}
		next.Phase = v1beta1.RolloutPaused
	case !available:
		next.Phase = v1beta1.RolloutRolling
	case spec.SoakSeconds > 0 && now.Before(soaked):
		next.Phase, next.Until = v1beta1.RolloutSoaking, &metav1.Time{Time: soaked}
		p.wakeAt(soaked)
	case len(p.out.Closed) > 0:
		next.Phase, next.Until = v1beta1.RolloutGated, p.firstTimeout(spec, next.Since.Time)
	case spec.Pause && !p.promoted(strconv.Itoa(step)):
		next.Phase = v1beta1.RolloutPaused
	default:
		keeps := p.out.Keeps
		p.out = snapshot.Rollout{Keeps: keeps}
		p.begin(step + 1)
		return
	}
	p.out.Next = next
}

// since returns when the pods of the step became available or, until they are, when they became unavailable. A date in the
// future comes from a wrong clock.
func (p *planner) since(available bool, from time.Time) *metav1.Time {
	was, now := p.was.Since, p.now()
	if was == nil || was.After(now.Time) {
		was = now
	}
	before := p.was.Phase == v1beta1.RolloutRolling || p.was.Phase == v1beta1.RolloutFailed
	switch {
	case available && from.After(was.Time):
		return ceil(from)
	case !available && !before:
		return now
	default:
		return was
	}
}

// readGates reads the conditions that other programs set for the step. Timeouts run only once all its pods are available, and a
// gate that is False before there is a pod of the revision is reset.
func (p *planner) readGates(spec *v1beta1.RolloutStep, since time.Time, runs bool) {
	for i := range spec.Gates {
		gate := &spec.Gates[i]
		p.out.Gates = append(p.out.Gates, gate.ConditionType)
		c := meta.FindStatusCondition(p.Status.Conditions, gate.ConditionType)
		untried := c != nil && c.Status == metav1.ConditionFalse && p.updated() == 0
		if c == nil || untried {
			p.out.Begins = append(p.out.Begins, gate.ConditionType)
		}
		if c != nil && c.Status == metav1.ConditionTrue {
			continue
		}
		p.out.Closed = append(p.out.Closed, gate.ConditionType)
		timeout, limited := p.timeout(gate, since)
		switch {
		case p.out.Failure != "":
		case c != nil && c.Status == metav1.ConditionFalse && !untried:
			p.out.Failure = fmt.Sprintf("gate %s is False: %s", c.Type, c.Message)
		case !runs || !limited:
		case p.Snap.Now.Before(timeout):
			p.wakeAt(timeout)
		default:
			p.out.Failure = fmt.Sprintf("gate %s did not become True within %d seconds", gate.ConditionType, *gate.TimeoutSeconds)
		}
	}
}

// timeout returns when a gate times out; false if it has no limit.
func (*planner) timeout(gate *v1beta1.StepGate, since time.Time) (at time.Time, limited bool) {
	if gate.TimeoutSeconds == nil {
		return time.Time{}, false
	}
	return since.Add(time.Duration(*gate.TimeoutSeconds) * time.Second), true
}

// firstTimeout returns when the first gate that is not True times out; nil if none has a limit.
func (p *planner) firstTimeout(spec *v1beta1.RolloutStep, since time.Time) *metav1.Time {
	var first *metav1.Time
	for i := range spec.Gates {
		gate := &spec.Gates[i]
		at, limited := p.timeout(gate, since)
		c := meta.FindStatusCondition(p.Status.Conditions, gate.ConditionType)
		open := c != nil && c.Status == metav1.ConditionTrue
		if limited && !open && (first == nil || at.Before(first.Time)) {
			first = &metav1.Time{Time: at}
		}
	}
	return first
}

func (p *planner) wakeAt(t time.Time) {
	if wait := t.Sub(p.Snap.Now); p.out.Wake == 0 || wait < p.out.Wake {
		p.out.Wake = wait
	}
}

// available reports whether the step has all its pods at the update revision and available, and since when they have been so
// without a restart of a container. Dates in the future have not happened yet.
func (p *planner) available() (all bool, since time.Time) {
	snap := p.Snap
	pods := 0
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if !r.Active() || r.Revision != snap.Update.Name || !belongs(snap, r, p.out.Keeps) {
			continue
		}
		if !r.Available || r.Waiting != "" {
			return false, since
		}
		pods++
		for _, t := range []time.Time{r.ReadySince.Add(snap.MinReady()), podstate.Started(r.Pod)} {
			if t.After(since) && !t.After(snap.Now) {
				since = t
			}
		}
	}
	return pods >= snap.Limits.Replicas-p.out.Keeps, since
}

// belongs reports whether a pod at the update revision is in a place that is wanted there. In a set with random names every
// pod is, except for surge pods that are deleted again.
func belongs(snap *snapshot.Set, r *snapshot.Replica, partition int) bool {
	if !snap.Ordinal() {
		return !r.Surge
	}
	place, used := snap.InUse(r.Ordinal)
	return used && place >= partition
}

// updated returns how many pods a set has at the update revision. It does not count terminating pods of a set with random
// names, because their successors may exist already, nor surge pods that are deleted again.
func (p *planner) updated() int {
	if p.Snap.Ordinal() {
		return updatedOrdinals(p.Snap)
	}
	updated := 0
	for i := range p.Snap.Replicas {
		if r := &p.Snap.Replicas[i]; r.Pod != nil && !r.Terminating && !r.Surge && r.Revision == p.Snap.Update.Name {
			updated++
		}
	}
	return updated
}

// reach returns how many pods the update revision has; in a set with ordinals, down to the lowest of them that counts.
func (p *planner) reach() int {
	if !p.Snap.Ordinal() {
		return p.updated()
	}
	lowest, other := p.Snap.Limits.Replicas, highestOther(p.Snap)
	for i := range p.Snap.Replicas {
		r := &p.Snap.Replicas[i]
		if place, used := p.Snap.InUse(r.Ordinal); used && r.Pod != nil && place > other {
			lowest = min(lowest, place)
		}
	}
	return p.Snap.Limits.Replicas - lowest
}

// updatedOrdinals returns how many pods of a set with ordinals are at the update revision. A pod below one of another
// revision does not count: scaling created it there, and it goes back.
func updatedOrdinals(snap *snapshot.Set) (updated int) {
	other := highestOther(snap)
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if place, used := snap.InUse(r.Ordinal); used && r.Pod != nil && place > other {
			updated++
		}
	}
	return updated
}

// highestOther returns the highest place with a pod of another revision than the update revision; -1 if there is none.
func highestOther(snap *snapshot.Set) int {
	other := -1
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if place, used := snap.InUse(r.Ordinal); used && r.Pod != nil && r.Revision != snap.Update.Name {
			other = max(other, place)
		}
	}
	return other
}
