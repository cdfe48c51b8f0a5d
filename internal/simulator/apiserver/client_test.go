// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestEveryWriteAsksForFaults calls every method by which a client can write. If one of them passed the plan of faults
// by, or if a new version of controller-runtime had one more, crash points would be missing.
func TestEveryWriteAsksForFaults(t *testing.T) {
	t.Parallel()
	pod := aPod("a")
	patch := client.RawPatch(types.MergePatchType, []byte("{}"))
	writes := map[string]func(context.Context, *Client) error{
		"Create":             func(ctx context.Context, c *Client) error { return c.Create(ctx, pod) },
		"Update":             func(ctx context.Context, c *Client) error { return c.Update(ctx, pod) },
		"Patch":              func(ctx context.Context, c *Client) error { return c.Patch(ctx, pod, patch) },
		"Delete":             func(ctx context.Context, c *Client) error { return c.Delete(ctx, pod) },
		"Apply":              func(ctx context.Context, c *Client) error { return c.Apply(ctx, nil) },
		"DeleteAllOf":        func(ctx context.Context, c *Client) error { return c.DeleteAllOf(ctx, pod) },
		"SubResource.Create": func(ctx context.Context, c *Client) error { return c.SubResource("eviction").Create(ctx, pod, pod) },
		"SubResource.Update": func(ctx context.Context, c *Client) error { return c.Status().Update(ctx, pod) },
		"SubResource.Patch":  func(ctx context.Context, c *Client) error { return c.Status().Patch(ctx, pod, patch) },
		"SubResource.Apply":  func(ctx context.Context, c *Client) error { return c.Status().Apply(ctx, nil) },
	}
	methods := methodsOf[client.Writer]()
	for _, m := range methodsOf[client.SubResourceWriter]() {
		methods = append(methods, "SubResource."+m)
	}
	var covered []string
	for name, write := range writes {
		covered = append(covered, name)
		asked := 0
		c := NewClient(NewView(newDesk(t).Store), "manager", NewScheme())
		c.Faults = func(Write) Fault { asked++; return TimeoutLost }
		if err := write(t.Context(), c); err == nil || asked != 1 {
			t.Errorf("%s asked %d times what is to go wrong, and returned %v", name, asked, err)
		}
	}
	slices.Sort(methods)
	slices.Sort(covered)
	if diff := cmp.Diff(methods, covered); diff != "" {
		t.Errorf("methods that write (-client +here):\n%s", diff)
	}
}

func methodsOf[T any]() []string {
	var names []string
	for m := range reflect.TypeFor[T]().Methods() {
		names = append(names, m.Name)
	}
	return names
}
