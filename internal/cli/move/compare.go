// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/adoption"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
)

// freeIdentity is one that no pod of the workload has: what ordinals count never gets there.
func freeIdentity(set *v1alpha1.RollSet) string {
	if set.Spec.PodIdentity != v1alpha1.OrdinalIdentity {
		return "zzzzz"
	}
	return strconv.Itoa(1 << 30)
}

// compare asks the API server what a pod of a set would be, and returns which pods are something else, each with the first
// field that differs. The judgment is the controller's own.
func compare(ctx context.Context, c client.Client, set *v1alpha1.RollSet, pods []*corev1.Pod) ([]string, error) {
	update := snapshot.Revision{Name: set.Name + "-0000000000", Template: &set.Spec.Template}
	reference := podcontrol.Build(set, update, freeIdentity(set))
	reference.Namespace, reference.OwnerReferences = set.Namespace, nil
	if err := c.Create(ctx, reference, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("ask the API server for a pod of the RollSet, without creating it: %w", err)
	}
	o := &snapshot.Set{Name: set.Name, UID: set.UID, Spec: &set.Spec, Current: update, Update: update}
	var different []string
	for _, pod := range pods {
		r := &snapshot.Replica{ID: o.IDOf(pod.Name), Pod: pod}
		if !adoption.Same(o, r, reference) {
			different = append(different, pod.Name+": "+why(pod, reference))
		}
	}
	return different, nil
}

// why returns the first field in which two pods differ that were not made from one template.
func why(pod, reference *corev1.Pod) string {
	for _, key := range slices.Sorted(maps.Keys(reference.Annotations)) {
		if pod.Annotations[key] != reference.Annotations[key] {
			return "metadata.annotations." + key
		}
	}
	a, errA := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
	b, errB := runtime.DefaultUnstructuredConverter.ToUnstructured(&reference.Spec)
	if errA != nil || errB != nil {
		return "spec"
	}
	for _, field := range []string{"nodeName", "hostname", "volumes", "readinessGates"} { // they differ in any case, or may
		if field == "volumes" && reflect.DeepEqual(len(pod.Spec.Volumes), len(reference.Spec.Volumes)) || field != "volumes" {
			delete(a, field)
			delete(b, field)
		}
	}
	if path := firstDifference(a, b, "spec"); path != "" {
		return path
	}
	return "labels or volumes"
}

// firstDifference returns the path at which two decoded objects differ first; empty if they do not.
func firstDifference(a, b any, path string) string {
	if a, ok := a.(map[string]any); ok {
		if b, ok := b.(map[string]any); ok {
			return firstDifferentField(a, b, path)
		}
	}
	if a, ok := a.([]any); ok {
		if b, ok := b.([]any); ok && len(a) == len(b) {
			return firstDifferentItem(a, b, path)
		}
	}
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return path
}

func firstDifferentField(a, b map[string]any, path string) string {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	delete(keys, "volumeMounts") // the token's has a random name
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if found := firstDifference(a[key], b[key], path+"."+key); found != "" {
			return found
		}
	}
	return ""
}

func firstDifferentItem(a, b []any, path string) string {
	for i := range a {
		if found := firstDifference(a[i], b[i], fmt.Sprintf("%s[%d]", path, i)); found != "" {
			return found
		}
	}
	return ""
}
