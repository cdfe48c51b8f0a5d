// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// goal is a number of pods in a wanted state.
type goal struct {
	count int
	holds func(*corev1.Pod) bool

	now     int
	reached chan struct{} // closed when count pods are in the wanted state
	at      time.Time     // when that was; to be read after reached
}

// newGoal returns a goal that is reached when exactly count pods of the namespace are in the wanted state.
func newGoal(count int, holds func(*corev1.Pod) bool) *goal {
	return &goal{count: count, holds: holds, reached: make(chan struct{})}
}

func (g *goal) check() {
	if g.now == g.count && g.at.IsZero() {
		g.at = time.Now()
		close(g.reached)
	}
}

// watcher knows the pods of a namespace and the times at which goals are reached.
type watcher struct {
	mu    sync.Mutex // guards the two below
	pods  map[types.UID]*corev1.Pod
	goals []*goal
	// broken is closed when the watch has ended.
	broken chan struct{}
}

// watchPods watches an empty namespace until the context ends.
func watchPods(ctx context.Context, api kubernetes.Interface, namespace string) (*watcher, error) {
	list, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	// An overloaded server cuts watches. This one continues where it was cut.
	events, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: api.CoreV1().Pods(namespace).Watch,
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	w := &watcher{pods: map[types.UID]*corev1.Pod{}, broken: make(chan struct{})}
	go func() {
		defer close(w.broken)
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				w.see(pod, event.Type)
			}
		}
	}()
	return w, nil
}

func (w *watcher) see(pod *corev1.Pod, kind watch.EventType) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.pods[pod.UID]
	if kind == watch.Deleted {
		delete(w.pods, pod.UID)
	} else {
		w.pods[pod.UID] = pod
	}
	for _, g := range w.goals {
		if before != nil && g.holds(before) {
			g.now--
		}
		if kind != watch.Deleted && g.holds(pod) {
			g.now++
		}
		g.check()
	}
}

// aim sets the goals.
func (w *watcher) aim(goals ...*goal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.goals = goals
	for _, g := range goals {
		for _, pod := range w.pods {
			if g.holds(pod) {
				g.now++
			}
		}
		g.check()
	}
}

// await waits until all goals are reached.
func (w *watcher) await(ctx context.Context, ended <-chan struct{}) error {
	w.mu.Lock()
	goals := w.goals
	w.mu.Unlock()
	for _, g := range goals {
		select {
		case <-g.reached:
		case <-ended:
			return errors.New("the controller has ended")
		case <-w.broken:
			return errors.New("the watch of pods has ended")
		case <-ctx.Done():
			w.mu.Lock()
			now := g.now
			w.mu.Unlock()
			return fmt.Errorf("%d pods are as wanted, not %d: %w", now, g.count, context.Cause(ctx))
		}
	}
	return nil
}

// names returns the names of all pods.
func (w *watcher) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, pod := range w.pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}
