// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/settled"
)

// TestPods reads the pods of a set, and those without a controller, from the indexer of a cache and by lists.
func TestPods(t *testing.T) {
	t.Parallel()
	set := settled.Set(4)
	ours, orphan, theirs, elsewhere := settled.Pod(set, "web-1", 0), settled.Pod(set, "web-1", 1), settled.Pod(set, "web-1", 2), settled.Pod(set, "web-1", 3)
	orphan.OwnerReferences = nil
	theirs.OwnerReferences[0].UID = "another"
	elsewhere.Namespace = "elsewhere"
	c := settled.NewCache(t, newScheme(t), IndexFields, ours, orphan, theirs, elsewhere)
	for name, informers := range map[string]cache.Informers{"one cache": c, "a cache of several namespaces": opaque{}} {
		pods, err := NewPods(t.Context(), informers, c)
		if err != nil {
			t.Fatal(err)
		}
		for controller, want := range map[string][]string{string(set.UID): {ours.Name}, Orphan: {orphan.Name}, "unknown": nil, "": {ours.Name, orphan.Name, theirs.Name}} {
			found, err := pods(t.Context(), set.Namespace, controller)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, pod := range found {
				got = append(got, pod.Name)
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: pods of %s (-want +got):\n%s", name, controller, diff)
			}
		}
	}
}

// TestNodes reads the nodes from the store of a cache and by a list.
func TestNodes(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c := settled.NewCache(t, newScheme(t), IndexFields, node)
	for name, informers := range map[string]cache.Informers{"one cache": c, "a cache of several namespaces": opaque{}} {
		found, err := NewNodes(informers, c)(t.Context())
		if err != nil || len(found) != 1 || found[0].Name != node.Name {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// opaque informers show nothing of what they keep.
type opaque struct{ cache.Informers }

// GetInformer implements cache.Informers.
func (opaque) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return struct{ cache.Informer }{}, nil
}
