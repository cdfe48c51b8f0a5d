// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity_test

import (
	"context"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

const namespace = "default"

// side is one of the two that are compared.
type side struct {
	client.Client

	reader reader
	bind   func(pod client.Object, node string) error
	// stale is the version that each object had before its last change.
	stale map[string]string
}

type reader interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
}

// storeReader reads what is in the store, as the real client does, not what a view shows of it.
type storeReader struct{ store *apiserver.Store }

// Get implements reader.
func (s storeReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	kind := apiserver.KeyOf(obj).Kind
	found := s.store.Get(apiserver.Key{Kind: kind, Namespace: key.Namespace, Name: key.Name})
	if found == nil {
		return apierrors.NewNotFound(corev1.Resource(string(kind)), key.Name)
	}
	return copyInto(obj, found)
}

// current reads the object of an operation; one that does not exist comes as it would be created.
func (s *side) current(ctx context.Context, op operation) (obj client.Object, exists bool) {
	obj = newObject(op.kind, op.name)
	read := emptyObject(op.kind)
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: op.name}, read); err != nil {
		return obj, false
	}
	return read, true
}

// do carries out an operation.
func (s *side) do(ctx context.Context, op operation) error {
	obj, exists := s.current(ctx, op)
	version, before := obj.GetResourceVersion(), s.read(ctx, op)
	defer func() { // the real one counts some writes that change nothing
		if !cmp.Equal(before, s.read(ctx, op)) {
			s.stale[op.kind+op.name] = version
		}
	}()
	switch op.verb {
	case "create":
		return s.create(ctx, op)
	case "bind":
		return s.bind(obj, "node-0")
	case "delete":
		return s.Delete(ctx, obj, s.deleteOptions(op, obj))
	case "patch":
		return s.patch(ctx, op, obj)
	default:
		if !exists {
			obj.SetResourceVersion("")
		}
		op.change(obj)
		s.condition(op, obj)
		if op.subresource != "" {
			return s.SubResource(op.subresource).Update(ctx, obj, op.subResourceOptions()...)
		}
		return s.Update(ctx, obj, op.updateOptions()...)
	}
}

func (s *side) create(ctx context.Context, op operation) error {
	obj := newObject(op.kind, op.name)
	op.change(obj)
	if op.precondition == "stale" {
		obj.SetResourceVersion("1")
	}
	if op.dryRun {
		return s.Create(ctx, obj, client.DryRunAll)
	}
	return s.Create(ctx, obj)
}

// condition sets what an update insists on.
func (s *side) condition(op operation, obj client.Object) {
	switch op.precondition {
	case "none":
		obj.SetResourceVersion("")
		obj.SetUID("")
	case "stale":
		if rv := s.stale[op.kind+op.name]; rv != "" {
			obj.SetResourceVersion(rv)
		}
	case "another":
		obj.SetUID(anotherUID)
	}
}

const anotherUID = types.UID("11111111-2222-3333-4444-555555555555")

func (s *side) deleteOptions(op operation, obj client.Object) *client.DeleteOptions {
	options := &client.DeleteOptions{GracePeriodSeconds: op.grace, PropagationPolicy: op.propagation}
	uid, rv := obj.GetUID(), obj.GetResourceVersion()
	switch op.precondition {
	case "current":
		options.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &rv}
	case "stale":
		if rv = s.stale[op.kind+op.name]; rv != "" {
			options.Preconditions = &metav1.Preconditions{ResourceVersion: &rv}
		}
	case "another":
		options.Preconditions = &metav1.Preconditions{UID: new(anotherUID)}
	}
	if op.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// patch sends what an update would change as a patch of one of the modeled types.
func (s *side) patch(ctx context.Context, op operation, obj client.Object) error {
	changed := emptyObject(op.kind)
	if err := copyInto(changed, obj); err != nil {
		return err
	}
	op.change(changed)
	s.condition(op, changed)
	body, err := patchBody(op, obj, changed)
	if err != nil {
		return err
	}
	target := emptyObject(op.kind)
	target.SetName(op.name)
	target.SetNamespace(namespace)
	if op.subresource != "" {
		return s.SubResource(op.subresource).Patch(ctx, target, client.RawPatch(op.patchType(), body), op.subResourcePatchOptions()...)
	}
	return s.Patch(ctx, target, client.RawPatch(op.patchType(), body), op.patchOptions()...)
}

// read returns the object of an operation without what differs from one run to the next.
func (s *side) read(ctx context.Context, op operation) client.Object {
	obj, exists := s.current(ctx, op)
	if !exists {
		return nil
	}
	normalize(obj)
	return obj
}

func bindAtServer(ctx context.Context, c client.Client, pod client.Object, node string) error {
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	return c.SubResource("binding").Create(ctx, pod, binding)
}

// bindInStore binds as the simulated scheduler does; the real one looks first, too.
func bindInStore(store *apiserver.Store, obj client.Object, node string) error {
	pod := &corev1.Pod{}
	if err := copyInto(pod, obj); err != nil {
		return err
	}
	pod.ResourceVersion, pod.UID = "", ""
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return apierrors.NewConflict(corev1.Resource("pods/binding"), pod.Name, errBound)
	}
	pod.Spec.NodeName = node
	_, err := store.Update(apiserver.Write{Actor: "scheduler", Subresource: "binding"}, pod)
	return err
}
