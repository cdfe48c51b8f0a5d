// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// input is the output of kustomize, by its place in the bundle.
type input struct {
	csv        *operatorsv1alpha1.ClusterServiceVersion
	crd        *apiextensionsv1.CustomResourceDefinition
	crdObject  map[string]any
	deployment *appsv1.Deployment
	// rules holds the rules of the manager's ClusterRoles, by the role's name.
	rules map[string][]rbacv1.PolicyRule
	// samples are sets.
	samples   []*unstructured.Unstructured
	scorecard map[string]any
	// others are copied into the bundle unchanged.
	others []*unstructured.Unstructured
}

func read(manifests io.Reader) (*input, error) {
	in := &input{rules: map[string][]rbacv1.PolicyRule{}}
	roles := map[string]*unstructured.Unstructured{}
	for documents := yaml.NewYAMLOrJSONDecoder(manifests, 4096); ; {
		u := &unstructured.Unstructured{}
		if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if u.GetKind() == "ClusterRole" {
			roles[u.GetName()] = u
			continue
		}
		if err := in.sort(u); err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	if in.csv == nil || in.crd == nil || in.deployment == nil {
		return nil, errors.New("want a ClusterServiceVersion, a CustomResourceDefinition and a Deployment")
	}
	return in, in.sortRoles(roles)
}

// sort puts an object where it belongs. OLM creates namespaces, service accounts and bindings itself.
func (in *input) sort(u *unstructured.Unstructured) error {
	switch u.GetKind() {
	case "ClusterServiceVersion":
		return decode(u, &in.csv)
	case "CustomResourceDefinition":
		in.crdObject = u.Object
		return decode(u, &in.crd)
	case "Deployment":
		return decode(u, &in.deployment)
	case "ClusterRoleBinding":
		var b *rbacv1.ClusterRoleBinding
		if err := decode(u, &b); err != nil {
			return err
		}
		in.rules[b.RoleRef.Name] = nil
	case "Configuration":
		in.scorecard = u.Object
	case "RollSet":
		in.samples = append(in.samples, u)
	case "Service", "PodDisruptionBudget":
		if u.GetNamespace() != "" { // those without are part of samples
			u.SetNamespace("")
			in.others = append(in.others, u)
		}
	case "Namespace", "ServiceAccount":
	default:
		return errors.New("a bundle has no place for it")
	}
	return nil
}

// sortRoles separates the manager's roles from those that an administrator may bind. Those that the manager may have beside its
// own become one, so that one command gives them.
func (in *input) sortRoles(roles map[string]*unstructured.Unstructured) error {
	var optional *unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		u := roles[name]
		_, bound := in.rules[name]
		switch {
		case bound:
			var role *rbacv1.ClusterRole
			if err := decode(u, &role); err != nil {
				return fmt.Errorf("ClusterRole %s: %w", name, err)
			}
			in.rules[name] = role.Rules
		case name != "rollset-disruption-budget-role" && name != "rollset-node-reader-role":
			in.others = append(in.others, u)
		case optional == nil:
			optional = u
			optional.SetName("rollset-disruption-role")
			in.others = append(in.others, optional)
		default:
			all, _, err := unstructured.NestedSlice(optional.Object, "rules")
			if err != nil {
				return fmt.Errorf("ClusterRole %s: %w", optional.GetName(), err)
			}
			more, _, err := unstructured.NestedSlice(u.Object, "rules")
			if err != nil {
				return fmt.Errorf("ClusterRole %s: %w", name, err)
			}
			optional.Object["rules"] = append(all, more...)
		}
	}
	return nil
}

// decode decodes an object into a new value, and rejects unknown fields.
func decode[T any](u *unstructured.Unstructured, into **T) error {
	if *into != nil {
		return errors.New("there are two")
	}
	*into = new(T)
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, *into, true)
}
