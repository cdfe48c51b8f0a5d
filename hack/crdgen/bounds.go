// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"rollset.dev/rollset/hack/crdgen/schema"
)

// These rules are about labels. Without the bounds below, the API server would reject them for their estimated cost.
const (
	validLabels = "self.all(k, !format.qualifiedName().validate(k).hasValue() && !format.labelValue().validate(self[k]).hasValue())"
	ownLabels   = "!self.exists(k, k in ['controller-revision-hash', 'apps.kubernetes.io/pod-index', 'statefulset.kubernetes.io/pod-name'])"
	ownKeys     = "!self.exists(k, k.matches('^([^/]*[.])?rollset[.]dev/'))"

	ownKey = "!(self in ['controller-revision-hash', 'apps.kubernetes.io/pod-index', 'statefulset.kubernetes.io/pod-name']) && !self.matches('^([^/]*[.])?rollset[.]dev/')"

	validLabelsMessage = `must be valid labels: keys such as "zone" or "example.com/zone", values of at most 63 letters, digits, '-', '_' and '.'`
	ownLabelsMessage   = "must not contain controller-revision-hash, apps.kubernetes.io/pod-index or statefulset.kubernetes.io/pod-name: the controller sets them"
	ownKeyMessage      = "must not use labels that the controller sets on pods (controller-revision-hash, apps.kubernetes.io/pod-index, statefulset.kubernetes.io/pod-name, anything under rollset.dev)"
	ownKeysMessage     = "must not contain keys under rollset.dev: they belong to the controller"
)

// bound is a limit that a marker cannot express, because it concerns a field of a Kubernetes type.
type bound struct {
	path   string
	change func(*apiextensionsv1.JSONSchemaProps)
}

func bounds() []bound {
	return []bound{
		{"metadata", nameName},
		{"spec.selector.matchLabels", boundLabels},
		{"spec.selector.matchExpressions", boundExpressions(32, 64)},
		{"spec.selector.matchExpressions[].key", rule(ownKey, ownKeyMessage)},
		{"spec.updateStrategy.rollingUpdate.priorityStrategy.weightPriority[].matchSelector.matchLabels", boundLabels},
		{"spec.updateStrategy.rollingUpdate.priorityStrategy.weightPriority[].matchSelector.matchExpressions", boundExpressions(16, 16)},
		{"spec.lifecycle.preNormal.labelsHandler{}", boundLabelValue},
		{"spec.lifecycle.inPlaceUpdate.labelsHandler{}", boundLabelValue},
		{"spec.lifecycle.preDelete.labelsHandler{}", boundLabelValue},
		{"spec.template.metadata", boundMetadata},
		{"spec.template.spec", dropDebugging},
		{"spec.template.spec.restartPolicy", rule("self == 'Always'", "must be Always: a pod of a set is meant to run until it is replaced")},
		{"spec.template.spec.activeDeadlineSeconds", rule("false", "must not be set: a pod of a set is meant to run until it is replaced")},
		{"spec.volumeClaimTemplates[]", boundClaimTemplate},
		{"spec.volumeClaimTemplates[].metadata", boundMetadata},
		{"spec.volumeClaimTemplates[].metadata.name", boundClaimName},
		{"status.conditions[].lastTransitionTime", func(s *apiextensionsv1.JSONSchemaProps) { s.Pattern = timestamp }},
		{"status.rollout.since", boundTime},
		{"status.rollout.until", boundTime},
	}
}

// dropDebugging drops ephemeral containers. The API server refuses them in new pods: they are added to a pod that runs.
func dropDebugging(s *apiextensionsv1.JSONSchemaProps) { delete(s.Properties, "ephemeralContainers") }

// nameName lets rules about the name refer to it: the fieldPath of a rule must exist in the schema. A schema may describe
// only name and generateName of metadata.
func nameName(s *apiextensionsv1.JSONSchemaProps) {
	s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string"}}
}

// boundLabels limits a map to labels, and their number to what users need.
func boundLabels(s *apiextensionsv1.JSONSchemaProps) {
	s.MaxProperties = new(int64(64))
	boundLabelValue(s.AdditionalProperties.Schema)
	schema.AddRule(s, validLabels, validLabelsMessage)
}

func boundLabelValue(s *apiextensionsv1.JSONSchemaProps) { s.MaxLength = new(int64(63)) }

// boundExpressions limits a list to valid requirements of a selector, and their number and values.
func boundExpressions(items, values int64) func(*apiextensionsv1.JSONSchemaProps) {
	return func(s *apiextensionsv1.JSONSchemaProps) {
		s.MaxItems = &items
		boundRequirement(s.Items.Schema, values)
	}
}

func boundRequirement(item *apiextensionsv1.JSONSchemaProps, maxValues int64) {
	schema.AddRule(item, "self.operator in ['In', 'NotIn'] ? self.?values.orValue([]).size() > 0 : self.?values.orValue([]).size() == 0",
		"In and NotIn need values, Exists and DoesNotExist allow none")
	key, operator, values := item.Properties["key"], item.Properties["operator"], item.Properties["values"]
	key.MaxLength = new(int64(317))
	schema.AddRule(&key, "!format.qualifiedName().validate(self).hasValue()", `must be the key of a label, such as "zone" or "example.com/zone"`)
	operator.Enum = enum("In", "NotIn", "Exists", "DoesNotExist")
	values.MaxItems = &maxValues
	boundLabelValue(values.Items.Schema)
	schema.AddRule(&values, "self.all(v, !format.labelValue().validate(v).hasValue())",
		"must be values of labels: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit")
	item.Properties["key"], item.Properties["operator"], item.Properties["values"] = key, operator, values
}

