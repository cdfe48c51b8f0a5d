// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshot holds all that one reconcile knows: the spec with its defaults resolved, the two revisions, and one Replica per
// identity. It does not change. Every decision is made from it and from nothing else.
package snapshot

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
)

// Set is the snapshot of a RollSet and everything that it owns. It is immutable once built. It is all that planners may know.
// Each embedded part has one subject. The methods of Set are questions that several planners ask, and that concern more than one part.
type Set struct {
	Settings
	Revisions
	Pods
	Past
	Answers
	Cluster
	// Rollout is the progress of a rollout in steps.
	Rollout Rollout
	// EveryHold requests a plan that keeps every hold, for users who ask why nothing moves.
	EveryHold bool
	// Now is the time of the snapshot. It is the only clock for decisions. ClockAhead is by how much it is ahead of the API
	// server's clock; zero if it is not, or not known.
	Now        time.Time
	ClockAhead time.Duration
}

// Revisions are the revisions of a set.
type Revisions struct {
	// Current is the revision that was proven last. If none was, it is the first one. Its template is nil if its
	// ControllerRevision is lost or was tampered with.
	Current Revision
	// Update is the revision of the template in the spec. It equals Current when no rollout is under way.
	Update Revision
	// Unproven is true if no revision of the set was ever proven. No pod is kept at Current then, or moved back to it.
	Unproven bool
	// Known are all revisions of the set that can be used, by name.
	Known map[string]Revision
	// Rejected is true if the update revision missed its deadline, failed at a step or was aborted, and is rolled back. Then
	// the current revision is wanted everywhere. Verdict says which of these it was.
	Rejected bool
	Verdict  string
}

// Pods are the pods of a set, and their claims.
type Pods struct {
	// Replicas holds one entry per identity that has a pod, or claims without a pod, in identity order.
	Replicas []Replica
	// Claimed is true if one of them has claims.
	Claimed bool
	// Orphans are pods without a controller that the selector matches.
	Orphans []*corev1.Pod
	// Leaving are pods that the set controls and that its selector does not match. They are not among its replicas.
	Leaving []*corev1.Pod

	// steady is how many replicas are steady, by revision. unsteady are the others; nil if they were not listed.
	steady   map[string]int
	unsteady []*Replica
}

// Past holds facts about pods that are gone.
type Past struct {
	// Issued is how many ids of its sequence a set with random names has given out, as far as known. Names are not reused:
	// new pods get ids from that place on.
	Issued int
	// Reached is how many pods the set has had at once since spec.replicas was lowered last, at most spec.replicas. A missing
	// pod below it was lost or taken, and the limit on creation does not concern its successor.
	Reached int
	// NoneSince is since when no pod has been ready; zero if one is, or if none is wanted. TriedCurrent is true if a pod at the current
	// revision has been there since.
	NoneSince    time.Time
	TriedCurrent bool
	// Vacated are the failure domains of pods that are gone and have no successor yet, by identity. Those that were gone when the
	// manager started are not among them.
	Vacated map[string]Domain
	// Replacing are the revisions of the successors of pods that the set took for them, and that are terminating or are gone, by
	// identity. In a pause, this includes all pods that are to be replaced, even if a user deleted them. Unseen is how many other
	// places may be empty for the same reason, because they have been since before the manager started.
	Replacing map[string]string
	Unseen    int
	// FinishedWait is how long failed and succeeded pods must still wait for their replacement.
	FinishedWait time.Duration
}

// Cluster holds the storage classes, nodes and disruption budgets that concern a set.
type Cluster struct {
	// Classes are the storage classes that the set's claims name, and whether they allow claims to grow. A class that is
	// not in it does not exist.
	Classes map[string]Class
	// Nowhere is true if every node leaves or is not ready, as far as the set asks for nodes.
	Nowhere bool
	// NodesSettleIn is when a node with pods of the set counts as leaving; 0 if none is about to.
	NodesSettleIn time.Duration
	// NodeAccess is whether nodes can be read, if the set replaces the pods of nodes that leave.
	NodeAccess Access
	// Budgets are the disruption budgets of the namespace, if the set has one of its own.
	Budgets Budgets
}

// Class is a storage class.
type Class struct {
	// Expandable classes let claims grow.
	Expandable bool
	// Immediate classes bind a claim before its pod is scheduled.
	Immediate bool
}

