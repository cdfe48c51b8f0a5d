// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate keeps out what the API describes but the controller does not do yet. A field that is accepted and ignored
// is worse than one that is refused: the refusal says so before anything runs.
//
// To lift a restriction, delete its entry from Unsupported and generate the CRD again.
package gate

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"rollset.dev/rollset/hack/crdgen/schema"
)

// prefix begins the message of every rule of the gate, and of no other rule.
const prefix = "not supported yet: "

// Restriction is one thing that the gate keeps out.
type Restriction struct {
	// Path is the field whose value is judged, Rule the CEL expression that must hold of it.
	Path, Rule string
	// What names that which is not supported.
	What string
	// Example is a value of the field, in JSON, that the gate keeps out.
	Example string
}

// Message is what a user is told.
func (r Restriction) Message() string { return prefix + r.What }

// Unsupported lists the restrictions.
func Unsupported() []Restriction {
	return []Restriction{}
}

// Close puts the restrictions into a schema, in place of those it has.
func Close(root *apiextensionsv1.JSONSchemaProps) error {
	Open(root)
	for _, r := range Unsupported() {
		add := func(s *apiextensionsv1.JSONSchemaProps) { schema.AddRule(s, r.Rule, r.Message()) }
		if err := schema.Change(root, r.Path, add); err != nil {
			return err
		}
	}
	return nil
}

// Open takes all restrictions out of a schema.
func Open(root *apiextensionsv1.JSONSchemaProps) {
	schema.Walk(root, func(_ string, s *apiextensionsv1.JSONSchemaProps) {
		s.XValidations = slices.DeleteFunc(s.XValidations, Restricts)
	})
}

// Restricts says whether a rule belongs to the gate.
func Restricts(rule apiextensionsv1.ValidationRule) bool {
	return strings.HasPrefix(rule.Message, prefix)
}
