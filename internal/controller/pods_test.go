// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPods reads the pods of a set, and those of nobody, from the indexer of a cache and by lists.
func TestPods(t *testing.T) {
	t.Parallel()
	set := settledSet(4)
	ours, orphan, theirs, elsewhere := readyPod(set, "web-1", 0), readyPod(set, "web-1", 1), readyPod(set, "web-1", 2), readyPod(set, "web-1", 3)
	orphan.OwnerReferences = nil
	theirs.OwnerReferences[0].UID = "another"
	elsewhere.Namespace = "elsewhere"
	c := newCached(t, ours, orphan, theirs, elsewhere)
	for name, informers := range map[string]cache.Informers{"one cache": c.Cache, "a cache of several namespaces": opaque{}} {
		pods, err := InformerPods(t.Context(), informers, c)
		if err != nil {
			t.Fatal(err)
		}
		for controller, want := range map[string][]string{string(set.UID): {ours.Name}, Orphan: {orphan.Name}, "nobody": nil} {
			found, err := pods(t.Context(), set.Namespace, controller)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, pod := range found {
				got = append(got, pod.Name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: pods of %s (-want +got):\n%s", name, controller, diff)
			}
		}
	}
}

// opaque informers show nothing of what they keep.
type opaque struct{ cache.Informers }

// GetInformer implements cache.Informers.
func (opaque) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return struct{ cache.Informer }{}, nil
}
