// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
)

// outdated returns how long to wait because the cache shows a version of the set from before its newest status, or a deleted set; zero
// if the cache is up to date. It asks the API server once in the life of this process: before the first pod is created, and before the
// first rollout in steps is planned. Only the status says how many ids were given out, and which step is at work. With an older status
// the controller would give ids out again, and move pods back that a step has moved. The expectations cover the later writes of this
// process.
func (s *step) outdated(ctx context.Context, live client.Reader, store *expectations.Store) (time.Duration, error) {
	m := s.memory
	if m.sawStatus || m.revisions.New || s.snap.Rollout.Next == nil && !slices.ContainsFunc(s.plan.Actions, isCreate) {
		return 0, nil
	}
	if wait := s.writes.Wait(asking()); wait > 0 {
		return wait, nil
	}
	set := &v1beta1.RollSet{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(s.Set), set); err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("ask for the newest status of the set: %w", err)
	}
	if set.UID != s.Set.UID { // the cache will show no version of this set
		return s.askLater(), nil
	}
	m.sawStatus = true
	if set.ResourceVersion == s.Set.ResourceVersion {
		return 0, nil
	}
	store.Wrote(s.Set.UID, informer.SetKind(), set.ResourceVersion)
	return lookAgain, nil
}

// unseen returns how long to wait because a set has pods that the cache does not show; zero if it shows them. On such a cache the
// controller would create all pods again, and report that there are none.
//
// A cache never goes back. So this asks the API server only until the cache has shown a pod of the set for the first time in the life of
// this process, and only if the status counts pods. Either they were lost while no manager ran, or the cache was filled by an API server
// that lags behind.
func (v *view) unseen(ctx context.Context, live client.Reader) (time.Duration, error) {
	m := v.memory
	if len(v.Pods) > 0 {
		m.sawPods = true
	}
	if m.sawPods || v.Set.Status.Replicas == 0 {
		return 0, nil
	}
	if wait := v.writes.Wait(asking()); wait > 0 {
		return wait, nil
	}
	exists, err := v.hasPod(ctx, live)
	if err != nil {
		return 0, err
	}
	if !exists {
		m.sawPods = true
		return 0, nil
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("waiting for a cache that shows no pods", "replicas", v.Set.Status.Replicas)
	return v.askLater(), nil
}

// askLater notes that the cache is behind the API server, and returns when to ask again.
func (v *view) askLater() time.Duration {
	v.writes.Note(asking(), backoff.Failure{Refused: true})
	return v.writes.Wait(asking())
}

func asking() attempt.Key { return attempt.Key{Verb: backoff.AskingLive} }

// page is how many pods are asked for at a time.
const page = 500

// unshown returns how long to wait before a plan that creates pods, because ids were given out that the cache has never shown. Either
// their pods were deleted, or the cache is behind, and the plan would create those pods again under other names. A create that timed
// out leaves such an id. It asks the API server, unless this process has created all pods of the set.
func (v *view) unshown(ctx context.Context, live client.Reader, p action.Plan) (time.Duration, error) {
	m := &v.memory.seen
	issued, shown, some := m.Unshown(v.Set)
	if !some || !slices.ContainsFunc(p.Actions, isCreate) {
		return 0, nil
	}
	if wait := v.writes.Wait(asking()); wait > 0 {
		return wait, nil
	}
	behind, err := v.hasPodsUnshown(ctx, live)
	if err != nil {
		return 0, err
	}
	if !behind {
		m.Shown(v.Set)
		return 0, nil
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("waiting for a cache that does not show all pods", "issued", issued, "shown", shown)
	return v.askLater(), nil
}

func isCreate(a action.Action) bool {
	_, ok := a.(action.Create)
	return ok
}

// behind reports whether the cache is behind the API server. A new template may reach the cache before the event that makes the last pod
// of the template before it available. It asks once for each generation of the set.
func (v *view) behind(ctx context.Context, live client.Reader, store *expectations.Store) (behind bool, err error) {
	if v.memory.judged == v.Set.Generation {
		return false, nil
	}
	wait, err := v.catchUp(ctx, live, store)
	if err == nil {
		v.memory.judged = v.Set.Generation
	}
	return wait > 0, err
}

// catchUp lets the set wait for what the API server has of its pods and the cache does not show, and returns how long until the next
// look; zero if the cache shows it all.
func (v *view) catchUp(ctx context.Context, live client.Reader, store *expectations.Store) (wait time.Duration, err error) {
	known := make(map[types.UID]string, len(v.Pods))
	for _, pod := range v.Pods {
		if v.Selector.Matches(labels.Set(pod.Labels)) {
			known[pod.UID] = pod.ResourceVersion
		}
	}
	err = v.eachPod(ctx, live, func(pod *corev1.Pod) (stop bool) {
		if known[pod.UID] != pod.ResourceVersion {
			wait = lookAgain
			store.Wrote(v.Set.UID, expectations.PodKind(), pod.ResourceVersion)
		}
		delete(known, pod.UID)
		return false
	})
	if err != nil {
		return 0, err
	}
	store.Looked(v.Set.UID)
	for gone := range known { // or they are no pods of the set now
		wait = lookAgain
		store.UnsettledDelete(v.Set.UID, gone)
	}
	return wait, nil
}

// hasPodsUnshown asks the API server whether the set controls pods that the cache does not show.
func (v *view) hasPodsUnshown(ctx context.Context, live client.Reader) (some bool, err error) {
	known := make(map[types.UID]bool, len(v.Pods))
	for _, pod := range v.Pods {
		known[pod.UID] = true
	}
	err = v.eachPod(ctx, live, func(pod *corev1.Pod) (stop bool) {
		some = some || !known[pod.UID]
		return some
	})
	return some, err
}

// eachPod calls a function with each pod that the set controls, as the API server has it, until it says stop.
func (v *view) eachPod(ctx context.Context, live client.Reader, call func(*corev1.Pod) (stop bool)) error {
	pods := &corev1.PodList{}
	for {
		err := live.List(ctx, pods, client.InNamespace(v.Set.Namespace), client.MatchingLabelsSelector{Selector: v.Selector},
			client.Limit(page), client.Continue(pods.Continue))
		if err != nil {
			return fmt.Errorf("ask for pods that the cache does not show: %w", err)
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; metav1.IsControlledBy(pod, v.Set) && call(pod) {
				return nil
			}
		}
		if pods.Continue == "" {
			return nil
		}
	}
}

// hasPod asks the API server for one pod that the set controls. Its pods have a revision
// label of the set, unlike others that its selector matches.
func (v *view) hasPod(ctx context.Context, live client.Reader) (bool, error) {
	selector := v.Selector
	if names := revisionNames(v.Set); len(names) > 0 {
		ours, err := labels.NewRequirement(v1beta1.RevisionLabel, selection.In, names)
		if err != nil {
			return false, fmt.Errorf("select pods by revision: %w", err)
		}
		selector = selector.Add(*ours)
	}
	pods := &corev1.PodList{}
	err := live.List(ctx, pods, client.InNamespace(v.Set.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(1))
	if err != nil {
		return false, fmt.Errorf("ask for pods that the cache does not show: %w", err)
	}
	return len(pods.Items) > 0 && metav1.IsControlledBy(&pods.Items[0], v.Set), nil
}

// revisionNames are the revisions that pods run, as the status has it.
func revisionNames(set *v1beta1.RollSet) []string {
	names := make([]string, len(set.Status.Revisions))
	for i := range set.Status.Revisions {
		names[i] = set.Status.Revisions[i].Name
	}
	return names
}
