// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// These are the elements of consoles that show and edit fields.
const (
	ui           = "urn:alm:descriptor:com.tectonic.ui:"
	conditionsUI = "urn:alm:descriptor:io.kubernetes.conditions"
)

// describe lists the fields of a kind, with the descriptions in its schema.
func describe(kind *operatorsv1alpha1.CRDDescription, schema *apiextensionsv1.JSONSchemaProps) {
	kind.Description = schema.Description
	for _, f := range fields("", schema.Properties["spec"]) {
		kind.SpecDescriptors = append(kind.SpecDescriptors, operatorsv1alpha1.SpecDescriptor{
			Path: f.path, DisplayName: title(f.path), Description: f.schema.Description, XDescriptors: elements(f),
		})
	}
	for _, f := range fields("", schema.Properties["status"]) {
		d := operatorsv1alpha1.StatusDescriptor{Path: f.path, DisplayName: title(f.path), Description: f.schema.Description}
		if f.path == "conditions" {
			d.XDescriptors = []string{conditionsUI}
		}
		kind.StatusDescriptors = append(kind.StatusDescriptors, d)
	}
}

// described is a field that consoles show.
type described struct {
	path   string
	schema apiextensionsv1.JSONSchemaProps
}

// fields returns all fields, parents before what is in them.
func fields(prefix string, of apiextensionsv1.JSONSchemaProps) []described {
	var found []described
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		f := described{path: prefix + name, schema: of.Properties[name]}
		found = append(found, f)
		if f.isGroup() {
			found = append(found, fields(f.path+".", f.schema)...)
		}
	}
	return found
}

// isGroup reports whether a field has nested fields that are described one by one. The Kubernetes documentation describes a pod
// template, and a selector has a control of its own.
func (f described) isGroup() bool {
	return f.schema.Type == "object" && len(f.schema.Properties) > 0 && f.path != "template" && f.path != "selector"
}

// elements returns the elements that edit a field of the spec.
func elements(f described) []string {
	switch {
	case f.isGroup():
		return []string{ui + "fieldGroup:" + f.path}
	case f.path == "replicas":
		return []string{ui + "podCount"}
	case f.path == "selector":
		return []string{ui + "selector:core:v1:Pod"}
	case len(f.schema.Enum) > 0:
		var choices []string
		for _, value := range f.schema.Enum {
			var choice string
			if json.Unmarshal(value.Raw, &choice) == nil {
				choices = append(choices, ui+"select:"+choice)
			}
		}
		return choices
	case f.schema.Type == "boolean":
		return []string{ui + "booleanSwitch"}
	case f.schema.Type == "integer":
		return []string{ui + "number"}
	case f.schema.Type == "string", f.schema.XIntOrString:
		return []string{ui + "text"}
	default:
		return []string{ui + "advanced"}
	}
}

// title returns the last part of a path, as words.
func title(path string) string {
	var words strings.Builder
	for i, r := range path[strings.LastIndex(path, ".")+1:] {
		switch {
		case i == 0:
			r = unicode.ToUpper(r)
		case unicode.IsUpper(r):
			words.WriteByte(' ')
		}
		words.WriteRune(r)
	}
	return words.String()
}
