// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// bareWorkers returns how many requests a bare client, which only creates pods, has under way at a time.
func bareWorkers() []int { return []int{1, 16, 64} }

func bareName(workers int) string { return "bare-" + strconv.Itoa(workers) }

// playBare lets a client create pods that knows nothing about them. It is part of this process, so its CPU time is included
// in that of the nodes.
func (b *bed) playBare(ctx context.Context, workers, pods, repetition int) (*sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, workTimeout, errors.New("it took too long"))
	defer cancel()
	namespace, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	watcher, err := watchPods(ctx, b.api, namespace)
	if err != nil {
		return nil, err
	}
	written, done := newGoal(pods, anyPod), newGoal(pods, isReady)
	watcher.aim(written, done)
	begin := time.Now()
	template := wish{name: types.NamespacedName{Namespace: namespace, Name: "bare"}, image: "app:v1", note: "1"}
	if err := b.createPods(ctx, template, workers, pods); err != nil {
		return nil, err
	}
	if err := watcher.await(ctx, nil); err != nil {
		return nil, err
	}
	s := &sample{
		Work: workCreate, Competitor: bareName(workers), Pods: pods, Sets: 1, Repetition: repetition,
		Written: written.at.Sub(begin).Seconds(), Seconds: done.at.Sub(begin).Seconds(),
	}
	gone := newGoal(0, anyPod)
	watcher.aim(gone)
	if err := b.api.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return nil, fmt.Errorf("clear up: %w", err)
	}
	return s, watcher.await(ctx, nil)
}

// createPods creates pods of a wish's template without an owner.
func (b *bed) createPods(ctx context.Context, w wish, workers, pods int) error {
	kubeconfig, err := b.kubeconfig(minimalUser, "")
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	template := w.template()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range pods {
		group.Go(func() error {
			pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
			pod.Name = fmt.Sprintf("%s-%d", w.name.Name, i)
			_, err := api.CoreV1().Pods(w.name.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// bringStrangers creates pods without an owner, in their own namespace, and waits until they are ready.
func (b *bed) bringStrangers(ctx context.Context, w wish, pods int) (err error) {
	w.name.Name = "stranger"
	if w.name.Namespace, err = b.namespace(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	watcher, err := watchPods(watching, b.api, w.name.Namespace)
	if err != nil {
		return err
	}
	ready := newGoal(pods, isReady)
	watcher.aim(ready)
	if err := b.createPods(ctx, w, strangerWriters, pods); err != nil {
		return err
	}
	return watcher.await(ctx, nil)
}

// strangerWriters is how many strangers are created at a time.
const strangerWriters = 16
