// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package startup checks, before a manager acts, that it has what it needs and is the only one. A manager that lacks
// something does not act at all: it exits with a message that says what to do.
package startup

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served fails if the API server does not serve a kind.
func Served(mapper meta.RESTMapper, kind schema.GroupVersionKind) error {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the API server does not know %s in version %s: install the CustomResourceDefinition first", kind.GroupKind(), kind.Version)
	case err != nil:
		return fmt.Errorf("ask the API server for %s: %w", kind.GroupKind(), err)
	default:
		return nil
	}
}