// boundMetadata rejects metadata of a template that the controller writes itself.
func boundMetadata(s *apiextensionsv1.JSONSchemaProps) {
	labels, annotations, finalizers := s.Properties["labels"], s.Properties["annotations"], s.Properties["finalizers"]
	boundLabels(&labels)
	schema.AddRule(&labels, ownLabels, ownLabelsMessage)
	schema.AddRule(&labels, ownKeys, ownKeysMessage)
	labels.Description = "labels of the objects made from this template."
	annotations.MaxProperties = new(int64(256))
	schema.AddRule(&annotations, ownKeys, ownKeysMessage)
	annotations.Description = "annotations of the objects made from this template."
	finalizers.MaxItems = new(int64(64))
	finalizers.XListType = new("set")
	finalizers.Items.Schema.MaxLength = new(int64(317))
	finalizers.Description = "finalizers of the objects made from this template."
	s.Properties["creationTimestamp"] = ignoredTimestamp()
	s.Properties["labels"], s.Properties["annotations"], s.Properties["finalizers"] = labels, annotations, finalizers
}

// timestamp is the API's format of a time. The format date-time alone admits lower case, which Go cannot decode.
const timestamp = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`

// boundTime limits a string to the API's format of a time.
func boundTime(s *apiextensionsv1.JSONSchemaProps) {
	s.Pattern, s.MaxLength = timestamp, new(int64(len("2026-01-02T15:04:05Z")))
}

// ignoredTimestamp is the rule for a field that is null in templates that were read from a cluster.
func ignoredTimestamp() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Type: "string", Format: "date-time", Pattern: timestamp, Nullable: true,
		Description: "creationTimestamp is ignored. Manifests that were read from a cluster may have it.",
	}
}

// boundClaimTemplate requires a name. It allows only the status that a manifest read from a cluster has, because claims have
// a status and their templates do not.
func boundClaimTemplate(s *apiextensionsv1.JSONSchemaProps) {
	require(s, "metadata")
	metadata, status := s.Properties["metadata"], s.Properties["status"]
	require(&metadata, "name")
	status.Properties = map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string", MaxLength: new(int64(63))}}
	status.Description = "status is ignored. Manifests that were read from a cluster may have it."
	s.Properties["metadata"], s.Properties["status"] = metadata, status
}

// boundClaimName limits the name to where it is used: as the name of a volume, and at the start of the name of a claim.
func boundClaimName(s *apiextensionsv1.JSONSchemaProps) {
	s.MaxLength = new(int64(63))
	s.Description = "name of the template, and of the pods' volume."
	schema.AddRule(s, "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
		"must be a DNS label, since it names a volume: lower case letters, digits and '-', beginning and ending with a letter or digit")
}

// rule adds a validation rule.
func rule(expression, message string) func(*apiextensionsv1.JSONSchemaProps) {
	return func(s *apiextensionsv1.JSONSchemaProps) { schema.AddRule(s, expression, message) }
}

func require(s *apiextensionsv1.JSONSchemaProps, field string) {
	if !slices.Contains(s.Required, field) {
		s.Required = append(s.Required, field)
	}
}

func enum(values ...string) []apiextensionsv1.JSON {
	var out []apiextensionsv1.JSON
	for _, v := range values {
		out = append(out, apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", v)})
	}
	return out
}

// quantity is the pattern that both the API server and the Go type of a quantity accept. The type's own pattern admits
// fractional and enormous exponents. Go cannot decode the former, and takes extremely long for the latter.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`

// boundStrings limits an int-or-string to values that can be decoded. An object that cannot be decoded fails the
// controller's watch, and so affects all sets.
func boundStrings(s *apiextensionsv1.JSONSchemaProps) {
	switch {
	case !s.XIntOrString:
	case s.Pattern != "":
		boundQuantity(s)
	default:
		s.Minimum, s.Maximum = new(float64(math.MinInt32)), new(float64(math.MaxInt32))
		s.MaxLength = new(int64(63)) // as a string it is a percentage, a range of ordinals, or the name of a port
	}
}

// boundQuantity lets a quantity be a string or any number, as in built-in kinds: cpu: 0.5. A schema can say integer or
// string, but not number or string. So the type is left open, and bounds exclude every object, list and boolean. Numbers end
// where the API server would write them with an exponent that Go is slow to decode.
func boundQuantity(s *apiextensionsv1.JSONSchemaProps) {
	s.XIntOrString = false
	s.XPreserveUnknownFields = new(true)
	s.Pattern, s.MaxLength = quantity, new(int64(64))
	s.Minimum, s.Maximum = new(0.0), new(1e18)
	s.AnyOf = []apiextensionsv1.JSONSchemaProps{{Maximum: new(0.0)}, {Minimum: new(1e-9)}}
	s.MinProperties, s.MaxProperties = new(int64(1)), new(int64(0))
	s.MinItems, s.MaxItems = new(int64(1)), new(int64(0))
	s.Not = &apiextensionsv1.JSONSchemaProps{Enum: []apiextensionsv1.JSON{{Raw: []byte("true")}, {Raw: []byte("false")}}}
}

// boundIntegers expresses the format of an integer in numbers. API servers of Kubernetes 1.34 do not enforce the format, and
// the admitted values could not be decoded. Later ones do, but their error does not name the field.
func boundIntegers(s *apiextensionsv1.JSONSchemaProps) {
	if s.Format != "int32" {
		return
	}
	if s.Minimum == nil {
		s.Minimum = new(float64(math.MinInt32))
	}
	if s.Maximum == nil {
		s.Maximum = new(float64(math.MaxInt32))
	}
}
