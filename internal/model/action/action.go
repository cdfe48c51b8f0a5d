// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package action is the language of plans: what to write, what not to write, and why.
//
// The rule: every action carries its reason, and every refusal is a hold that carries its own. One string feeds the log, the
// event, the condition and the golden rollouts.
package action

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Action is one planned write. The set of actions is closed.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	isAction()
}

// Create creates the pod of an identity, after those of its claims that do not exist.
type Create struct {
	// ID is the identity: the part of the pod's name after "<set>-".
	ID string
	// Revision is the name of the revision whose template the pod gets.
	Revision string
	// Surge is true for a pod that is deleted again at the end of a rollout, with the claims that were made for it.
	Surge bool
	// Reason is why the pod is wanted.
	Reason string
	// Origin says which pod it replaces, in a set with failure domains: the value of the pod's annotation.
	Origin string
}

// Delete deletes a pod.
type Delete struct {
	// Pod is the pod as observed; its UID and resource version become preconditions.
	Pod *corev1.Pod
	// Reason is why the pod is deleted.
	Reason string
	// Cause is the kind of that reason.
	Cause Cause
	// To is the revision at which the pod's successor is to come, if the pod is taken for it.
	To string
	// Passed is the lifecycle hook that the deletion does not wait for any longer.
	Passed snapshot.Passed
}

// Preflight asks the API server, without creating anything, whether it would accept a pod of a revision.
type Preflight struct {
	// Revision is the name of the revision.
	Revision string
}

// Relabel gives a pod the label of a revision whose pods it equals.
type Relabel struct {
	// Pod is the pod as observed; its UID and resource version become preconditions.
	Pod *corev1.Pod
	// Revision is the name of the revision.
	Revision string
}

// Unmark removes a label by which the set marked a pod, once that is no longer true.
type Unmark struct {
	// Pod is the pod as observed; its UID and resource version become preconditions.
	Pod *corev1.Pod
	// Label is the key of the label, and Reason says why it is removed.
	Label, Reason string
}

// CreateClaims creates the claims that a pod waits for and that were deleted.
type CreateClaims struct {
	// ID is the identity, and Revision the name of the revision that its pod is at.
	ID, Revision string
	// Reason says what is missing.
	Reason string
}

// OwnClaim labels a claim as the set's and sets its controller, which decides when the garbage collector deletes it.
type OwnClaim struct {
	// ID is the identity that the claim belongs to.
	ID string
	// Claim is the claim as observed.
	Claim *corev1.PersistentVolumeClaim
	// Owner is the controller that the claim gets in place of the set and the identity's pod; nil for none. Other references
	// stay.
	Owner *metav1.OwnerReference
	// Left is true for a claim that a scale-down leaves behind.
	Left bool
	// Reason is why the owner changes.
	Reason string
}

// ChangeClaim asks for other storage for a claim.
type ChangeClaim struct {
	// Claim is the claim as observed.
	Claim *corev1.PersistentVolumeClaim
	// Size is the storage to request; nil if the request stays. It is larger than what the claim requests now, or takes a growth
	// back that is not done.
	Size *resource.Quantity
	// Class is the volume attributes class to ask for, empty for none; nil if it stays.
	Class *string
}

// DeleteClaim deletes a claim whose identity will not come back.
type DeleteClaim struct {
	// ID is the identity, which has no pod.
	ID string
	// Claim is the claim as observed; its UID and resource version become preconditions.
	Claim *corev1.PersistentVolumeClaim
	// Reason is the policy that asks for it.
	Reason string
}

// Cause is the kind of a deletion. Each kind is counted, reported and checked separately.
type Cause string

const (
	// ScaleDown deletes a pod that is above the wanted number.
	ScaleDown Cause = "scale-down"
	// Move deletes a pod so that its successor comes at another revision.
	Move Cause = "move"
	// Replace deletes a pod because a user asked for its replacement.
	Replace Cause = "replace"
	// Finished deletes a pod that has failed or succeeded.
	Finished Cause = "finished"
)

// Hold is a write that is due but must wait.
type Hold struct {
	// Subject is the name of the waiting pod, or of the identity without a pod.
	Subject string
	// Kind is a stable word for the reason. Metrics use it as a label.
	Kind HoldKind
	// Reason is a sentence about what the write waits for.
	Reason string
	// Count is how many pods wait for this kind of reason. The subject is the first of them.
	Count int
}

