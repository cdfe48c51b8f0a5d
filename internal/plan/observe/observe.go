// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe makes the snapshot that planners decide on from what the cache shows of a set.
//
// The rule: the content of a pod is read once for each version of the pod. What depends on the spec and the time is decided
// at each look. Which pods are available, updating, specified, surge or leaving is decided here and nowhere else. The caller
// gives the objects, the time, and its [Memory] of the last look, which is the only argument that is changed.
package observe

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/update/steps"
)

// Memory carries state of a set from one look to the next. It may be lost at any time: then pods are read again, and waits for
// proof start again. The zero Memory is ready to use.
type Memory struct {
	// Decoder remembers the content of revisions.
	Decoder revision.Decoder
	// replicas are the pods at the last look, in the order of identities. at is the index of each pod in them. The snapshot of
	// that look has the same replicas, which the next look overwrites.
	replicas []snapshot.Replica
	at       map[*corev1.Pod]int
	// waits is since when pods have been waiting for the end of their update in place, by their UIDs.
	waits map[types.UID]waiting
	// leaving is since when nodes have been leaving, by their names; nil before the first look at nodes.
	leaving map[string]time.Time
	// homes are the failure domains, under a label key, of the pods at the last look and of those that were vacated then, by
	// identity.
	homes    map[string]snapshot.Domain
	homesKey string
	// served are the pods of a set with failure domains that have been available, by their UIDs.
	served map[types.UID]bool
	// replacing are the revisions of the successors of pods that are or were taken for them, by identity. paused is whether the set
	// was paused at the last look.
	replacing map[string]string
	paused    bool
	// unseen is how many places have been empty since before the first look.
	unseen int
	marks
	// noneSince is since when the set has had no available pod; zero if it has one. looked is true if it was looked at before.
	noneSince time.Time
	looked    bool
	// triedCurrent is true if a pod at the current revision has been there since.
	triedCurrent bool
}

// marks are the highest numbers that a set has reached.
type marks struct {
	// issued is how many ids of its sequence the set has given out, and shown up to which of them the cache has shown all.
	issued, shown int
	// reached is how many pods the set has had at once, and toldReached what its status said of that at the last look.
	reached, toldReached int
	// placed is how many pods had a place at the last look, if it was counted, and wanted how many were to have one.
	placed, wanted int
}

// Resolve resolves the numbers and selectors of a spec. With an error, it also returns what it could resolve.
func Resolve(spec *v1beta1.RollSetSpec) (n snapshot.Numbers, err error) {
	if n.Limits, err = snapshot.ResolveLimits(spec); err != nil {
		return n, err
	}
	if n.Priorities, err = snapshot.ResolvePriorities(spec); err != nil {
		return n, err
	}
	start := int32(0)
	if spec.Ordinals != nil {
		start = spec.Ordinals.Start
	}
	n.Ordinals, err = identity.NewOrdinals(start, spec.ReserveOrdinals)
	return n, err
}

// Input is the input from which a snapshot is made.
type Input struct {
	*snapshot.Objects

	// Numbers are those of the spec.
	Numbers snapshot.Numbers
	// Replicas are the pods and claims, joined by [Objects.Join].
	Replicas []snapshot.Replica
	// Resolution says which revisions the set has.
	Resolution revision.Resolution
	// Gone are the names of pods that were deleted since the last look.
	Gone []string
	// Sighting returns what events showed of a pod.
	Sighting func(pod types.UID) inplace.Sighting
	// FinishedWait, Preflights and Refusals become those of the snapshot.
	FinishedWait time.Duration
	Preflights   map[string]snapshot.Preflight
	Refusals     map[attempt.Key]snapshot.Refusal
}

// observer makes one snapshot.
type observer struct {
	Input

	memory *Memory
	snap   *snapshot.Set
	// waits becomes the memory's waits for the next look.
	waits map[types.UID]waiting
}

// Snapshot returns the snapshot of a set. It includes the identities that cannot get a pod, as far as the objects show it.
func Snapshot(in Input, m *Memory) *snapshot.Set {
	o := observer{Input: in, memory: m, snap: &snapshot.Set{
		Settings:   snapshot.Settings{Name: in.Set.Name, UID: in.Set.UID, Spec: &in.Set.Spec, Numbers: in.Numbers},
		Revisions:  in.Resolution.Revisions,
		Pods:       snapshot.Pods{Orphans: in.Orphans},
		Past:       snapshot.Past{FinishedWait: in.FinishedWait},
		Answers:    snapshot.Answers{Preflights: in.Preflights, Refusals: in.Refusals},
		Cluster:    snapshot.Cluster{Classes: in.Classes, NodeAccess: in.NodeAccess, Budgets: in.Budgets},
		Now:        in.Now,
		ClockAhead: in.ClockAhead,
	}}
	o.snap.Replicas, o.snap.Leaving = o.ours()
	o.snap.Claimed = len(in.Claims) > 0 && slices.ContainsFunc(o.snap.Replicas, func(r snapshot.Replica) bool { return len(r.Claims) > 0 })
	o.markLeaving()
	o.snap.Issued = o.issued()
	o.snap.Reached = o.reached()
	o.judge()
	o.snap.FindSteady()
	o.snap.Unseen = o.unseen()
	o.snap.NoneSince = o.noneSince()
	o.snap.TriedCurrent = o.triedCurrent()
	o.snap.Vacated = homes{&o}.vacated()
	o.snap.Replacing = o.replacing()
	o.snap.Blocked = o.nameless()
	o.snap.Rollout = steps.Plan(steps.Input{
		Snap: o.snap, Status: &in.Set.Status, Promotion: in.Set.Annotations[v1beta1.PromoteAnnotation], WasProven: in.Resolution.WasProven,
	})
	maps.Copy(o.snap.Blocked, blockedByClaims(o.snap))
	return o.snap
}

// Members returns a snapshot that shows only which pods hold a place of the set, at which revision, and which of them are available.
// Of the revisions it needs the templates only.
func Members(in Input, m *Memory, known map[string]snapshot.Revision) *snapshot.Set {
	o := observer{Input: in, memory: m, snap: &snapshot.Set{
		Settings:  snapshot.Settings{Name: in.Set.Name, Spec: &in.Set.Spec, Numbers: in.Numbers},
		Revisions: snapshot.Revisions{Known: known},
		Answers:   snapshot.Answers{Refusals: in.Refusals},
		Now:       in.Now,
	}}
	o.snap.Replicas, _ = o.ours()
	o.judge()
	return o.snap
}

// RevisionInput returns the input to resolve the revisions of a set.
func (m *Memory) RevisionInput(o *snapshot.Objects, replicas []snapshot.Replica) revision.Input {
	in := revision.Input{
		Set:       o.Set,
		Revisions: o.Revisions,
		Taken:     sets.New[string](),
		Used:      sets.New[string](),
		Decode:    m.Decoder.Decode,

		KeepsClaims: m.Decoder.KeepsClaims,
	}
	last := ""
	for i := range replicas {
		if r := &replicas[i]; r.Pod != nil && r.Revision != last { // most have the same
			in.Used.Insert(r.Revision)
			last = r.Revision
		}
	}
	for _, pod := range o.Orphans { // once it is adopted, its template is needed to change it in place
		in.Used.Insert(pod.Labels[v1beta1.RevisionLabel])
	}
	if o.Set.Spec.UpdateStrategy.RollingUpdate.Paused { // otherwise successors come at the current or the update revision
		for _, revision := range m.replacing {
			in.Used.Insert(revision)
		}
	}
	return in
}
