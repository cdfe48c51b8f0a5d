// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/inplace"
)

// change is one patch of a running pod.
type change struct {
	action action.Action
	pod    *corev1.Pod
	// subresource is the one to patch; empty for the pod itself.
	subresource string
	patch       []byte
	// why is the reason for logs.
	why string
}

// changeOf is the patch that an action asks for.
func (w *writer) changeOf(a action.Action) (c change, err error) {
	c.action = a
	switch a := a.(type) {
	case action.CloseGate:
		c.pod, c.subresource, c.why = a.Pod, "status", a.Reason
		c.patch, err = inplace.GatePatch(a.Pod, inplace.Closed, w.observation.Now)
	case action.OpenGate:
		c.pod, c.subresource, c.why = a.Pod, "status", a.Reason
		c.patch, err = inplace.GatePatch(a.Pod, inplace.Open, w.observation.Now)
	case action.UpdateInPlace:
		c.pod, c.why = a.Pod, a.Change.String()
		c.patch, err = inplace.Patch(a.Pod, a.Change, a.Revision)
	case action.Resize:
		c.pod, c.subresource, c.patch, c.why = a.Pod, "resize", a.Patch, "to the resources of "+a.Revision
	case action.SetState:
		c.pod, c.why = a.Pod, a.Reason
		c.patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": a.Pod.UID, "labels": map[string]string{v1alpha1.LifecycleStateLabel: string(a.State)},
		}})
	case action.Create, action.Delete, action.Relabel, action.Preflight,
		action.CreateClaims, action.OwnClaim, action.GrowClaim, action.DeleteClaim:
	}
	return c, err
}

// updateAll patches running pods.
func (w *writer) updateAll(ctx context.Context, updates []action.Action) {
	updates = updates[:min(len(updates), MaxWrites)]
	changes := make([]change, len(updates))
	outcomes := make([]outcome, len(updates))
	w.Run(len(updates), func(i int) {
		if changes[i], outcomes[i].err = w.changeOf(updates[i]); outcomes[i].err == nil {
			outcomes[i] = w.update(ctx, changes[i])
		}
	})
	for i, out := range outcomes {
		w.result.Stale = w.result.Stale || out.stale
		switch {
		case out.infeasible != "":
			if w.result.Infeasible == nil {
				w.result.Infeasible = map[types.UID]string{}
			}
			w.result.Infeasible[changes[i].pod.UID] = out.infeasible
		case out.err != nil:
			w.result.Updates.fail(out.err)
		case out.done:
			w.result.Updates.Done++
			w.updated = append(w.updated, changes[i])
		}
	}
}

// update patches one pod, if it is still the one that was judged.
func (w *writer) update(ctx context.Context, c change) outcome {
	// The pod is shared with the cache: the client gets an object of its own.
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = c.pod.Name, c.pod.Namespace
	patch := client.RawPatch(types.StrategicMergePatchType, c.patch)
	var err error
	if c.subresource == "" {
		err = w.Client.Patch(ctx, pod, patch)
	} else {
		err = w.Client.SubResource(c.subresource).Patch(ctx, pod, patch)
	}
	switch {
	case err == nil:
		w.Expectations.Wrote(w.set.UID, PodKind(), pod.ResourceVersion)
		return outcome{done: true}
	case apierrors.IsNotFound(err): // an event is on its way
		return outcome{}
	case apierrors.IsConflict(err):
		w.Expectations.DoubtUpdate(w.set.UID, c.pod.UID, c.pod.ResourceVersion)
		return outcome{stale: true}
	case c.subresource == "resize" && Refused(err):
		return outcome{infeasible: err.Error()}
	case mayHaveHappened(err):
		w.Expectations.DoubtUpdate(w.set.UID, c.pod.UID, c.pod.ResourceVersion)
	}
	return outcome{err: fmt.Errorf("patch pod %s: %w", c.pod.Name, err)}
}

// Refused says whether the API server understood a write and will not carry it out as things are: a resize to more than
// the node has is forbidden, as is a pod beyond a quota; one that would change the QoS class is invalid.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
