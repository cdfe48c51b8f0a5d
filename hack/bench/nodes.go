// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

const (
	// memoryNodes is how many nodes the trial of memory adds.
	memoryNodes = 5000
	// nodeImages and nodeLabels are how many images and labels each of them has.
	nodeImages, nodeLabels = 50, 25
)

// nodes lets one set replace its pods on nodes that leave. The manager keeps nodes only from then on.
func (t *memoryTrial) nodes(ctx context.Context) error {
	n := memoryNodes * t.percent / 100
	if err := t.bed.bringNodes(ctx, n); err != nil {
		return err
	}
	before, err := quietHeap(ctx, t.process)
	if err != nil {
		return err
	}
	if err := t.replaceOnDrain(ctx, t.sets.wishes[0].name); err != nil {
		return err
	}
	after, err := quietHeap(ctx, t.process)
	t.note(fmt.Sprintf("live heap of %d nodes", n), (after-before)/mega, "MB", 10)
	return err
}

// replaceOnDrain lets a set look at nodes, and waits until it does.
func (t *memoryTrial) replaceOnDrain(ctx context.Context, name types.NamespacedName) error {
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"disruption":{"onDrain":"Replace"}}}`))
	if err := t.bed.objects.Patch(ctx, set, patch); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		err := t.bed.objects.Get(ctx, name, set)
		return meta.IsStatusConditionTrue(set.Status.Conditions, v1beta1.ConditionDisruptionReady), err
	})
}

// bringNodes creates nodes without a kubelet, each as large as that of a real one.
func (b *bed) bringNodes(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(foreignWriters)
	for i := range n {
		group.Go(func() error {
			_, err := b.api.CoreV1().Nodes().Create(ctx, largeNode("large-"+strconv.Itoa(i)), metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

// largeNode returns a node with the labels, conditions and images of a node in use.
func largeNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	for i := range nodeLabels {
		node.Labels[fmt.Sprintf("node.example.com/label-%d", i)] = fmt.Sprintf("%s-value-%d", name, i)
	}
	node.Spec.ProviderID, node.Spec.Unschedulable = "example:///zone-a/"+name, true
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasEnough", Message: "kubelet has enough of what this condition is about",
		})
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	for i := range nodeImages {
		image := fmt.Sprintf("registry.example.com/team-%d/program", i)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("%s@sha256:%064d", image, i), image + ":1.0.0"},
			SizeBytes: int64(i) * 1e6,
		})
	}
	return node
}