// Replica is one identity: its pod, if there is one, and its claims. It is one flat value, because a look passes thousands of
// them several times. At least one planner reads each field. The fields that most planners read of every pod stand together, at
// the end of Content and at the beginning of Judgment: a look at a large set takes as long as reading it from memory.
type Replica struct {
	Content
	Judgment
}

// Judgment is the part of a replica that each look computes anew, from the set's spec, the time, and other objects.
type Judgment struct {
	// Steady replicas have an available pod of a usable revision, in a place that is in use. There is nothing to be said or done
	// about it, but that a rollout or a scale-down may take it.
	Steady bool
	// Available is true for an active pod that has been ready for minReadySeconds and is not being updated in place.
	Available bool
	// Surge is true for a pod, or claims without a pod, that maxSurge made and that are deleted again. They take no other
	// pod's place. In a set with ordinals, their ordinal is not in use: scaling up makes them members.
	Surge bool
	// Served pods of a set with failure domains have been available, as far as this manager knows.
	Served bool
	// Specified pods are to be deleted first, by podsToDelete or by label.
	Specified bool
	// Updating pods are out of service for an update in place or a lifecycle hook, or have containers that an update
	// restarts. They count as unavailable whatever their readiness.
	Updating bool
	// Restarting is true while the update has containers to restart, for new images or for a resize that is under way.
	Restarting bool
	// Withdrawn pods are taken out of service while they wait for a lifecycle hook.
	Withdrawn bool
	// NameTaken is true if only claims remain and a pod that is not the set's, such as a released one, has the name. It may
	// mount the claims. It is not looked up where claims are retained, nor in a set with ordinals, which come back.
	NameTaken bool
	// Leaving is why the node of the pod leaves; empty if it stays, or if the set ignores that.
	Leaving string
	HookWait
	// Claims are the claims of the identity that exist.
	Claims []*corev1.PersistentVolumeClaim
	UpdateWait
}

// HookWait says what a pod waits for under the lifecycle hooks of its set.
type HookWait struct {
	// State is the state of the pod under the hooks; empty if none concerns it. Hook says what it waits for in that state, and
	// Overdue is true if it has waited for longer than it may. Passed is the hook that it went on without.
	Overdue bool
	State   v1beta1.LifecycleState
	Hook    string
	Passed  Passed
}

// UpdateWait says what a pod's last update in place waits for.
type UpdateWait struct {
	// Progress is the progress of the pod's last update in place, and Waiting what it still waits for; empty if it is done.
	// Waited is for how long the pod has waited for a resize, for its containers or, once they are ready, for a proof, as far as this manager
	// knows.
	Progress inplace.Progress
	Waiting  string
	Waited   time.Duration
	// Unproven is why the pod cannot be known to run the images of its revision, or to get its resources, although the deadline
	// has passed; empty if it can. ProofWait is the time until the deadline.
	Unproven  string
	ProofWait time.Duration
	// Infeasible is why the pod cannot get the resources of its revision on its node; empty if no refusal is known. AskAgain
	// is true if the API server refused them, long enough ago.
	Infeasible string
	AskAgain   bool
}

// Content is the part of a replica that its pod alone determines. It is computed once for each version of the pod.
type Content struct {
	UpdateState
	// Restarts is the sum of the containers' restarts.
	Restarts int32
	// DeletionCost is the pod's controller.kubernetes.io/pod-deletion-cost; 0 if unset or malformed.
	DeletionCost int32
	// ReadySince is when the pod became ready; zero if it is not.
	ReadySince time.Time
	// Node is where the pod runs, Phase the phase of its status, and Created its creation in seconds since 1970. They are
	// copied because every reconcile compares them, and pods are far apart in memory.
	Node    string
	Phase   corev1.PodPhase
	Created int64
	Identity
	// Revision is the name of the revision that the pod runs; empty if unknown.
	Revision string
	// Pod is nil if only claims remain.
	Pod *corev1.Pod
	// Scheduled and Ready are the pod's conditions PodScheduled and Ready.
	Scheduled, Ready bool
	// Unreachable is true if the pod is not Ready although its containers are and its readiness gates are open: its node does
	// not answer, and the pod may well serve.
	Unreachable bool
	// Terminating pods are being deleted, Finished ones have failed or succeeded.
	Terminating, Finished bool
	Marks
}

