// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/podstate"
)

// maxLooks is the maximum number of pods that one batch reads past the cache because they seem to have changed.
const maxLooks = 10

// deleter deletes the pods of a set.
type deleter struct{ *writer }

// deleteAll deletes pods.
func (w deleter) deleteAll(ctx context.Context, deletes []action.Delete) {
	outcomes := make([]outcome, len(deletes))
	w.Run(w.set.Namespace, len(deletes), func(i int) { outcomes[i] = w.delete(ctx, deletes[i].Pod) })
	looks := 0
	for i, out := range outcomes {
		judged := deletes[i].Pod
		switch unsettled := w.unsettled(deletes[i], out); {
		case looks == maxLooks:
			out.stale = out.stale || unsettled
		case out.stale:
			looks++
			out = w.deleteChanged(ctx, judged, out)
		case unsettled:
			looks++
			out.stale = w.changed(ctx, judged)
		}
		w.tried(deletes[i], out)
		switch {
		case out.stale:
		case out.err != nil:
			w.result.Deletes.Fail(out.err)
		case out.done:
			w.result.Deletes.Done++
			w.deleted = append(w.deleted, deletes[i])
		}
	}
}

// delete deletes one pod if it still is as it was seen.
func (w deleter) delete(ctx context.Context, seen *corev1.Pod) outcome {
	w.Expectations.Deleting(w.set.UID, seen.UID)
	// The pod is shared with the cache, so the client gets an object of its own.
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = seen.Name, seen.Namespace
	err := w.Client.Delete(ctx, pod, client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion})
	switch {
	case err == nil:
		return outcome{done: true}
	case apierrors.IsNotFound(err):
		return outcome{} // the judged pod is gone, and the cache is about to show it
	case attempt.MayHaveHappened(err):
		w.Expectations.UnsettledDelete(w.set.UID, seen.UID)
	default:
		w.Expectations.Unfulfillable(w.set.UID, seen.UID)
	}
	return outcome{stale: apierrors.IsConflict(err), err: fmt.Errorf("delete pod %s: %w", seen.Name, err)}
}

// deleteChanged deletes a pod that seems to have changed since it was judged, if the change does not matter to the decision.
// Without this, a pod that changes faster than the cache follows would never be deleted. If nothing changed, an admission
// plugin or a proxy refused the delete.
func (w deleter) deleteChanged(ctx context.Context, judged *corev1.Pod, refusal outcome) outcome {
	pod := &corev1.Pod{}
	err := w.Live.Get(ctx, client.ObjectKeyFromObject(judged), pod)
	switch {
	case err != nil:
		return refusal
	case pod.UID == judged.UID && pod.ResourceVersion == judged.ResourceVersion:
		return outcome{err: refusal.err}
	case !equallyDue(judged, pod):
		w.Expectations.Wrote(w.set.UID, expectations.PodKind(), pod.ResourceVersion)
		return refusal
	default:
		return w.delete(ctx, pod)
	}
}

// equallyDue reports whether nothing changed that the decision to delete a pod depends on: owner, labels, since when it waits
// for a hook, finalizers, containers and readiness.
func equallyDue(judged, pod *corev1.Pod) bool {
	_, was := podstate.ReadySince(judged)
	_, is := podstate.ReadySince(pod)
	return pod.UID == judged.UID && !podstate.Terminating(pod) && pod.Generation == judged.Generation &&
		maps.Equal(pod.Labels, judged.Labels) &&
		pod.Annotations[v1beta1.LifecycleSinceAnnotation] == judged.Annotations[v1beta1.LifecycleSinceAnnotation] &&
		slices.Equal(pod.Finalizers, judged.Finalizers) &&
		apiequality.Semantic.DeepEqual(pod.OwnerReferences, judged.OwnerReferences) &&
		pod.Status.Phase == judged.Status.Phase && is == was
}
