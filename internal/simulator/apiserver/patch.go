// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// Patch changes an object, or its part that a subresource stands for. As on the real server, a resourceVersion in the
// patch is a precondition (409), and so is a uid (422).
func (s *Store) Patch(w Write, kind types.PatchType) (client.Object, error) {
	w.Verb = Patch
	old, err := s.find(w.Key)
	if err != nil {
		return nil, err
	}
	obj := New(w.Key.Kind)
	if kind == types.MergePatchType && w.Key.Kind != Revisions { // whose data is raw, and keeps the order of its keys
		err = mergePatch(w, addressed(w, old), obj)
	} else {
		err = applyPatch(w, kind, old, obj)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.replace(w, old, obj)
}

// addressed returns an object without the parts that a write cannot change. It saves encoding and decoding the spec for
// every write of a status.
func addressed(w Write, obj client.Object) client.Object {
	if w.Subresource != "status" {
		return obj
	}
	switch o := obj.(type) {
	case *v1beta1.RollSet:
		return &v1beta1.RollSet{ObjectMeta: o.ObjectMeta, Status: o.Status}
	case *corev1.Pod:
		return &corev1.Pod{ObjectMeta: o.ObjectMeta, Status: o.Status}
	default:
		return obj
	}
}

// applyPatch sets an object to a patched copy of another one.
func applyPatch(w Write, kind types.PatchType, from, to client.Object) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode %s: %w", w.Key, err)
	}
	switch {
	case kind == types.MergePatchType:
		data, err = jsonpatch.MergePatch(data, w.Body)
	case kind == types.StrategicMergePatchType && w.Key.Kind != RollSets:
		data, err = strategicpatch.StrategicMergePatch(data, w.Body, to)
	case kind == types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(w.Body); err == nil {
			data, err = patch.Apply(data)
		}
	default:
		Unmodeled("patch of type %s: %s", kind, w)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// mergePatch does the same for a merge patch, and encodes nothing: most writes are patches of a status.
func mergePatch(w Write, from, to client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("convert %s: %w", w.Key, err)
	}
	var patch map[string]any
	if err := json.Unmarshal(w.Body, &patch); err != nil {
		return err
	}
	merge(fields, patch)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, to)
}

// merge changes fields as RFC 7386 says.
func merge(fields, patch map[string]any) {
	for key, value := range patch {
		changes, nested := value.(map[string]any)
		switch {
		case value == nil:
			delete(fields, key)
		case nested:
			inner, ok := fields[key].(map[string]any)
			if !ok {
				inner = make(map[string]any)
			}
			merge(inner, changes)
			fields[key] = inner
		default:
			fields[key] = value
		}
	}
}