// HoldKind is a stable word for the reason of a hold.
type HoldKind string

// The kinds of holds.
const (
	HeldByOrder     HoldKind = "order"        // OrderedReady: a pod before it, or above it, blocks it
	HeldByBudget    HoldKind = "budget"       // no pod may become unavailable now
	HeldByGuard     HoldKind = "guard"        // enough pods at the target revision are unavailable already
	HeldByName      HoldKind = "name"         // the name is taken until the old pod is gone
	HeldByClaim     HoldKind = "claim"        // a claim cannot be used
	HeldByBackOff   HoldKind = "back-off"     // a finished pod is replaced later
	HeldByDomain    HoldKind = "domain"       // pods of another failure domain come first, or are unavailable
	HeldByDrain     HoldKind = "drain"        // the node leaves, and its pod cannot be replaced now
	HeldByLimit     HoldKind = "limit"        // scaleStrategy.maxUnavailable
	HeldByPause     HoldKind = "pause"        // updateStrategy.rollingUpdate.paused
	HeldByOnDelete  HoldKind = "on-delete"    // updateStrategy.type OnDelete
	HeldByOldPods   HoldKind = "old-pods"     // updateStrategy.type Recreate: an old pod is still there
	HeldByHook      HoldKind = "hook"         // a lifecycle hook
	HeldByTimeout   HoldKind = "hook-timeout" // a lifecycle hook that has passed its limit
	HeldByPolicy    HoldKind = "policy"       // InPlaceOnly: the change needs a new pod
	HeldByPreflight HoldKind = "preflight"    // the API server refuses the template
	HeldByGrace     HoldKind = "grace"        // out of service, and otherwise untouched for gracePeriodSeconds
	HeldByPartition HoldKind = "partition"    // a broken pod that the partition keeps at its revision
	HeldByRefusal   HoldKind = "refusal"      // the API server refused the write a moment ago
)

// Plan holds the writes of one reconcile, the writes that must wait, and the time at which the answer could change by itself.
type Plan struct {
	// Actions are applied in this order. Creates may run in parallel.
	Actions []Action
	// Held are the holds, the most important first.
	Held []Hold
	// Aside are writes that are due but not made, because the API server refused them a moment ago.
	Aside []attempt.Key
	// RequeueAfter is when time alone could change the plan; zero means never.
	RequeueAfter time.Duration
	// SoaksUntil is when a failure domain begins that waits for nothing but the time since the last one; zero if none does.
	SoaksUntil time.Time
	// EveryHold is true if Held keeps every hold, and not only the first of each kind.
	EveryHold bool
}

// Add appends an action.
func (p *Plan) Add(a Action) { p.Actions = append(p.Actions, a) }

// Hold adds a hold. Of each kind only the first is kept, and the others are counted: thousands of pods may wait for one
// cause, and one of them is enough to name it. With EveryHold all are kept.
func (p *Plan) Hold(kind HoldKind, subject, format string, args ...any) {
	p.HoldBecause(kind, func() (string, string) { return subject, fmt.Sprintf(format, args...) })
}

// HoldBecause is Hold with a subject and a reason that are read only if the hold is kept.
func (p *Plan) HoldBecause(kind HoldKind, describe func() (subject, reason string)) {
	for i := range p.Held {
		if p.Held[i].Kind == kind && !p.EveryHold {
			p.Held[i].Count++
			return
		}
	}
	subject, reason := describe()
	p.Held = append(p.Held, Hold{Subject: subject, Kind: kind, Reason: reason, Count: 1})
}

// Moves reports whether the plan moves a pod to another revision.
func (p *Plan) Moves() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool {
		d, deletes := a.(Delete)
		_, changes := a.(UpdateInPlace)
		return changes || deletes && d.Cause == Move
	})
}

// Wake requests another reconcile after d, unless an earlier one is due. It does nothing if d is zero or less.
func (p *Plan) Wake(d time.Duration) {
	p.RequeueAfter = Sooner(p.RequeueAfter, d)
}

// Soak records that a failure domain begins when the pods of the last one have been available for long enough.
func (p *Plan) Soak(until, now time.Time) {
	p.SoaksUntil = until
	p.Wake(until.Sub(now))
}

