// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// createPods creates pods of a wish's template without an owner.
func (b *bed) createPods(ctx context.Context, w wish, pods int) error {
	kubeconfig, err := b.kubeconfig(minimalUser)
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
	group.SetLimit(foreignWriters)
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

// bringForeign creates pods without an owner, in their own namespace, and waits until they are ready.
func (b *bed) bringForeign(ctx context.Context, w wish, pods int) (err error) {
	w.name.Name = "foreign"
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
	if err := b.createPods(ctx, w, pods); err != nil {
		return err
	}
	return watcher.await(ctx, nil)
}

// foreignWriters is how many foreign pods are created at a time.
const foreignWriters = 16
