// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// claimCommands returns what users do to claims.
func claimCommands() []command {
	return []command{
		{"give-claims", 2, giveClaims},
		{"old-class", 1, useOldClass},
	}
}

// giveClaims labels the claims of pods as those of a set. The pods may be gone.
func giveClaims(_ context.Context, w *World, args []string) error {
	for _, name := range args[1:] {
		pod := w.everNamed(name)
		if pod == nil {
			continue // in a replay the user was too early
		}
		w.note("label the claims of " + name + " as those of the set " + args[0])
		if err := labelClaims(w, pod, func(labels map[string]string) { labels[v1beta1.SetLabel] = args[0] }); err != nil {
			return err
		}
	}
	return nil
}

// labelClaims changes the labels of the claims of a pod.
func labelClaims(w *World, pod *corev1.Pod, change func(map[string]string)) error {
	for _, key := range invariants.ClaimsOf(pod) {
		claim, ok := w.Store.Get(key).(*corev1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		if err := edit(w, claim, func(c *corev1.PersistentVolumeClaim) {
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			change(c.Labels)
		}); err != nil {
			return err
		}
	}
	return nil
}

// useOldClass names a storage class in the annotation of claim templates that is older than the field.
func useOldClass(_ context.Context, w *World, args []string) error {
	if err := createClass(w.Store, args[0]); err != nil {
		return err
	}
	return w.Edit("old-class "+args[0], func(s *v1beta1.RollSetSpec) {
		for i := range s.VolumeClaimTemplates {
			t := &s.VolumeClaimTemplates[i]
			t.Spec.StorageClassName = nil
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, corev1.BetaStorageClassAnnotation, args[0])
		}
	})
}
