// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"rollset.dev/rollset/internal/cli/session"
)

// TestRetargetAll points the autoscalers of a StatefulSet to the RollSet that it becomes.
func TestRetargetAll(t *testing.T) {
	t.Parallel()
	scheme, err := session.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	scaler := func(kind schema.GroupVersionKind, name, field, target string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			field: map[string]any{"apiVersion": "apps/v1", "kind": target, "name": "a"},
		}}}
		o.SetGroupVersionKind(kind)
		o.SetNamespace("default")
		o.SetName(name)
		return o
	}
	ofKEDA := scaler(session.HorizontalPodAutoscaler(), "keda", "scaleTargetRef", statefulSet)
	ofKEDA.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "so", UID: "1", Controller: new(true)}})
	objects := map[*unstructured.Unstructured]string{
		scaler(session.HorizontalPodAutoscaler(), "hpa", "scaleTargetRef", statefulSet):    "RollSet",
		scaler(session.HorizontalPodAutoscaler(), "another", "scaleTargetRef", deployment): deployment,
		scaler(session.ScaledObject(), "so", "scaleTargetRef", statefulSet):                "RollSet",
		scaler(session.VerticalPodAutoscaler(), "vpa", "targetRef", statefulSet):           "RollSet",
		ofKEDA: statefulSet, // KEDA changes it
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for o := range objects {
		builder.WithObjects(o)
	}
	s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, clocktesting.NewFakeClock(time.Time{}))
	m := &mover{session: s, client: builder.Build(), namespace: "default"}
	from, to := like(statefulSet), like("RollSet")
	from.SetNamespace("default")
	to.SetAPIVersion("apps.rollset.dev/v1beta1")
	if err := m.retargetAll(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	for o, want := range objects {
		if err := m.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, field := range []string{"scaleTargetRef", "targetRef"} {
			if kind, ok, _ := unstructured.NestedString(o.Object, "spec", field, "kind"); ok {
				kinds = append(kinds, kind)
			}
		}
		if diff := cmp.Diff([]string{want}, kinds); diff != "" {
			t.Errorf("%s: %s", describe(o), diff)
		}
	}
}
