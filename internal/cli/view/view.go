// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package view is the verbs that read: get, status, history, diff and logs.
//
// The rule: the output shows the objects as the API server has them now, and the sentences of the controller's status. Nothing is
// written.
package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/revision"
)

// Commands returns the verbs of this package.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newGet(s), newStatus(s), newHistory(s), newDiff(s), newLogs(s)}
}

// Revisions returns the ControllerRevisions of a set, oldest first.
func Revisions(ctx context.Context, c client.Reader, set *v1beta1.RollSet) ([]*appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := c.List(ctx, list, client.InNamespace(set.Namespace)); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	own := ownedBy(set, Pointers(list.Items))
	sortRevisions(own)
	return own, nil
}

// Pointers returns the addresses of items.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// ownedBy returns the objects that a set controls.
func ownedBy[T metav1.Object](set *v1beta1.RollSet, objects []T) []T {
	return slices.DeleteFunc(objects, func(o T) bool { return !metav1.IsControlledBy(o, set) })
}

func sortRevisions(all []*appsv1.ControllerRevision) {
	slices.SortFunc(all, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
}

// previous returns the revision to compare with the one in the spec: the current one during a rollout, otherwise the one
// before the newest.
func previous(set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	current, update := set.Status.CurrentRevision, set.Status.UpdateRevision
	for _, r := range slices.Backward(revisions) {
		if current != update && r.Name == current || current == update && r.Name != update {
			return r, nil
		}
	}
	return nil, fmt.Errorf("rollset %s has no earlier revision", set.Name)
}

// LastProven returns the revision to go back to: the current one during a rollout, otherwise the newest other one. It must have
// been complete once.
func LastProven(set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	current, update := set.Status.CurrentRevision, set.Status.UpdateRevision
	var last *appsv1.ControllerRevision
	var others []string
	for _, r := range slices.Backward(revisions) {
		switch {
		case r.Name == update:
		case !revision.WasProven(r):
			others = append(others, strconv.FormatInt(r.Revision, 10))
		case last == nil || r.Name == current:
			last = r
		}
	}
	switch {
	case last != nil:
		return last, nil
	case len(others) > 0:
		return nil, fmt.Errorf("rollset %s has no earlier revision that is proven; --to-revision goes to one that never was complete: %s", set.Name, strings.Join(others, ", "))
	default:
		return nil, fmt.Errorf("rollset %s has no earlier revision to go back to", set.Name)
	}
}

// Numbered returns the revision with a number.
func Numbered(set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision, number int64) (*appsv1.ControllerRevision, error) {
	known := make([]string, 0, len(revisions))
	for _, r := range revisions {
		if r.Revision == number {
			return r, nil
		}
		known = append(known, strconv.FormatInt(r.Revision, 10))
	}
	return nil, fmt.Errorf("rollset %s has no revision %d; it has %s", set.Name, number, strings.Join(known, ", "))
}

// template returns the pod template that a revision holds.
func template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	decoded, _, err := revision.Decode(r)
	if err != nil {
		return nil, fmt.Errorf("revision %d (%s) cannot be read: %w", r.Revision, r.Name, err)
	}
	return decoded, nil
}

// images returns the images of a template, in the order of its containers.
func images(t *corev1.PodTemplateSpec) string {
	var all []string
	for i := range t.Spec.Containers {
		all = append(all, podstate.Printable(t.Spec.Containers[i].Image, textLimit))
	}
	return strings.Join(all, ",")
}

// Pods returns the pods that a set controls, by name.
func Pods(ctx context.Context, c client.Reader, set *v1beta1.RollSet) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	own := ownedBy(set, Pointers(list.Items))
	slices.SortFunc(own, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return own, nil
}

// getSet reads a set.
func getSet(ctx context.Context, c client.Reader, key client.ObjectKey) (*v1beta1.RollSet, error) {
	set := &v1beta1.RollSet{}
	if err := c.Get(ctx, key, set); err != nil {
		return nil, err
	}
	set.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("RollSet"))
	return set, nil
}

// errWhichRevision is the error for an invalid range of revisions.
var errWhichRevision = errors.New("--revision is a number, or two such as 3..5")
