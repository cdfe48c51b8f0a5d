// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

// handful is how many pods a set may get on the word of an empty cache alone.
const handful = 5

// unseen says how long to wait because a set has pods that the cache does not show; zero if there is nothing to wait
// for. Acting on such a cache would mean to create all pods once more, and to report that there are none.
//
// A cache only goes forward. So it is doubted until it has shown a pod of the set for the first time in the life of
// this process, and only if the status speaks of pods: they were lost while nobody looked, or the cache was filled by an
// API server that lags behind. One look past the cache tells.
func (r *Reconciler) unseen(ctx context.Context, v *view) (time.Duration, error) {
	m := v.memory
	if len(v.pods) > 0 {
		m.sawPods = true
	}
	if wanted := v.set.Spec.Replicas; m.sawPods || v.set.Status.Replicas == 0 || wanted != nil && *wanted <= handful {
		return 0, nil
	}
	if wait := m.doubt.wait(v.generation(), v.now); wait > 0 {
		return wait, nil
	}
	exists, err := r.hasPod(ctx, v)
	if err != nil {
		return 0, err
	}
	if !exists {
		m.sawPods = true
		return 0, nil
	}
	m.doubt.failed(v.generation(), v.now)
	logr.FromContextOrDiscard(ctx).V(1).Info("waiting for a cache that shows no pods", "replicas", v.set.Status.Replicas)
	return m.doubt.wait(v.generation(), v.now), nil
}

// hasPod asks the API server for one pod that the set controls. Revisions are what tells its pods from those of others
// that its selector matches as well.
func (r *Reconciler) hasPod(ctx context.Context, v *view) (bool, error) {
	selector := v.selector
	if names := revisionNames(v.set); len(names) > 0 {
		ours, err := labels.NewRequirement(v1alpha1.RevisionLabel, selection.In, names)
		if err != nil {
			return false, fmt.Errorf("select pods by revision: %w", err)
		}
		selector = selector.Add(*ours)
	}
	pods := &corev1.PodList{}
	err := r.Live.List(ctx, pods, client.InNamespace(v.set.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(1))
	if err != nil {
		return false, fmt.Errorf("ask for pods that the cache does not show: %w", err)
	}
	return len(pods.Items) > 0 && metav1.IsControlledBy(&pods.Items[0], v.set), nil
}

// revisionNames are the revisions that pods run, as the status has it.
func revisionNames(set *v1alpha1.RollSet) []string {
	names := make([]string, len(set.Status.Revisions))
	for i := range set.Status.Revisions {
		names[i] = set.Status.Revisions[i].Name
	}
	return names
}
