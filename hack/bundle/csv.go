// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
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
	csv.Name = name(r.version)
	csv.Spec.Version = version.OperatorVersion{Version: r.version}
	csv.Annotations["olm.skipRange"] = r.skips() // for catalogs that are made of bundles; in a file-based one the entry counts
	if r.replaces != nil {
		csv.Spec.Replaces = name(*r.replaces)
	}
	csv.Annotations["createdAt"] = r.created.UTC().Format(time.RFC3339)
	csv.Annotations["containerImage"] = r.image
	csv.Spec.RelatedImages = []operatorsv1alpha1.RelatedImage{{Name: "manager", Image: r.image}}
	csv.Spec.Icon = []operatorsv1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}}
	examples, err := examples(in.samples)
	if err != nil {
		return nil, err
	}
	csv.Annotations["alm-examples"] = examples
	if csv.Spec.InstallStrategy, err = r.install(in); err != nil {
		return nil, err
	}
	owned := csv.Spec.CustomResourceDefinitions.Owned
	if len(owned) != 1 || owned[0].Name != in.crd.Name || owned[0].Version != in.crd.Spec.Versions[0].Name {
		return nil, fmt.Errorf("it owns %v, and there is %s %s", owned, in.crd.Name, in.crd.Spec.Versions[0].Name)
	}
	describe(&owned[0], in.crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	for _, older := range in.crd.Spec.Versions[1:] {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, operatorsv1alpha1.CRDDescription{
			Name: owned[0].Name, Kind: owned[0].Kind, Version: older.Name, DisplayName: owned[0].DisplayName + " (" + older.Name + ", deprecated)",
			Description: owned[0].Description,
		})
	}
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
func (r *release) install(in *input) (none operatorsv1alpha1.NamedInstallStrategy, err error) {
	spec := in.deployment.Spec.DeepCopy()
	container := &spec.Template.Spec.Containers[0]
	container.Image = r.image
	if err := useVariables(container); err != nil {
		return none, err
	}
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
	}, nil
}

// useVariables sets the flags of a container by variables. OLM puts arguments back that a user changes, and lets a Subscription
// replace variables.
func useVariables(container *corev1.Container) error {
	for _, arg := range container.Args {
		flag, found := strings.CutPrefix(arg, "--")
		if !found {
			return fmt.Errorf("the argument %q of the manager is no flag", arg)
		}
		flag, value, given := strings.Cut(flag, "=")
		if !given {
			value = "true"
		}
		container.Env = append(container.Env, corev1.EnvVar{
			Name: "ROLLSET_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), Value: value,
		})
	}
	container.Args = nil
	return nil
}

// examples returns the samples, which consoles show to users who create a set. They begin with the first, so it is the shortest.
func examples(samples []*unstructured.Unstructured) (string, error) {
	texts := make([]json.RawMessage, len(samples))
	for i, sample := range samples {
		var err error
		if texts[i], err = json.Marshal(sample.Object); err != nil {
			return "", err
		}
	}
	slices.SortStableFunc(texts, func(a, b json.RawMessage) int { return cmp.Compare(len(a), len(b)) })
	text, err := json.MarshalIndent(texts, "", "  ")
	return string(text), err
}
