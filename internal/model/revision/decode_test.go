// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/revision"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change    func(*appsv1.ControllerRevision)
		wantError string
	}{
		"as written": {change: func(*appsv1.ControllerRevision) {}},
		"white space and order do not matter": {
			change: func(r *appsv1.ControllerRevision) {
				r.Data.Raw = []byte(`{ "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}],
					"template": {"spec": {"containers": [{"resources": {}, "image": "app:v1", "name": "app", "env": null}],
					"tolerations": []}, "metadata": {"creationTimestamp": null, "labels": {"app": "web"}}}}}`)
			},
		},
		"number, labels and annotations do not matter": {
			change: func(r *appsv1.ControllerRevision) {
				r.Revision, r.Labels, r.Annotations = 77, nil, map[string]string{"a": "b"}
			},
		},
		"another image": {
			change: func(r *appsv1.ControllerRevision) {
				r.Data.Raw = bytes.ReplaceAll(r.Data.Raw, []byte("app:v1"), []byte("evil"))
			},
			wantError: "data is not what the name stands for",
		},
		"one more claim": {
			change: func(r *appsv1.ControllerRevision) {
				r.Data.Raw = bytes.ReplaceAll(r.Data.Raw, []byte(`[{"metadata":{"name":"data"}}`),
					[]byte(`[{"metadata":{"name":"data"}},{"metadata":{"name":"evil"}}`))
			},
			wantError: "data is not what the name stands for",
		},
		"another name": {
			change:    func(r *appsv1.ControllerRevision) { r.Name = "web-bbbbbbbbbb" },
			wantError: "data is not what the name stands for",
		},
		"a name without a digest": {
			change:    func(r *appsv1.ControllerRevision) { r.Name = "web" },
			wantError: "data is not what the name stands for",
		},
		"a key in other letters": {
			change: func(r *appsv1.ControllerRevision) {
				r.Data.Raw = append([]byte(`{"SPEC":{"template":{"spec":{"hostNetwork":true}}},`), r.Data.Raw[1:]...)
			},
			wantError: "data is not what the name stands for",
		},
		"another collision count": {
			change: func(r *appsv1.ControllerRevision) {
				r.Annotations = map[string]string{revision.CollisionAnnotation: "1"}
			},
			wantError: "data is not what the name stands for",
		},
		"a collision count that is no number": {
			change: func(r *appsv1.ControllerRevision) {
				r.Annotations = map[string]string{revision.CollisionAnnotation: "-1"}
			},
			wantError: "annotation apps.rollset.dev/collision-count is no number",
		},
		"a collision count that is too large": {
			change: func(r *appsv1.ControllerRevision) {
				r.Annotations = map[string]string{revision.CollisionAnnotation: "2147483648"}
			},
			wantError: "annotation apps.rollset.dev/collision-count is no number",
		},
		"no data": {
			change:    func(r *appsv1.ControllerRevision) { r.Data.Raw = nil },
			wantError: "data is not JSON",
		},
		"cut short": {
			change:    func(r *appsv1.ControllerRevision) { r.Data.Raw = r.Data.Raw[:len(r.Data.Raw)-1] },
			wantError: "data is not JSON",
		},
		"very deep": {
			change:    func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(strings.Repeat("[", 1_000_000)) },
			wantError: "data is not JSON",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", "1Gi")}
			object := w.resolve(t).Create
			tc.change(object)
			template, claims, err := revision.Decode(object)
			if tc.wantError != "" {
				if err == nil || err.Error() != tc.wantError {
					t.Fatalf("error is %v, want %s", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&w.set.Spec.Template, template); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"data"}, claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

// encoding/json merges a duplicate struct; a digest over the last one alone would vouch for both.
func TestDecodeDoesNotMergeKeysThatComeTwice(t *testing.T) {
	t.Parallel()
	object := newWorld().resolve(t).Create
	object.Data.Raw = append([]byte(`{"spec":{"template":{"spec":{"hostNetwork":true}}},`), object.Data.Raw[1:]...)
	template, _, err := revision.Decode(object)
	if err == nil && template.Spec.HostNetwork {
		t.Error("the pod gets the network of the host")
	}
}

// TestDecoderForgets decodes a revision once while it exists, and again after it was gone.
func TestDecoderForgets(t *testing.T) {
	t.Parallel()
	object := rolledOut(t, 1).named("app:v1")
	object.UID = "r1"
	var d revision.Decoder
	first, _, err := d.Decode(object)
	if err != nil {
		t.Fatal(err)
	}
	d.Keep([]*appsv1.ControllerRevision{object})
	if again, _, _ := d.Decode(object); again != first {
		t.Error("it is decoded twice")
	}
	d.Keep(nil)
	if again, _, _ := d.Decode(object); again == first {
		t.Error("it is remembered once it is gone")
	}
}
