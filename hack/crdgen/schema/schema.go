// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package schema finds fields in the OpenAPI schema of a custom resource. A path is written like a field in an error
// message, with [] for the items of a list and {} for the values of a map: spec.selector.matchExpressions[].values[].
package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Of returns the schema of the version that a custom resource is stored in.
func Of(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.JSONSchemaProps, error) {
	v := Stored(crd)
	if v == nil || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("%s has no schema of a stored version", crd.Name)
	}
	return v.Schema.OpenAPIV3Schema, nil
}

// Stored returns the version that a custom resource is stored in; nil if there is none.
func Stored(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Storage {
			return v
		}
	}
	return nil
}

// Change lets a function change the schema at a path. Schemas hold one another by value, so a changed schema must be written
// back into all that contain it; Change does that.
func Change(root *apiextensionsv1.JSONSchemaProps, path string, change func(*apiextensionsv1.JSONSchemaProps)) error {
	if err := descend(root, steps(path), change); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func descend(s *apiextensionsv1.JSONSchemaProps, path []string, change func(*apiextensionsv1.JSONSchemaProps)) error {
	if len(path) == 0 {
		change(s)
		return nil
	}
	switch step := path[0]; step {
	case "[]":
		if s.Items == nil || s.Items.Schema == nil {
			return fmt.Errorf("no items at %q", step)
		}
		return descend(s.Items.Schema, path[1:], change)
	case "{}":
		if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
			return fmt.Errorf("no values at %q", step)
		}
		return descend(s.AdditionalProperties.Schema, path[1:], change)
	default:
		property, ok := s.Properties[step]
		if !ok {
			return fmt.Errorf("no field %q", step)
		}
		err := descend(&property, path[1:], change)
		s.Properties[step] = property
		return err
	}
}

// Walk calls visit for a schema and for everything below it, in a fixed order, parents first. Changes by visit are kept.
func Walk(root *apiextensionsv1.JSONSchemaProps, visit func(path string, s *apiextensionsv1.JSONSchemaProps)) {
	walk("", root, visit)
}

func walk(path string, s *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		walk(strings.TrimPrefix(path+"."+name, "."), &property, visit)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(path+"{}", s.AdditionalProperties.Schema, visit)
	}
}

// Depth returns the number of fields between a path and a path that contains it; -1 if the second does not contain the
// first.
func Depth(path, surrounding string) int {
	outer, inner := steps(surrounding), steps(path)
	if len(inner) < len(outer) || !slices.Equal(inner[:len(outer)], outer) {
		return -1
	}
	depth := 0
	for _, step := range inner[len(outer):] {
		if step != "[]" && step != "{}" {
			depth++
		}
	}
	return depth
}

// steps splits a.b[].c{} into a, b, [], c, {}.
func steps(path string) []string {
	path = strings.ReplaceAll(path, "[]", ".[]")
	path = strings.ReplaceAll(path, "{}", ".{}")
	return slices.DeleteFunc(strings.Split(path, "."), func(step string) bool { return step == "" })
}

// AddRule adds a validation rule to a schema, unless it exists already.
func AddRule(s *apiextensionsv1.JSONSchemaProps, rule, message string) {
	if slices.ContainsFunc(s.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule }) {
		return
	}
	s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: rule, Message: message})
}