// UpdateState is the state of a pod's last update in place.
type UpdateState struct {
	// InPlace is the state as recorded. Shown is its progress as far as the pod shows it by itself, and Gate the pod's
	// readiness gate.
	InPlace inplace.State
	Shown   inplace.Progress
	Gate    inplace.Gate
}

// Identity distinguishes a replica from the others of its set.
type Identity struct {
	// Place is the place of ID in the sequence of a set with random names; -1 if it has none.
	Place int
	// ID is the part of the name after "<set>-". A pod of a set with random names that was adopted under another name has
	// its whole name as ID.
	ID string
	// Ordinal is the number in ID in a set with podIdentity Ordinal; -1 otherwise.
	Ordinal int
}

// Marks holds what the labels of a pod say about it.
type Marks struct {
	// MadeForSurge pods have the mark of surge.
	MadeForSurge bool
	// Marked pods are to be deleted first, by label.
	Marked bool
	// Replaced pods replace one of the same name that podsToDelete lists, or listed.
	Replaced bool
	// Unselected pods have labels that the selector does not match.
	Unselected bool
}

// Active reports whether the replica has a pod that counts towards spec.replicas.
func (r *Replica) Active() bool { return r.Pod != nil && !r.Terminating && !r.Finished }

// Broken reports whether the replica has an active pod that is not ready, and that cannot serve as far as is known.
func (r *Replica) Broken() bool { return r.Active() && !r.Ready && !r.Unreachable }

// LastDeletedFirst orders terminating pods by when they were deleted.
func LastDeletedFirst(a, b *Replica) int {
	return b.Pod.DeletionTimestamp.Compare(a.Pod.DeletionTimestamp.Time)
}

// ServesUnproven reports whether a pod serves although its update in place is not known to be done.
func (r *Replica) ServesUnproven() bool {
	return r.Ready && !r.Available && r.Unproven != "" && r.Gate.Passable()
}

// OutOfService reports whether nothing is lost by disturbing the replica's active pod: it is broken, or the set has taken it
// out of service.
func (r *Replica) OutOfService() bool { return r.Broken() || r.Active() && r.Updating }

// PreparesToMove reports whether a pod may be waiting for a lifecycle hook to be moved to another revision.
func (r *Replica) PreparesToMove() bool {
	return r.State == v1beta1.LifecyclePreparingUpdate || r.State == v1beta1.LifecyclePreparingDelete
}

// UnavailableSince returns since when a pod that is not available has been ready, or not ready.
func (r *Replica) UnavailableSince() time.Time {
	if r.Ready {
		return r.ReadySince
	}
	return podstate.UnreadySince(r.Pod)
}

// StuckAt returns when a terminating pod counts as stuck: ten seconds after the end of its grace period.
func (r *Replica) StuckAt() time.Time { return r.Pod.DeletionTimestamp.Add(10 * time.Second) }

// Stuck reports whether a terminating pod has outlived its grace period: its node is lost, or a finalizer keeps it.
func (r *Replica) Stuck(now time.Time) bool { return r.Terminating && now.After(r.StuckAt()) }

// DeletedAt returns when the deletion of a terminating pod was requested.
func (r *Replica) DeletedAt() time.Time {
	at := r.Pod.DeletionTimestamp.Time
	if grace := r.Pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// Patience is how long broken pods wait at most: for what is on its way, and for the guard of an update where no pod of the set
// is available.
const Patience = time.Minute

// OnItsWay returns for how long the successor of a terminating pod counts as on its way; 0 if the pod terminates for longer than
// [Patience] or is stuck.
func (r *Replica) OnItsWay(now time.Time) time.Duration {
	until := r.DeletedAt().Add(Patience)
	if stuck := r.StuckAt(); stuck.Before(until) {
		until = stuck
	}
	return max(0, until.Sub(now))
}

// ToReplace reports whether the replica's pod is deleted first when the set is scaled down, and otherwise replaced: a user named
// it, or its node leaves.
func (r *Replica) ToReplace() bool { return r.Specified || r.Leaving != "" }

// Surges reports whether a pod or a claim is marked as made for maxSurge.
func Surges(object metav1.Object) bool { return object.GetLabels()[v1beta1.SurgeLabel] == "true" }

// SpecifiedDelete reports whether a user marked the pod to be deleted first, or replaced.
func SpecifiedDelete(pod *corev1.Pod) bool {
	value, marked := pod.Labels[v1beta1.SpecifiedDeleteLabel]
	return marked && value != "false"
}

// Left reports whether a claim is marked as left behind by a scale-down.
func Left(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Labels[v1beta1.LeftLabel] == "true"
}

// Stays reports whether a claim remains for the next pod of its identity: it is not left behind, not being deleted, and not
// deleted together with a pod.
func Stays(claim *corev1.PersistentVolumeClaim) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return !Left(claim) && claim.DeletionTimestamp == nil && (owner == nil || owner.Kind != "Pod")
}

