// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// namespacedRole is the role that OLM binds as a Role in each watched namespace, or as a ClusterRole if all are watched. The
// manager's other roles are for the whole cluster.
const namespacedRole = "rollset-manager-role"

// clusterServiceVersion completes the one in config/manifests/bases.
func (r *release) clusterServiceVersion(in *input) (map[string]any, error) {
	csv := in.csv.DeepCopy()
	csv.Name = name(r.version.String())
	csv.Spec.Version = version.OperatorVersion{Version: r.version}
	csv.Annotations["olm.skipRange"] = "<" + r.version.String()
	if r.replaces != "" {
		csv.Spec.Replaces = name(r.replaces)
	}
	csv.Annotations["containerImage"] = r.image
	csv.Spec.RelatedImages = []operatorsv1alpha1.RelatedImage{{Name: "manager", Image: r.image}}
	csv.Spec.Icon = []operatorsv1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}
	examples, err := examples(in.samples)
	if err != nil {
		return nil, err
	}
	csv.Annotations["alm-examples"] = examples
	csv.Spec.InstallStrategy = r.install(in)
	owned := csv.Spec.CustomResourceDefinitions.Owned
	if len(owned) != 1 || owned[0].Name != in.crd.Name || owned[0].Version != in.crd.Spec.Versions[0].Name {
		return nil, fmt.Errorf("it owns %v, and there is %s %s", owned, in.crd.Name, in.crd.Spec.Versions[0].Name)
	}
	describe(&owned[0], in.crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, err
	}
	// OLM fills in both of these, so they are not written.
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	return object, nil
}

// install returns how OLM runs the manager.
func (r *release) install(in *input) operatorsv1alpha1.NamedInstallStrategy {
	spec := in.deployment.Spec.DeepCopy()
	spec.Template.Spec.Containers[0].Image = r.image
	account := spec.Template.Spec.ServiceAccountName
	var cluster []rbacv1.PolicyRule
	for _, role := range slices.Sorted(maps.Keys(in.rules)) {
		if role != namespacedRole {
			cluster = append(cluster, in.rules[role]...)
		}
	}
	return operatorsv1alpha1.NamedInstallStrategy{
		StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
		StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
			DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
				Name: in.deployment.Name, Label: in.deployment.Labels, Spec: *spec,
			}},
			Permissions:        []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: in.rules[namespacedRole]}},
			ClusterPermissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: cluster}},
		},
	}
}

// examples returns the samples, which consoles show to users who create a set.
func examples(samples []*unstructured.Unstructured) (string, error) {
	var list []any
	for _, sample := range samples {
		list = append(list, sample.Object)
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return string(text), err
}
