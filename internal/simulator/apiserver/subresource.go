// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subresource is the client of one subresource.
type subresource struct {
	*Client

	name string
}

var _ client.SubResourceClient = (*subresource)(nil)

// Update implements client.SubResourceWriter.
func (s *subresource) Update(_ context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	var options client.SubResourceUpdateOptions
	options.ApplyOptions(opts)
	if options.SubResourceBody != nil {
		Unmodeled("an update of %s by another body", s.name)
	}
	return s.update(obj, Write{Subresource: s.name, DryRun: len(options.DryRun) > 0})
}

// Patch implements client.SubResourceWriter.
func (s *subresource) Patch(_ context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	var options client.SubResourcePatchOptions
	options.ApplyOptions(opts)
	if options.SubResourceBody != nil {
		Unmodeled("a patch of %s by another body", s.name)
	}
	return s.patch(obj, patch, Write{Subresource: s.name, DryRun: len(options.DryRun) > 0})
}

// Create implements client.SubResourceWriter. It is not modeled.
func (s *subresource) Create(_ context.Context, obj, _ client.Object, _ ...client.SubResourceCreateOption) error {
	return s.do(Write{Verb: Create, Key: KeyOf(obj), Subresource: s.name}, obj, refuse)
}

// Apply implements client.SubResourceWriter. It is not modeled.
func (s *subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return s.do(Write{Verb: "apply", Subresource: s.name}, nil, refuse)
}

// Get implements client.SubResourceReader. It is not modeled.
func (s *subresource) Get(_ context.Context, obj, _ client.Object, _ ...client.SubResourceGetOption) error {
	Unmodeled("a read of %s of %s", s.name, KeyOf(obj))
	return nil
}
