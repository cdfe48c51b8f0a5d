// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// zoneCommands returns the commands about failure domains. The nodes are in the zones a, b and c.
func zoneCommands() []command {
	return []command{
		{"domains", 1, setDomains},
		{"zone-down", 1, zoneDown},
		{"zone-up", 0, zoneUp},
	}
}

// setDomains makes the values of a label failure domains: "domains zone", "domains rack 10" with a soak, or "domains none".
// The word zone stands for the label that nodes have.
func setDomains(_ context.Context, w *World, args []string) error {
	var domains *v1beta1.FailureDomains
	switch key := args[0]; key {
	case "none":
	case "zone":
		domains = &v1beta1.FailureDomains{LabelKey: corev1.LabelTopologyZone}
	default:
		domains = &v1beta1.FailureDomains{LabelKey: key}
	}
	what := "domains " + args[0]
	if domains != nil && len(args) > 1 {
		soak, err := strconv.ParseInt(args[1], 10, 32)
		if err != nil {
			return err
		}
		domains.SoakSeconds = int32(soak)
		what += " " + args[1]
	}
	return w.Edit(what, func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.RollingUpdate.Domains = domains })
}

// zoneDown cuts the nodes of a zone off: the node controller marks their pods as not ready. Then nothing happens to these pods
// until the zone is up again.
func zoneDown(_ context.Context, w *World, args []string) error {
	w.note("zone " + args[0] + " goes down")
	if w.scheduler.down == nil {
		w.scheduler.down = map[string]bool{}
	}
	w.scheduler.down[args[0]] = true
	if err := reportNodes(w.Store, args[0], corev1.ConditionUnknown); err != nil {
		return err
	}
	for _, pod := range w.Pods() {
		if pod.Labels[corev1.LabelTopologyZone] != args[0] || pod.Spec.NodeName == "" {
			continue
		}
		if err := markUnreachable(w.Store, pod); err != nil {
			return err
		}
	}
	return nil
}

// zoneUp brings all zones back: their kubelets report again.
func zoneUp(_ context.Context, w *World, _ []string) error {
	if len(w.scheduler.down) == 0 {
		return nil
	}
	w.note("all zones are up")
	for _, t := range w.kubelets.pods {
		if w.kubelets.isDown(t) {
			t.due, t.at = true, w.Now()
		}
	}
	w.scheduler.down = nil
	if err := reportNodes(w.Store, "", corev1.ConditionTrue); err != nil {
		return err
	}
	w.scheduler.retryAll()
	return nil
}
