// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/settled"
)

// TestPods reads the pods of a set, those without a controller, all, and one by its name, from the indexer of a cache and by lists.
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
		for controller, want := range map[string][]string{string(set.UID): {ours.Name}, Orphan: {orphan.Name}, "unknown": nil} {
			found, err := pods.With(t.Context(), set.Namespace, controller)
			if got := namesOf(found); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: pods of %s are %q, %v, want %q", name, controller, got, err, want)
			}
		}
		all, err := pods.All(t.Context(), set.Namespace)
		if got, want := namesOf(all), namesOf([]client.Object{ours, orphan, theirs}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: all pods are %q, %v, want %q", name, got, err, want)
		}
		for wanted, found := range map[*corev1.Pod]bool{theirs: true, elsewhere: false} {
			pod, err := pods.Named(t.Context(), types.NamespacedName{Namespace: set.Namespace, Name: wanted.Name})
			if err != nil || (pod != nil) != found || found && pod.GetUID() != wanted.UID {
				t.Errorf("%s: pod %s is %v, %v", name, wanted.Name, pod, err)
			}
		}
	}
}

// namesOf returns the names of pods, sorted.
func namesOf[T client.Object](pods []T) (names []string) {
	for _, pod := range pods {
		names = append(names, pod.GetName())
	}
	slices.Sort(names)
	return names
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
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
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
