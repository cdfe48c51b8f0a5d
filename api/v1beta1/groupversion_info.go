// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the API of RollSet: one workload kind that replaces StatefulSet, ReplicaSet and CloneSet. It declares
// types, defaults and validation.
// +kubebuilder:object:generate=true
// +groupName=apps.rollset.dev
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of this API.
	GroupVersion = schema.GroupVersion{Group: "apps.rollset.dev", Version: "v1beta1"}

	// SchemeBuilder collects the functions that add this API to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types of this API to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &RollSet{}, &RollSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
