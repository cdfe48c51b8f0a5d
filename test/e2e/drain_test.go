// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// replacingOnDrain replaces the pods of nodes that leave.
func replacingOnDrain() option {
	return func(set *v1beta1.RollSet) {
		set.Spec.Disruption = &v1beta1.Disruption{OnDrain: v1beta1.ReplaceOnDrain}
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
	protect := func(ctx context.Context, set *v1beta1.RollSet, least int) {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: set.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt(least)), Selector: set.Spec.Selector},
		}
		f.createObject(ctx, budget)
		Eventually(func() (int64, error) {
			err := cluster.client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
			return budget.Status.ObservedGeneration, err
		}).WithContext(ctx).Should(Equal(budget.Generation), "the generation of the budget that counts")
	}

	// drainAll drains one node after the other, as an upgrade of the cluster does, of the pods of a set.
	drainAll := func(ctx SpecContext, set *v1beta1.RollSet) {
		for _, node := range allNodes(ctx) {
			f.kubectl(ctx, "drain", node.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=app="+set.Name, "--timeout=90s")
			f.kubectl(ctx, "uncordon", node.Name)
		}
	}

	It("are drained of a set of one pod that its budget protects", core, func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("one", 1, maxSurge("1"), maxUnavailable("0"), replacingOnDrain())))
		protect(ctx, set, 1)
		from := f.mark()
		drainAll(ctx, set)
		f.expectAvailableAtLeast(set, from, 1)
	})

	It("are drained of one pod after the other", long, func(ctx SpecContext) {
		onLocalCluster()
		replicas := 30
		if testing.Short() {
			replicas = 12
		}
		set := f.awaitReady(ctx, f.create(ctx, newSet("some", int32(replicas), maxUnavailable("1"), replacingOnDrain())))
		protect(ctx, set, replicas)
		from := f.mark()
		drainAll(ctx, set)
		set = f.awaitReady(ctx, set)
		f.expectAvailableAtLeast(set, from, replicas-1)
	})

	// kubectl evicts pods by name, and so again those that have come back elsewhere, as far as the budget allows it.
	It("are drained of ordinals, and of some twice", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("ordinal", 9, ordinal(), parallel(), maxUnavailable("1"), replacingOnDrain())))
		protect(ctx, set, 8)
		from := f.mark()
		drainAll(ctx, set)
		f.awaitReady(ctx, set)
		f.expectAvailableAtLeast(set, from, 7) // kubectl takes one, and at the same moment the set another
	})

	It("keep their pods when all leave, until one stays", long, func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("three", 3, replacingOnDrain())))
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

	It("are lost, and free their ordinals once they are declared out of service", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("db", 1, ordinal(), leavingAtOnce())))
		lost := f.pod("db-0")
		name := lost.Spec.NodeName
		DeferCleanup(func(ctx SpecContext) {
			cluster.local.Nodes.Wake(name)
			f.kubectl(ctx, "taint", "node", name, corev1.TaintNodeOutOfService+"-")
			Eventually(asNew).WithContext(ctx).WithArguments(ctx, name).Should(Succeed())
		})
		f.lose(ctx, name)
		f.awaitProgress(ctx, set, ContainSubstring("waiting for db-0: Terminating on node "+name+", which does not answer: if it is off, taint it "+
			"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or delete the Node"))

		f.kubectl(ctx, "taint", "node", name, corev1.TaintNodeOutOfService+"=nodeshutdown:NoExecute")
		f.awaitPods(ctx, set, "db-0 on another node", func(pods []*corev1.Pod) bool {
			return count(pods, func(pod *corev1.Pod) bool { return isAvailable(pod) && pod.Spec.NodeName != name }) == 1
		})
	})
})

// leavingAtOnce lets Kubernetes delete pods as soon as their node is unreachable, and not after five minutes.
func leavingAtOnce() option {
	return func(set *v1beta1.RollSet) {
		for _, taint := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
			set.Spec.Template.Spec.Tolerations = append(set.Spec.Template.Spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(0)),
			})
		}
	}
}

// lose lets a node fall silent. The node lifecycle controller notices after about 50 seconds. In short runs its writes are made
// at once: the pods of the node are not ready, and the node is Unknown.
func (f *fixture) lose(ctx context.Context, name string) {
	GinkgoHelper()
	cluster.local.Nodes.Silence(name)
	if !testing.Short() {
		return
	}
	for _, pod := range f.podsWith(func(pod *corev1.Pod) bool { return pod.Spec.NodeName == name }) {
		changeStatus(ctx, pod.DeepCopy(), func(pod *corev1.Pod) {
			for i := range pod.Status.Conditions {
				if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
					c.Status, c.Reason = corev1.ConditionFalse, "NodeNotReady"
				}
			}
		})
	}
	changeStatus(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(node *corev1.Node) {
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			}
		}
	})
}

// asNew returns why a node does not take pods; nil if it does.
func asNew(ctx context.Context, name string) error {
	node := &corev1.Node{}
	if err := cluster.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready || len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node %s: ready %v, taints %v", name, ready, node.Spec.Taints)
	}
	return nil
}

// allNodes returns the nodes of the cluster.
func allNodes(ctx context.Context) []corev1.Node {
	GinkgoHelper()
	list := &corev1.NodeList{}
	Expect(cluster.client.List(ctx, list)).To(Succeed())
	return list.Items
}
