// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/inplace"
)

// change is one patch of a running pod.
type change struct {
	action action.Action
	pod    *corev1.Pod
	// subresource is the subresource to patch; empty for the pod itself.
	subresource string
	patch       []byte
	// replaces is true if lists in the patch replace the lists of the pod.
	replaces bool
	// why is the reason, for logs.
	why string
}

// updater changes the pods of a set in place.
type updater struct{ *writer }

// changeOf returns the patch that an action asks for.
func (w updater) changeOf(a action.Action) (c change, err error) {
	c.action = a
	switch a := a.(type) {
	case action.CloseGate:
		c.pod, c.subresource, c.why = a.Pod, "status", a.Reason
		c.patch, err = inplace.GatePatch(a.Pod, inplace.Closed, w.snap.Now)
	case action.OpenGate:
		c.pod, c.subresource, c.why = a.Pod, "status", a.Reason
		c.patch, err = inplace.GatePatch(a.Pod, inplace.Open, w.snap.Now)
	case action.UpdateInPlace:
		c.pod, c.why = a.Pod, a.Why()
		c.patch, err = inplace.Patch(a.Pod, a.Change, a.Revision)
	case action.Resize:
		c.pod, c.subresource, c.patch, c.why = a.Pod, "resize", a.Patch, "to the resources of "+a.Revision
	case action.SetState:
		c.pod, c.why = a.Pod, a.Reason
		c.patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": a.Pod.UID, "labels": map[string]string{v1beta1.LifecycleStateLabel: string(a.State)},
			"annotations": map[string]string{v1beta1.LifecycleSinceAnnotation: lifecycle.Record(a.State, w.snap.Now, a.Passed)},
		}})
	case action.Relabel:
		c.pod, c.why = a.Pod, a.String()
		c.patch, err = w.labelPatch(a)
	case action.Unmark:
		c.pod, c.why = a.Pod, a.String()
		c.patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": a.Pod.UID, "resourceVersion": a.Pod.ResourceVersion, "labels": map[string]any{a.Label: nil},
		}})
	case action.Adopt:
		c.pod, c.why, c.replaces = a.Pod, a.String(), true
		if err = w.stays(); err != nil {
			return c, c.failure(err)
		}
		c.patch, err = ownerPatch(a.Pod, append(slices.Clone(a.Pod.OwnerReferences), claims.Owner(w.set.Name, w.set.UID)))
	case action.Release:
		c.pod, c.why, c.replaces = a.Pod, a.String(), true
		c.patch, err = ownerPatch(a.Pod, withoutOwner(a.Pod, w.set.UID))
	case action.Create, action.Delete, action.Preflight,
		action.CreateClaims, action.OwnClaim, action.ChangeClaim, action.DeleteClaim,
		action.CreateBudget, action.UpdateBudget, action.DeleteBudget:
	}
	return c, err
}

// updateAll patches running pods.
func (w updater) updateAll(ctx context.Context, updates []action.Action, tally *attempt.Tally) {
	updates = updates[:min(len(updates), MaxWrites)]
	changes := make([]change, len(updates))
	outcomes := make([]outcome, len(updates))
	w.Run(w.set.Namespace, len(updates), func(i int) {
		if changes[i], outcomes[i].err = w.changeOf(updates[i]); outcomes[i].err == nil {
			outcomes[i] = w.update(ctx, changes[i])
		}
	})
	looks := 0
	for i, out := range outcomes {
		if out.stale = out.stale || w.unsettled(updates[i], out); out.stale && looks < maxLooks {
			looks++
			out.stale = w.changed(ctx, changes[i].pod)
		}
		w.tried(updates[i], out)
		switch {
		case out.stale:
		case changes[i].subresource == "resize" && attempt.Refused(out.err) && !attempt.ByRule(out.err): // the plan knows other ways
		case out.err != nil:
			tally.Fail(out.err)
		case out.done:
			tally.Done++
			w.updated = append(w.updated, changes[i])
		}
	}
}

// update patches one pod if it still is the one that was judged.
func (w updater) update(ctx context.Context, c change) outcome {
	// The pod is shared with the cache, so the client gets an object of its own.
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = c.pod.Name, c.pod.Namespace
	patch := client.RawPatch(types.StrategicMergePatchType, c.patch)
	if c.replaces {
		patch = client.RawPatch(types.MergePatchType, c.patch)
	}
	var err error
	if c.subresource == "" {
		err = w.Client.Patch(ctx, pod, patch)
	} else {
		err = w.Client.SubResource(c.subresource).Patch(ctx, pod, patch)
	}
	switch {
	case err == nil:
		w.Expectations.Wrote(w.set.UID, expectations.PodKind(), pod.ResourceVersion)
		if err := attempt.CheckPatch(c.patch, c.pod, pod); err != nil {
			return outcome{err: c.failure(err)}
		}
		return outcome{done: true}
	case apierrors.IsNotFound(err): // the cache is about to show it
		return outcome{}
	case apierrors.IsConflict(err):
		return outcome{stale: true, err: c.failure(err)}
	case c.subresource == "resize" && attempt.Refused(err):
		return outcome{err: err}
	case attempt.MayHaveHappened(err):
		w.Expectations.UnsettledUpdate(w.set.UID, c.pod.UID, c.pod.ResourceVersion)
	}
	return outcome{err: c.failure(err)}
}

// changed reports whether a pod may have changed since it was judged. If it has not, an admission plugin or a proxy refused
// the write. If it has, the cache is behind, and shows the pod before the next plan.
func (w *writer) changed(ctx context.Context, judged *corev1.Pod) bool {
	pod := &corev1.Pod{}
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(judged), pod); err != nil {
		return true
	}
	if pod.UID == judged.UID && pod.ResourceVersion == judged.ResourceVersion {
		return false
	}
	w.Expectations.Wrote(w.set.UID, expectations.PodKind(), pod.ResourceVersion)
	return true
}

// failure adds to an error what was tried.
func (c *change) failure(err error) error {
	verb := "patch"
	if c.belonging() {
		verb = string(action.KeyOf(c.action).Verb)
	}
	return fmt.Errorf("%s pod %s: %w", verb, c.pod.Name, err)
}

// belonging reports whether a change is about the owner or revision of a pod.
func (c *change) belonging() bool {
	verb := action.KeyOf(c.action).Verb
	return verb == attempt.Adopting || verb == attempt.Releasing || verb == attempt.Relabeling
}
