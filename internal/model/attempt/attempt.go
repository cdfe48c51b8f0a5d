// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package attempt names the writes that a set attempts: what is refused, retried and reported.
//
// The rule: an attempt is a verb and an object. Trouble with one is no trouble with another.
package attempt

import corev1 "k8s.io/api/core/v1"

// Verb is a kind of write.
type Verb string

// These are the verbs. Each is refused, retried and reported separately, even where two verbs are the same request to the
// API server: a policy may refuse one change of a pod and accept another.
const (
	Creating       Verb = "create"
	Deleting       Verb = "delete"
	Adopting       Verb = "adopt"
	Releasing      Verb = "release"
	Relabeling     Verb = "relabel"
	Unmarking      Verb = "unmark"
	Closing        Verb = "close gate"
	Opening        Verb = "open gate"
	Updating       Verb = "update"
	Resizing       Verb = "resize"
	SettingState   Verb = "set state"
	MakingClaims   Verb = "create claims"
	OwningClaim    Verb = "own claim"
	GrowingClaim   Verb = "grow claim"
	ModifyingClaim Verb = "modify claim"
	DeletingClaim  Verb = "delete claim"
	Preflighting   Verb = "preflight"

	CreatingBudget Verb = "create budget"
	UpdatingBudget Verb = "change budget"
	DeletingBudget Verb = "delete budget"
)

// Key names a write: its verb, and the object that it is made to.
type Key struct {
	Verb Verb
	// Object is the UID of the object. It is the identity if the object does not exist yet, and the revision for a
	// preflight, and the name for a budget that does not exist yet.
	Object string
}

// Any returns the key of all writes of a verb. It stands for failures that they share, such as a full quota or an overloaded
// API server.
func Any(verb Verb) Key { return Key{Verb: verb} }

// AnyCreate returns the key of all creates of a set together.
func AnyCreate() Key { return Any(Creating) }

// OfPod returns the key of a write to a pod that exists.
func OfPod(verb Verb, pod *corev1.Pod) Key { return Key{Verb: verb, Object: string(pod.UID)} }

// OfBudget reports whether a verb writes a disruption budget.
func OfBudget(verb Verb) bool {
	return verb == CreatingBudget || verb == UpdatingBudget || verb == DeletingBudget
}
