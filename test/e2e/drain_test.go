// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

// replacingOnDrain replaces the pods of nodes that leave.
func replacingOnDrain() option {
	return func(set *v1alpha1.RollSet) {
		set.Spec.Disruption = &v1alpha1.Disruption{OnDrain: v1alpha1.ReplaceOnDrain}
	}
}

var _ = Describe("Nodes that leave", Serial, func() {
	f := newFixture()

	// Whatever a spec does to nodes is undone, because the other specs need them.
	BeforeEach(func() {
		DeferCleanup(func(ctx SpecContext) {
			for _, node := range allNodes(ctx) {
				f.kubectl(ctx, "uncordon", node.Name)
			}
		})
	})

	// protect lets no eviction take a pod unless another is available.
	protect := func(ctx context.Context, set *v1alpha1.RollSet, least int) {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: set.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt(least)), Selector: set.Spec.Selector},
		}
		f.createObject(ctx, budget)
		f.await(ctx, "the budget to count", func() error {
			return cluster.client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		})
	}

	// drainAll drains one node after the other, as an upgrade of the cluster does.
	drainAll := func(ctx SpecContext) {
		for _, node := range allNodes(ctx) {
			f.kubectl(ctx, "drain", node.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=app=web", "--timeout=90s")
			f.kubectl(ctx, "uncordon", node.Name)
		}
	}

	It("are drained of a set of one pod that its budget protects", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 1, maxSurge("1"), maxUnavailable("0"), replacingOnDrain())))
		protect(ctx, set, 1)
		from := f.mark()
		drainAll(ctx)
		f.expectAvailableAtLeast(set, from, 1)
	})

	It("are drained of thirty pods with ordinals, one after the other", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 30, ordinal(), parallel(), maxUnavailable("1"), replacingOnDrain())))
		protect(ctx, set, 29)
		from := f.mark()
		drainAll(ctx)
		set = f.awaitReady(ctx, set)
		f.expectAvailableAtLeast(set, from, 29)
		f.expectOneGoingAtATime(set, from)
	})

	It("keep their pods when all leave, until one stays", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3, replacingOnDrain())))
		all, from := allNodes(ctx), f.mark()
		for _, node := range all {
			f.kubectl(ctx, "cordon", node.Name)
		}
		f.awaitProgress(ctx, set, ContainSubstring("no node is ready that stays"))
		allLeave := f.mark()
		f.quiet(ctx, still)
		Expect(f.deleted(set, allLeave)).To(BeZero())

		f.kubectl(ctx, "uncordon", all[0].Name)
		f.awaitPods(ctx, set, "all pods on the node that stays", func(pods []*corev1.Pod) bool {
			return count(pods, func(pod *corev1.Pod) bool { return isAvailable(pod) && pod.Spec.NodeName == all[0].Name }) == 3
		})
		f.expectAvailableAtLeast(set, from, 2)
	})
})

// allNodes returns the nodes of the cluster.
func allNodes(ctx context.Context) []corev1.Node {
	GinkgoHelper()
	list := &corev1.NodeList{}
	Expect(cluster.client.List(ctx, list)).To(Succeed())
	return list.Items
}
