// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/action"
)

// deleteAll deletes pods.
func (w *writer) deleteAll(ctx context.Context, deletes []action.Delete) {
	outcomes := make([]outcome, len(deletes))
	w.Run(len(deletes), func(i int) { outcomes[i] = w.delete(ctx, deletes[i]) })
	for i, out := range outcomes {
		switch {
		case out.err != nil:
			w.result.Deletes.fail(out.err)
		case out.done:
			w.result.Deletes.Done++
			w.deleted = append(w.deleted, deletes[i])
		}
	}
}

// delete deletes one pod, if it is still the one that was judged.
func (w *writer) delete(ctx context.Context, a action.Delete) outcome {
	w.Expectations.Deleting(w.set.UID, a.Pod.UID)
	// The pod is shared with the cache: the client gets an object of its own.
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = a.Pod.Name, a.Pod.Namespace
	err := w.Client.Delete(ctx, pod, client.Preconditions{UID: &a.Pod.UID})
	switch {
	case err == nil:
		return outcome{done: true}
	case apierrors.IsNotFound(err):
		return outcome{} // the pod that was judged is gone, and the cache is going to show it
	case apierrors.IsConflict(err):
		// It was replaced, and the cache is going to show that; or somebody on the way refused the write with this code.
		w.Expectations.DoubtDelete(w.set.UID, a.Pod.UID)
		return outcome{}
	case mayHaveHappened(err):
		w.Expectations.DoubtDelete(w.set.UID, a.Pod.UID)
	default:
		w.Expectations.Unfulfillable(w.set.UID, a.Pod.UID)
	}
	return outcome{err: fmt.Errorf("delete pod %s: %w", a.Pod.Name, err)}
}
