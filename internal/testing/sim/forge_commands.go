// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// forgeCommands returns the commands about users who write the set's own labels: "forge surge=true a" on a pod, "forge-claims
// surge=true a" on the claims that it mounts, and "forge surge a" to remove a label.
func forgeCommands() []command {
	return []command{
		{"forge", 2, forge(func(w *World, pod *corev1.Pod, change func(map[string]string)) error {
			return edit(w, pod, func(p *corev1.Pod) { change(p.Labels) })
		})},
		{"forge-claims", 2, forge(labelClaims)},
	}
}

func forge(write func(*World, *corev1.Pod, func(map[string]string)) error) func(context.Context, *World, []string) error {
	return func(ctx context.Context, w *World, args []string) error {
		key, value, set := strings.Cut(args[0], "=")
		change := func(labels map[string]string) {
			if set {
				labels[ownLabel(key)] = value
			} else {
				delete(labels, ownLabel(key))
			}
		}
		return eachPod("forge "+args[0]+" of", func(w *World, pod *corev1.Pod) error { return write(w, pod, change) })(ctx, w, args[1:])
	}
}

// ownLabel returns a label of the set by a short name.
func ownLabel(name string) string {
	switch name {
	case "hash":
		return v1beta1.RevisionLabel
	case "state":
		return v1beta1.LifecycleStateLabel
	case "index":
		return v1beta1.PodIndexLabel
	case "pod-name":
		return v1beta1.PodNameLabel
	default:
		return "apps." + v1beta1.ReservedPrefix + name
	}
}
