// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"rollset.dev/rollset/hack/crdgen/schema"
)

// nullableDepth is the depth down to which fields of templates may be null. Charts leave fields of the pod and of its containers
// empty, seldom those below. Each makes the CRD larger, and its size is limited.
const nullableDepth = 4

// allowNulls lets the optional fields of an embedded template be null, as in a Deployment, where null means absent. Charts
// write "annotations:" with nothing behind it. Without this, the API server refuses it in kubectl apply --server-side, Helm 4 and
// Flux. A field with a default is not nullable, because the API server replaces its null by the default. Rules read labels and
// names, and would have to ask for null.
func allowNulls(path string, s *apiextensionsv1.JSONSchemaProps) {
	depth := max(schema.Depth(path, "spec.template"), schema.Depth(path, "spec.volumeClaimTemplates"))
	if depth < 0 || path == "spec.volumeClaimTemplates" {
		return
	}
	for name, property := range s.Properties {
		read := name == "metadata" || strings.HasSuffix(path, "metadata") && (name == "name" || name == "labels")
		if depth < nullableDepth && property.Default == nil && !read && !slices.Contains(s.Required, name) {
			property.Nullable = true
			s.Properties[name] = property
		}
	}
	if s.Nullable && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && !strings.HasSuffix(path, "abels") {
		s.AdditionalProperties.Schema.Nullable = true
	}
}
