// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"fmt"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/revision"
)

// BenchmarkResolve measures the cost for a reconcile with nothing to do and a full history.
func BenchmarkResolve(b *testing.B) {
	w := newWorld()
	for v := range 12 {
		w.image(fmt.Sprintf("app:v%d", v))
		w.settle(b)
	}
	b.Run("decoding", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.resolve(b)
		}
	})
	type content struct {
		template *corev1.PodTemplateSpec
		claims   []string
		err      error
	}
	remembered := make(map[string]content)
	for name, object := range w.revisions {
		var c content
		c.template, c.claims, c.err = revision.Decode(object)
		remembered[name] = c
	}
	in := w.input()
	in.Decode = func(object *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []string, error) {
		c := remembered[object.Name]
		return c.template, c.claims, c.err
	}
	b.Run("remembering", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := revision.Resolve(in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestObservedTemplatesAreNotEncoded compares templates of different sizes: recorded contents must not cost anything.
func TestObservedTemplatesAreNotEncoded(t *testing.T) { // not parallel: allocations are counted for the whole process
	allocations := map[int]float64{}
	for _, size := range []int{1, 1_000} {
		w := newWorld()
		w.set.Spec.Template.Annotations = map[string]string{}
		for i := range size {
			w.set.Spec.Template.Annotations[strconv.Itoa(i)] = "text"
		}
		w.settle(t)
		in := w.input()
		template, claims, err := revision.Decode(in.Revisions[0])
		in.Decode = func(*appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []string, error) {
			return template, claims, err
		}
		allocations[size] = testing.AllocsPerRun(10, func() {
			if _, err := revision.Resolve(in); err != nil {
				t.Fatal(err)
			}
		})
	}
	if allocations[1_000] != allocations[1] {
		t.Errorf("%.0f allocations, %.0f for a small template", allocations[1_000], allocations[1])
	}
}
