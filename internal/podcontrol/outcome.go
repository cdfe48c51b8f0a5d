// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// outcome is the result of the writes for one identity. The zero outcome means that the objects are as planned, though
// perhaps another client made them so.
type outcome struct {
	// done is true if this writer wrote or deleted the pod.
	done bool
	// block is set if something blocks only this identity.
	block *snapshot.Block
	// stale is true if the pod changed since it was judged.
	stale bool
	// err is set if the write failed. pod is true if the write was that of a pod, claim if it was that of a claim without which the pod
	// was not written.
	err        error
	pod, claim bool
}

// unsettled reports whether a write was refused that may have happened when it was tried before. The refusal says nothing about
// that, such as one by an API server that has just started. A write that was altered is no such refusal: it happened.
func (w *writer) unsettled(a action.Action, out outcome) bool {
	refused := out.err != nil && !attempt.MayHaveHappened(out.err) && !attempt.InTrouble(out.err) && !attempt.IsAltered(out.err)
	return refused && w.snap.Refusals[action.KeyOf(a)].Unsettled
}

// namespaceGone reports whether a create was refused because its namespace is being deleted or no longer exists.
func namespaceGone(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}
