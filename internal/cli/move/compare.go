// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
)

// freeIdentity returns an identity that no pod of the workload has: ordinals never reach it.
func freeIdentity(set *v1beta1.RollSet) string {
	if set.Spec.PodIdentity != v1beta1.OrdinalIdentity {
		return "zzzzz"
	}
	return strconv.Itoa(1 << 30)
}

// compare asks the API server what a pod of a set would be. It returns which pods differ, each with the first field that
// differs. The judgment is the controller's own.
func compare(ctx context.Context, c client.Client, set *v1beta1.RollSet, pods []*corev1.Pod) ([]string, error) {
	update := snapshot.RevisionOf(set.Name+"-0000000000", &set.Spec)
	reference := podcontrol.Build(set, update, freeIdentity(set))
	reference.Namespace, reference.OwnerReferences = set.Namespace, nil
	if err := c.Create(ctx, reference, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("ask the API server for a pod of the RollSet, without creating it: %w", err)
	}
	snap := &snapshot.Set{
		Settings:  snapshot.Settings{Name: set.Name, UID: set.UID, Spec: &set.Spec},
		Revisions: snapshot.Revisions{Current: update, Update: update},
	}
	var different []string
	for _, pod := range pods {
		r := &snapshot.Replica{Content: snapshot.Content{Identity: snapshot.Identity{ID: snap.IDOf(pod.Name)}, Pod: pod}}
		if difference := snap.Difference(r, update, reference); difference != "" {
			different = append(different, pod.Name+": "+difference)
		}
	}
	return different, nil
}
