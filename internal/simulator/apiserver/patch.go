// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	data, err := json.Marshal(addressed(w, old))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", w.Key, err)
	}
	patched, err := applyPatch(w, kind, data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj := New(w.Key.Kind)
	if err := json.Unmarshal(patched, obj); err != nil {
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

func applyPatch(w Write, kind types.PatchType, data []byte) ([]byte, error) {
	switch {
	case kind == types.MergePatchType:
		return jsonpatch.MergePatch(data, w.Body)
	case kind == types.StrategicMergePatchType && w.Key.Kind != RollSets:
		return strategicpatch.StrategicMergePatch(data, w.Body, New(w.Key.Kind))
	case kind == types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(w.Body)
		if err != nil {
			return nil, fmt.Errorf("decode patch: %w", err)
		}
		return patch.Apply(data)
	default:
		Unmodeled("patch of type %s: %s", kind, w)
		return nil, nil
	}
}
