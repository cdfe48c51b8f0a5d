// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/identity"
)

// KeyOf returns the key of an action.
func KeyOf(a Action) attempt.Key {
	verb, object, id := parts(a)
	if object != nil {
		id = string(object.GetUID())
	}
	return attempt.Key{Verb: verb, Object: id}
}

// Subject returns the name of the pod, claim or budget that an action is about.
func Subject(set string, a Action) string {
	verb, object, id := parts(a)
	switch {
	case object != nil:
		return object.GetName()
	case verb == attempt.CreatingBudget:
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
func parts(a Action) (verb attempt.Verb, object metav1.Object, id string) {
	switch a := a.(type) {
	case Create:
		return attempt.Creating, nil, a.ID
	case Delete:
		return attempt.Deleting, a.Pod, ""
	case Adopt:
		return attempt.Adopting, a.Pod, ""
	case Release:
		return attempt.Releasing, a.Pod, ""
	case Relabel:
		return attempt.Relabeling, a.Pod, ""
	case Unmark:
		return attempt.Unmarking, a.Pod, ""
	case CloseGate:
		return attempt.Closing, a.Pod, ""
	case OpenGate:
		return attempt.Opening, a.Pod, ""
	case UpdateInPlace:
		return attempt.Updating, a.Pod, ""
	case Resize:
		return attempt.Resizing, a.Pod, ""
	case SetState:
		return attempt.SettingState, a.Pod, ""
	case CreateClaims:
		return attempt.MakingClaims, nil, a.ID
	case OwnClaim:
		return attempt.OwningClaim, a.Claim, ""
	case ChangeClaim:
		return a.verb(), a.Claim, ""
	case DeleteClaim:
		return attempt.DeletingClaim, a.Claim, ""
	case Preflight:
		return attempt.Preflighting, nil, a.Revision
	case CreateBudget:
		return attempt.CreatingBudget, nil, a.Name
	case UpdateBudget:
		return attempt.UpdatingBudget, a.Budget, ""
	case DeleteBudget:
		return attempt.DeletingBudget, a.Budget, ""
	}
	return "", nil, ""
}

// verb distinguishes the two kinds of changes, which the API server may refuse separately.
func (a ChangeClaim) verb() attempt.Verb {
	if a.Class != nil {
		return attempt.ModifyingClaim
	}
	return attempt.GrowingClaim
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
