// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// ordinalCommands returns the commands about ordinals and claims.
func ordinalCommands() []command {
	return []command{
		specWord("reserve", func(s *v1beta1.RollSetSpec, list string) {
			s.ReserveOrdinals = nil
			for entry := range strings.SplitSeq(list, ",") {
				s.ReserveOrdinals = append(s.ReserveOrdinals, intstr.Parse(entry))
			}
		}),
		specWord("whenDeleted", func(s *v1beta1.RollSetSpec, v string) { retention(s).WhenDeleted = v1beta1.ClaimRetentionPolicy(v) }),
		specWord("whenScaled", func(s *v1beta1.RollSetSpec, v string) { retention(s).WhenScaled = v1beta1.ClaimRetentionPolicy(v) }),
		specWord("storage", func(s *v1beta1.RollSetSpec, size string) {
			for i := range s.VolumeClaimTemplates {
				request := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
				s.VolumeClaimTemplates[i].Spec.Resources.Requests = request
			}
		}),
		specWord("attributes", func(s *v1beta1.RollSetSpec, class string) {
			for i := range s.VolumeClaimTemplates {
				s.VolumeClaimTemplates[i].Spec.VolumeAttributesClassName = &class
				if class == "none" {
					s.VolumeClaimTemplates[i].Spec.VolumeAttributesClassName = nil
				}
			}
		}),
		{"class", 1, useClass},
	}
}

// growing is the storage class whose claims can grow. Any other class has claims that cannot.
const growing = "growing"

// useClass lets the claim templates ask for a storage class, and creates it: "class growing".
func useClass(_ context.Context, w *World, args []string) error {
	if err := createClass(w.Store, args[0]); err != nil {
		return err
	}
	return w.Edit("class "+args[0], func(s *v1beta1.RollSetSpec) {
		for i := range s.VolumeClaimTemplates {
			s.VolumeClaimTemplates[i].Spec.StorageClassName = new(args[0])
		}
	})
}

// createClass creates a storage class, if it does not exist.
func createClass(store *apiserver.Store, name string) error {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: new(name == growing)}
	_, err := store.Create(apiserver.Write{Actor: userActor}, class)
	return client.IgnoreAlreadyExists(err)
}

func retention(s *v1beta1.RollSetSpec) *v1beta1.PersistentVolumeClaimRetentionPolicy {
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{}
	}
	return s.PersistentVolumeClaimRetentionPolicy
}