// Sooner returns the shorter of two waits. A wait that is not positive means never.
func Sooner(a, b time.Duration) time.Duration {
	if b > 0 && (a <= 0 || b < a) {
		return b
	}
	return a
}

// Empty reports whether there is nothing to write.
func (p *Plan) Empty() bool { return len(p.Actions) == 0 }

// Join appends the content of q to p.
func (p *Plan) Join(q Plan) {
	p.Actions = slices.Concat(p.Actions, q.Actions)
	p.Held = slices.Concat(p.Held, q.Held)
	p.Aside = slices.Concat(p.Aside, q.Aside)
	if p.SoaksUntil.IsZero() {
		p.SoaksUntil = q.SoaksUntil
	}
	p.Wake(q.RequeueAfter)
}

// String prints one line per action and per hold.
func (p *Plan) String() string {
	var b strings.Builder
	for _, a := range p.Actions {
		fmt.Fprintln(&b, a)
	}
	for _, h := range p.Held {
		fmt.Fprintf(&b, "hold %s\n", h)
	}
	return b.String()
}

func (Create) isAction() {}
func (Delete) isAction() {}

func (Preflight) isAction() {}

func (Relabel) isAction() {}

func (Unmark) isAction() {}

func (CreateClaims) isAction() {}

func (OwnClaim) isAction() {}

func (ChangeClaim) isAction() {}

func (DeleteClaim) isAction() {}

// String returns the line of logs and golden files.
func (a Create) String() string {
	return fmt.Sprintf("create %s at %s (%s)", a.ID, a.Revision, a.Reason)
}

// String returns the line of logs and golden files.
func (a Delete) String() string { return fmt.Sprintf("delete %s (%s)", a.Pod.Name, a.Reason) }

// String returns the line of logs and golden files.
func (a Preflight) String() string { return "preflight " + a.Revision }

// String returns the line of logs and golden files.
func (a Relabel) String() string {
	return fmt.Sprintf("relabel %s to %s (it is what the template gives)", a.Pod.Name, a.Revision)
}

// String returns the line of logs and golden files.
func (a Unmark) String() string {
	return fmt.Sprintf("unmark %s (%s)", a.Pod.Name, a.Reason)
}

// String returns the line of logs and golden files.
func (a CreateClaims) String() string { return fmt.Sprintf("create claims of %s (%s)", a.ID, a.Reason) }

// String returns the line of logs and golden files.
func (a OwnClaim) String() string {
	if a.Owner == nil {
		return fmt.Sprintf("disown claim %s (%s)", a.Claim.Name, a.Reason)
	}
	return fmt.Sprintf("own claim %s by %s %s (%s)", a.Claim.Name, a.Owner.Kind, a.Owner.Name, a.Reason)
}

// String returns the line of logs and golden files.
func (a ChangeClaim) String() string {
	switch {
	case a.Class != nil && *a.Class == "":
		return "take the volume attributes class off claim " + a.Claim.Name
	case a.Class != nil:
		return fmt.Sprintf("give claim %s the volume attributes class %s", a.Claim.Name, *a.Class)
	case a.Size.Cmp(a.Claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0:
		return fmt.Sprintf("take the growth of claim %s back to %s", a.Claim.Name, a.Size)
	default:
		return fmt.Sprintf("grow claim %s to %s", a.Claim.Name, a.Size)
	}
}

// String returns the line of logs and golden files.
func (a DeleteClaim) String() string {
	return fmt.Sprintf("delete claim %s (%s)", a.Claim.Name, a.Reason)
}

// String returns the line of logs and golden files.
func (h Hold) String() string {
	if h.Count > 1 {
		return fmt.Sprintf("%s and %d more: %s", h.Subject, h.Count-1, h.Reason)
	}
	return fmt.Sprintf("%s: %s", h.Subject, h.Reason)
}

// LeaveAside records that a write to a subject is due and left aside, because the API server refused it a moment ago.
func (p *Plan) LeaveAside(snap *snapshot.Set, k attempt.Key, subject string) {
	refusal := snap.Refusal(k)
	p.Wake(refusal.Retry)
	if refusal.Overtaken {
		return
	}
	if !slices.Contains(p.Aside, k) {
		p.Aside = append(p.Aside, k)
	}
	p.Hold(HeldByRefusal, subject, "%s", refusal.Message)
}
