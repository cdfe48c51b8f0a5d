// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/identity"
)

// Verb is a kind of write.
type Verb string

// These are the verbs. Each is refused, retried and reported separately, even where two verbs are the same request to the
// API server: a policy may refuse one change of a pod and accept another.
const (
	Creating      Verb = "create"
	Deleting      Verb = "delete"
	Adopting      Verb = "adopt"
	Releasing     Verb = "release"
	Relabeling    Verb = "relabel"
	Unmarking     Verb = "unmark"
	Closing       Verb = "close gate"
	Opening       Verb = "open gate"
	Updating      Verb = "update"
	Resizing      Verb = "resize"
	SettingState  Verb = "set state"
	MakingClaims  Verb = "create claims"
	OwningClaim   Verb = "own claim"
	GrowingClaim  Verb = "grow claim"
	DeletingClaim Verb = "delete claim"
	Preflighting  Verb = "preflight"

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

// KeyOf returns the key of an action.
func KeyOf(a Action) Key {
	verb, object, id := parts(a)
	if object != nil {
		id = string(object.GetUID())
	}
	return Key{verb, id}
}

// Subject returns the name of the pod, claim or budget that an action is about.
func Subject(set string, a Action) string {
	verb, object, id := parts(a)
	switch {
	case object != nil:
		return object.GetName()
	case verb == CreatingBudget:
		return id
	}
	return identity.PodName(set, id)
}

// SeenAt returns the resource version at which the object of an action was judged; empty if there is none yet.
func SeenAt(a Action) string {
	if _, object, _ := parts(a); object != nil {
		return object.GetResourceVersion()
	}
	return ""
}

// parts returns the verb of an action and its object. If the object does not exist yet, it returns the identity instead.
func parts(a Action) (verb Verb, object metav1.Object, id string) {
	switch a := a.(type) {
	case Create:
		return Creating, nil, a.ID
	case Delete:
		return Deleting, a.Pod, ""
	case Adopt:
		return Adopting, a.Pod, ""
	case Release:
		return Releasing, a.Pod, ""
	case Relabel:
		return Relabeling, a.Pod, ""
	case Unmark:
		return Unmarking, a.Pod, ""
	case CloseGate:
		return Closing, a.Pod, ""
	case OpenGate:
		return Opening, a.Pod, ""
	case UpdateInPlace:
		return Updating, a.Pod, ""
	case Resize:
		return Resizing, a.Pod, ""
	case SetState:
		return SettingState, a.Pod, ""
	case CreateClaims:
		return MakingClaims, nil, a.ID
	case OwnClaim:
		return OwningClaim, a.Claim, ""
	case ExpandClaim:
		return GrowingClaim, a.Claim, ""
	case DeleteClaim:
		return DeletingClaim, a.Claim, ""
	case Preflight:
		return Preflighting, nil, a.Revision
	case CreateBudget:
		return CreatingBudget, nil, a.Name
	case UpdateBudget:
		return UpdatingBudget, a.Budget, ""
	case DeleteBudget:
		return DeletingBudget, a.Budget, ""
	}
	return "", nil, ""
}

// Adopt makes the set the controller of a pod that has none.
type Adopt struct {
	// Pod is the pod as observed; its UID and resource version become preconditions.
	Pod *corev1.Pod
}

// Release removes the set from the owners of a pod that its selector no longer matches.
type Release struct {
	// Pod is the pod as observed; its UID and resource version become preconditions.
	Pod *corev1.Pod
}

func (Adopt) isAction() {}

func (Release) isAction() {}

// String returns the line of logs and golden files.
func (a Adopt) String() string { return fmt.Sprintf("adopt %s (the selector matches it)", a.Pod.Name) }

// String returns the line of logs and golden files.
func (a Release) String() string {
	return fmt.Sprintf("release %s (the selector does not match it)", a.Pod.Name)
}
