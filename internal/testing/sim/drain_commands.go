// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// drainCommands returns the commands about nodes that leave. The nodes are called as their zones: a, b and c.
func drainCommands() []command {
	return []command{
		{"on-drain", 1, setOnDrain},
		{"drain-taints", 1, setDrainTaints},
		{"cordon-node", 1, editNode("cordon", func(n *corev1.Node) { n.Spec.Unschedulable = true })},
		{"taint-node", 2, taintNode},
		{"keep-node", 1, editNode("keep", func(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = false, nil })},
		{"tolerate", 0, tolerate},
	}
}

// setOnDrain sets what happens to pods on nodes that leave: "on-drain Replace".
func setOnDrain(_ context.Context, w *World, args []string) error {
	for i := range nodes { // a world whose sets ask for no nodes has none in its store
		if err := addNode(w.Store, i); err != nil {
			return err
		}
	}
	return w.Edit("on-drain "+args[0], func(s *v1beta1.RollSetSpec) {
		disruption(s).OnDrain = v1beta1.DrainPolicy(args[0])
	})
}

// setDrainTaints sets which taints mark a node that leaves: "drain-taints example.com/leaving,example.com/old"; "none" stands for
// an empty list.
func setDrainTaints(_ context.Context, w *World, args []string) error {
	return w.Edit("drain-taints "+args[0], func(s *v1beta1.RollSetSpec) {
		disruption(s).DrainTaints = []string{}
		if args[0] != "none" {
			disruption(s).DrainTaints = strings.Split(args[0], ",")
		}
	})
}

// disruption returns the disruption of a spec, to be edited.
func disruption(s *v1beta1.RollSetSpec) *v1beta1.Disruption {
	if s.Disruption == nil {
		s.Disruption = &v1beta1.Disruption{}
	}
	return s.Disruption
}

// addNode puts a node into a store, if it is not there.
func addNode(store *apiserver.Store, i int) error {
	if nodeIn(store, i) != nil {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{corev1.LabelTopologyZone: zoneOf(i)}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err := store.Create(apiserver.Write{Actor: nodeActor}, node)
	return err
}

// nodeIn returns a node in a store; nil if it is not there.
func nodeIn(store *apiserver.Store, i int) *corev1.Node {
	node, _ := store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: nodeName(i)}).(*corev1.Node)
	return node
}

// editNode returns a command that edits one node. Pods without a node are then scheduled again.
func editNode(what string, change func(*corev1.Node)) func(context.Context, *World, []string) error {
	return func(_ context.Context, w *World, args []string) error {
		for i := range nodes {
			if zoneOf(i) != args[0] {
				continue
			}
			w.note(what + " node " + args[0])
			if err := addNode(w.Store, i); err != nil {
				return err
			}
			err := edit(w, nodeIn(w.Store, i), change)
			w.scheduler.retryAll()
			return err
		}
		return fmt.Errorf("no node %q", args[0])
	}
}

// taintNode lets a node have a taint that keeps pods away: "taint-node a karpenter.sh/disrupted".
func taintNode(ctx context.Context, w *World, args []string) error {
	return editNode("taint with "+args[1], func(n *corev1.Node) {
		if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == args[1] }) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: args[1], Effect: corev1.TaintEffectNoSchedule})
		}
	})(ctx, w, args)
}

// tolerate lets the pods of the template tolerate all that keeps pods away from nodes.
func tolerate(_ context.Context, w *World, _ []string) error {
	return w.Edit("tolerate all taints", func(s *v1beta1.RollSetSpec) {
		s.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
}

// reportNodes lets the nodes of a zone, or all of them, report whether they are ready.
func reportNodes(store *apiserver.Store, zone string, ready corev1.ConditionStatus) error {
	for i := range nodes {
		if nodeIn(store, i) == nil || zone != "" && zoneOf(i) != zone {
			continue
		}
		edited := apiserver.Clone(nodeIn(store, i))
		edited.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if _, err := store.Update(apiserver.Write{Actor: nodeActor}, edited); err != nil {
			return err
		}
	}
	return nil
}

// takes reports whether a node takes a pod.
func (s *scheduler) takes(i int, pod *corev1.Pod) bool {
	if s.down[zoneOf(i)] {
		return false
	}
	node := nodeIn(s.Store, i)
	return node == nil || !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 || pod != nil && invariants.ToleratesAll(pod)
}
