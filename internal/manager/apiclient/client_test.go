// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answering returns a client of an API server that records requests and gives each the same answer.
func answering(t *testing.T, code int, answer any) (c client.Client, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := r.Method + " " + r.URL.String()
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			request += " for its metadata"
		}
		*asked = append(*asked, request)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: server.URL}
	c, err := New(config, client.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper, HTTPClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return c, asked
}

var patch = client.RawPatch(types.StrategicMergePatchType, []byte("{}"))

// writes returns all writes of an object that a manager makes.
func writes(c client.Client) map[string]func(context.Context, client.Object) error {
	return map[string]func(context.Context, client.Object) error{
		"POST /api/v1/namespaces/default/%s?fieldManager=me": func(ctx context.Context, o client.Object) error {
			return c.Create(ctx, o, client.FieldOwner("me"))
		},
		"PATCH /api/v1/namespaces/default/%s/a?dryRun=All": func(ctx context.Context, o client.Object) error {
			return c.Patch(ctx, o, patch, client.DryRunAll)
		},
		"PATCH /api/v1/namespaces/default/%s/a/status?fieldManager=me": func(ctx context.Context, o client.Object) error {
			return c.SubResource("status").Patch(ctx, o, patch, client.FieldOwner("me"))
		},
		"DELETE /api/v1/namespaces/default/%s/a": func(ctx context.Context, o client.Object) error {
			return c.Delete(ctx, o, client.Preconditions{UID: new(types.UID("1"))})
		},
	}
}

func TestOfPodsOnlyTheMetadataIsAskedFor(t *testing.T) {
	t.Parallel()
	metadata := metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "1", ResourceVersion: "7"}
	c, asked := answering(t, http.StatusOK, metav1.PartialObjectMetadata{ObjectMeta: metadata})
	for request, write := range writes(c) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: corev1.PodSpec{NodeName: "n"}}
		want := pod.DeepCopy()
		if !strings.HasPrefix(request, http.MethodDelete) {
			want.ObjectMeta = metadata
		}
		*asked = nil
		if err := write(t.Context(), pod); err != nil {
			t.Errorf("%s: %v", request, err)
		}
		if diff := cmp.Diff(want, pod); diff != "" {
			t.Errorf("%s: the pod (-want +got):\n%s", request, diff)
		}
		if diff := cmp.Diff([]string{strings.ReplaceAll(request, "%s", "pods") + " for its metadata"}, *asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}

func TestDryRunsAreAnsweredWhole(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, http.StatusCreated, corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{SchedulerName: "default-scheduler"},
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil || pod.Spec.SchedulerName == "" {
		t.Errorf("error %v, pod %v; want a pod with what the API server put in", err, pod)
	}
}

func TestOthersAreWrittenAsUsual(t *testing.T) {
	t.Parallel()
	c, asked := answering(t, http.StatusOK, corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"as": "answered"},
	})
	for request, write := range writes(c) {
		*asked = nil
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := write(t.Context(), object); err != nil {
			t.Errorf("%s: %v", request, err)
		}
		if deleted := strings.HasPrefix(request, http.MethodDelete); !deleted && object.Data["as"] != "answered" {
			t.Errorf("%s: %v", request, object)
		}
		if diff := cmp.Diff([]string{strings.ReplaceAll(request, "%s", "configmaps")}, *asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}

func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "a", nil).Status()
	conflict.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	c, _ := answering(t, http.StatusConflict, conflict)
	for request, write := range writes(c) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if err := write(t.Context(), pod); !apierrors.IsConflict(err) {
			t.Errorf("%s: error %v, want a conflict", request, err)
		}
		if pod.Name != "a" {
			t.Errorf("%s: the pod is now %v", request, pod)
		}
	}
}
