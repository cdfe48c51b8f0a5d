// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/cli/session"
)

// target is a kind of object that acts on a workload, of any kind with the scale subresource.
type target struct {
	kind  schema.GroupVersionKind
	field string // of the spec, with the reference to the workload
}

// targets are the kinds whose references follow a workload to its new kind.
func targets() []target {
	return []target{
		{session.HorizontalPodAutoscaler(), "scaleTargetRef"},
		{session.ScaledObject(), "scaleTargetRef"},
		{session.VerticalPodAutoscaler(), "targetRef"},
	}
}

// retarget points an autoscaler of a workload to what the workload becomes. It reports whether it was an autoscaler of that
// workload.
func retarget(o, from, to *unstructured.Unstructured) bool {
	for _, t := range targets() {
		ref, ok, _ := unstructured.NestedMap(o.Object, "spec", t.field)
		if ok && ref["kind"] == nil && t.kind == session.ScaledObject() { // its default
			ref["kind"] = deployment
		}
		if ok && o.GroupVersionKind().GroupKind() == t.kind.GroupKind() && refers(ref, o, from) {
			ref["apiVersion"], ref["kind"] = to.GetAPIVersion(), to.GetKind()
			return unstructured.SetNestedMap(o.Object, ref, "spec", t.field) == nil
		}
	}
	return false
}

// refers reports whether a part of an object is a reference to another object. One without API version may mean any.
func refers(ref map[string]any, in, to *unstructured.Unstructured) bool {
	if ref["kind"] != to.GetKind() || ref["name"] != to.GetName() || in.GetNamespace() != to.GetNamespace() {
		return false
	}
	text, _ := ref["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(text)
	return text == "" || err == nil && gv.Group == to.GroupVersionKind().Group
}

// references returns the fields of an object that refer to another one.
func references(o, to *unstructured.Unstructured) []string {
	var found []string
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			if refers(v, o, to) {
				found = append(found, path)
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				visit(path+"."+key, v[key])
			}
		case []any:
			for i := range v {
				visit(fmt.Sprintf("%s[%d]", path, i), v[i])
			}
		}
	}
	visit("spec", o.Object["spec"])
	return found
}

// autoscalers lists the objects that act on workloads of the namespace. Those that another object controls follow that object.
func (m *mover) autoscalers(ctx context.Context) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, t := range targets() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(t.kind.GroupVersion().WithKind(t.kind.Kind + "List"))
		err := m.client.List(ctx, list, client.InNamespace(m.namespace))
		switch {
		case apierrors.IsNotFound(err): // the cluster has no such kind
		case apierrors.IsForbidden(err) && t.kind != session.HorizontalPodAutoscaler():
			fmt.Fprintf(m.session.ErrOut, "warning: %v: if one of them targets the workload, change its spec.%s yourself\n", err, t.field)
		case err != nil:
			return nil, fmt.Errorf("list %ss: %w", t.kind.Kind, err)
		}
		all = append(all, list.Items...)
	}
	return slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return metav1.GetControllerOf(&o) != nil }), nil
}

// retargetAll points the autoscalers of one workload to another.
func (m *mover) retargetAll(ctx context.Context, from, to *unstructured.Unstructured) error {
	all, err := m.autoscalers(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		before := &all[i]
		after := before.DeepCopy()
		if !retarget(after, from, to) {
			continue
		}
		if err := m.client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("point %s to %s: %w", describe(after), describe(to), err)
		}
	}
	return nil
}
