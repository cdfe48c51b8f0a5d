// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// tree returns the schema of {list: [{map: {…: string}}], leaf: integer}.
func tree() *apiextensionsv1.JSONSchemaProps {
	values := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
		Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"},
	}}
	items := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"map": values}}
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}},
		"leaf": {Type: "integer"},
	}}
}

func TestWalkVisitsInOrderAndKeepsChanges(t *testing.T) {
	root := tree()
	var visited []string
	Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		visited = append(visited, path+": "+s.Type)
		s.Description = path
	})
	want := []string{": object", "leaf: integer", "list: array", "list[]: object", "list[].map: object", "list[].map{}: string"}
	if diff := cmp.Diff(want, visited); diff != "" {
		t.Errorf("visited (-want +got):\n%s", diff)
	}
	Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if s.Description != path {
			t.Errorf("the change to %s is lost", path)
		}
	})
}

func TestChange(t *testing.T) {
	root := tree()
	if err := Change(root, "list[].map{}", func(s *apiextensionsv1.JSONSchemaProps) { AddRule(s, "true", "one"); AddRule(s, "true", "two") }); err != nil {
		t.Fatal(err)
	}
	var rules []apiextensionsv1.ValidationRule
	Walk(root, func(_ string, s *apiextensionsv1.JSONSchemaProps) { rules = append(rules, s.XValidations...) })
	if diff := cmp.Diff([]apiextensionsv1.ValidationRule{{Rule: "true", Message: "one"}}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"none": `no field "none"`, "leaf[]": "no items", "leaf{}": "no values", "list[].none": `list[].none: no field "none"`} {
		if err := Change(root, path, func(*apiextensionsv1.JSONSchemaProps) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Change(%q) = %v, want %s", path, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, tt := range []struct {
		path, surrounding string
		want              int
	}{
		{"spec", "spec", 0},
		{"spec.a", "spec", 1},
		{"spec.a[].b{}", "spec", 2},
		{"spec.templates", "spec.template", -1},
		{"status", "spec", -1},
		{"spec", "spec.a", -1},
	} {
		if got := Depth(tt.path, tt.surrounding); got != tt.want {
			t.Errorf("Depth(%q, %q) = %d, want %d", tt.path, tt.surrounding, got, tt.want)
		}
	}
}
