// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/podcontrol"
)

// tellStalled records an event when nothing will move until a user acts, and says why. A verdict on a revision is reported where it
// is made.
func (r *reporter) tellStalled(s *step, now []metav1.Condition) {
	is, was := meta.FindStatusCondition(now, v1beta1.ConditionStalled), meta.FindStatusCondition(s.Set.Status.Conditions, v1beta1.ConditionStalled)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	switch is.Reason {
	case v1beta1.ReasonInvalidSpec, v1beta1.ReasonInvalidTemplate, v1beta1.ReasonProgressDeadlineExceeded:
		r.events.Eventf(s.Set, nil, corev1.EventTypeWarning, is.Reason, "Report", "%s", is.Message)
	}
}

// tellOverlap warns of pods that the selector of a new set matches and that another object controls, such as a ReplicaSet that
// was left behind by its Deployment, or another set. It looks at all pods of the namespace, so it does so once, when the set is
// first seen.
func (r *reporter) tellOverlap(ctx context.Context, s *step) {
	pods, err := r.pods.All(ctx, s.Set.Namespace)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "cannot look for pods of others")
		return
	}
	if note := overlap(s.view, pods); note != "" {
		r.events.Eventf(s.Set, nil, corev1.EventTypeWarning, podcontrol.SelectorOverlap, "Look", "%s", podcontrol.Short(note))
	}
}

// overlap returns the warning about pods of others that the selector of a set matches; empty if there are none.
func overlap(v *view, pods []client.Object) string {
	var names []string
	owners := map[string]bool{}
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || owner.UID == v.Set.UID || pod.GetDeletionTimestamp() != nil || !v.Selector.Matches(labels.Set(pod.GetLabels())) {
			continue
		}
		names = append(names, pod.GetName())
		owners[owner.Kind+" "+owner.Name] = true
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("The selector also matches %s of %s: what others control is not adopted, and stays beside the pods of this set. "+
		"Give one of both another selector. To move pods over instead, raise spec.replicas by %d, because pods above it are deleted, "+
		"then delete their owner with --cascade=orphan",
		podcontrol.Listed(names), strings.Join(slices.Sorted(maps.Keys(owners)), ", "), len(names))
}
