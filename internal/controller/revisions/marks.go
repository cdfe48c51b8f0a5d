// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Prove records on the update revision that it is proven.
func (c *Control) Prove(ctx context.Context, v *Look, snap *snapshot.Set) {
	for _, seen := range v.Revisions {
		if seen.Name != snap.Update.Name {
			continue
		}
		if proven := revision.Prove(seen); proven != nil {
			c.patch(ctx, v, seen, proven)
		}
	}
}

// Reject records on the update revision that its rollout was given up, so that a lost status does not lose it.
func (c *Control) Reject(ctx context.Context, v *Look, snap *snapshot.Set, verdict string) {
	for _, seen := range v.Revisions {
		if seen.Name != snap.Update.Name {
			continue
		}
		rejected := seen.DeepCopy()
		if rejected.Annotations == nil {
			rejected.Annotations = map[string]string{}
		}
		rejected.Annotations[revision.RejectedAnnotation] = verdict
		if !c.patch(ctx, v, seen, rejected) {
			continue
		}
		logr.FromContextOrDiscard(ctx).Info("rejected revision", "revision", seen.Name, "reason", verdict)
		c.Events.Eventf(v.Set, nil, corev1.EventTypeWarning, v1beta1.ReasonRolledBack, "Reject",
			"Revision %s %s; all pods go back to revision %s", seen.Name, revision.Sentence(verdict), snap.Current.Name)
	}
}

// tellVerdict records the event that a revision was rejected, or is tried again, as a user asked.
func (c *Control) tellVerdict(set *v1beta1.RollSet, before, now *appsv1.ControllerRevision) {
	was, is := before.Annotations[revision.RejectedAnnotation], now.Annotations[revision.RejectedAnnotation]
	switch {
	case was == is:
	case is == revision.Aborted:
		c.Events.Eventf(set, nil, corev1.EventTypeWarning, v1beta1.ReasonRolledBack, "Reject",
			"Revision %s %s; all pods go back to revision %s", now.Name, revision.Sentence(is), set.Status.CurrentRevision)
	case revision.Judged(before, now) && before.Revision == now.Revision:
		c.Events.Eventf(set, nil, corev1.EventTypeNormal, v1beta1.ReasonRetried, "Retry", "Revision %s is tried again", now.Name)
	}
}
