// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// orderCommands returns the commands about the order of updates, and the one that labels pods so that they differ.
func orderCommands() []command {
	return []command{
		{"label", 2, labelPod},
		{"weight", 2, weight},
		specWord("order", func(s *v1beta1.RollSetSpec, key string) {
			p := priorities(s)
			p.OrderPriority = append(p.OrderPriority, v1beta1.UpdatePriorityOrderTerm{OrderedKey: key})
		}),
		specWord("scatter", func(s *v1beta1.RollSetSpec, label string) {
			key, value, _ := strings.Cut(label, "=")
			rolling := &s.UpdateStrategy.RollingUpdate
			rolling.ScatterStrategy = append(rolling.ScatterStrategy, v1beta1.UpdateScatterTerm{Key: key, Value: value})
		}),
	}
}

// weight gives pods with a label a weight: "weight 10 zone=a".
func weight(_ context.Context, w *World, args []string) error {
	n, err := strconv.ParseInt(args[0], 10, 32)
	key, value, ok := strings.Cut(args[1], "=")
	if err != nil || !ok {
		return fmt.Errorf("want a number and key=value: %w", err)
	}
	return w.Edit("weight "+strings.Join(args, " "), func(s *v1beta1.RollSetSpec) {
		p := priorities(s)
		p.WeightPriority = append(p.WeightPriority, v1beta1.UpdatePriorityWeightTerm{
			Weight:        int32(n),
			MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		})
	})
}

func priorities(s *v1beta1.RollSetSpec) *v1beta1.UpdatePriorityStrategy {
	rolling := &s.UpdateStrategy.RollingUpdate
	if rolling.PriorityStrategy == nil {
		rolling.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{}
	}
	return rolling.PriorityStrategy
}

// labelPod labels pods: "label zone=a b c".
func labelPod(ctx context.Context, w *World, args []string) error {
	key, value, ok := strings.Cut(args[0], "=")
	if !ok {
		return fmt.Errorf("%q is not key=value", args[0])
	}
	label := func(w *World, pod *corev1.Pod) error {
		return edit(w, pod, func(p *corev1.Pod) { p.Labels[key] = value })
	}
	return eachPod("label "+args[0], label)(ctx, w, args[1:])
}