// GivesBack reports whether surge pods are deleted at the end of a rollout, so that every other pod stays. It does in sets
// with ordinals or with claims, now or at a revision that may come back, and with updates in place. In other sets an old
// pod's successor looks like surge.
func (s *Set) GivesBack() bool {
	return s.Ordinal() || s.Spec.UpdatePolicy() != v1beta1.RecreatePod || s.HasClaims()
}

// HasClaims reports whether pods of the set have claims, or had them: at a revision that may come back, or at one that is
// forgotten.
func (s *Set) HasClaims() bool {
	if len(s.Spec.VolumeClaimTemplates) > 0 {
		return true
	}
	for _, r := range s.Known {
		if len(r.Claims) > 0 {
			return true
		}
	}
	return s.Claimed
}

// Rolling reports whether a rollout can be under way: whether current and update revision differ.
func (r *Revisions) Rolling() bool { return r.Current.Name != r.Update.Name }

// RefusesMoves reports whether no pod moves to a revision for now: it is the update revision, the API server refuses pods of it, and
// another revision was proven that the set can run meanwhile.
func (s *Set) RefusesMoves(to string) bool {
	return to == s.Update.Name && s.ComesBackAtCurrent() && !s.Unproven
}

// ComesBackAtCurrent reports whether pods that are lost come back at the current revision, because the API server refuses pods
// of the update revision.
func (s *Set) ComesBackAtCurrent() bool {
	return s.Preflights[s.Update.Name].Refuses() && s.Rolling() && s.Current.Template != nil
}

// Partition returns how many pods are wanted at the current revision, without a rollback: as many as the spec or the step at
// work keeps there. A revision that never worked keeps none.
func (s *Set) Partition() int {
	if s.Unproven {
		return 0
	}
	return max(s.Limits.Partition, s.Rollout.Keeps)
}

// Available counts the available replicas.
func (p *Pods) Available() int {
	n := p.allSteady()
	for r := range p.Unsteady() {
		if r.Available {
			n++
		}
	}
	return n
}

// Serves reports whether a pod is ready, available or not. One that goes serves until it is gone.
func (p *Pods) Serves() bool {
	if p.allSteady() > 0 {
		return true
	}
	for r := range p.Unsteady() {
		if r.Active() && r.Ready {
			return true
		}
	}
	return false
}

// UnavailableSince returns when the last member became what it is: ready, or not ready. No later one can have ceased to be available,
// if none is, and none is missing.
func (s *Set) UnavailableSince() (last time.Time) {
	for r := range s.Unsteady() {
		if !s.isMember(r) {
			continue
		}
		if since := r.UnavailableSince(); since.After(last) {
			last = since
		}
	}
	return last
}

// Lacks reports whether a place of the set has no active pod.
func (s *Set) Lacks() bool {
	members := s.allSteady()
	for r := range s.Unsteady() {
		if s.isMember(r) {
			members++
		}
	}
	return members < s.Limits.Replicas
}

// Active counts the replicas that have an active pod.
func (p *Pods) Active() int {
	n := p.allSteady()
	for r := range p.Unsteady() {
		if r.Active() {
			n++
		}
	}
	return n
}

// Placed counts the pods that hold a place and are not being deleted: active and finished ones, without marked surge and ordinals that
// are not in use. There are more than spec.replicas if some are surge without a mark.
func (s *Set) Placed() int {
	n := s.allSteady()
	for r := range s.Unsteady() {
		if r.Pod != nil && !r.Terminating && !r.Surge && !s.Condemned(r) {
			n++
		}
	}
	return n
}
