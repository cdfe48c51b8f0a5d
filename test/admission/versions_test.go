// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// TestEitherVersion writes every accepted manifest by the version before this one, applies it by this one, and reads it by both.
func TestEitherVersion(t *testing.T) {
	warnings := &recorder{}
	config := rest.CopyConfig(shared.env.Config)
	config.WarningHandlerWithContext = warnings
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, u := range accepted(t) {
		before := u.DeepCopy()
		before.SetAPIVersion("apps.rollset.dev/v1alpha1")
		before.SetName("either-" + name)
		before.SetNamespace("default")
		now := before.DeepCopy()
		now.SetAPIVersion(v1beta1.GroupVersion.String())

		apply(t, c, before.DeepCopy())
		first := content(t, c, now)
		apply(t, c, now.DeepCopy())
		if diff := cmp.Diff(first, content(t, c, before)); diff != "" {
			t.Errorf("%s is another set by the other version, or after it was applied by it (-v1beta1 +v1alpha1):\n%s", name, diff)
		}
		for _, version := range []*unstructured.Unstructured{before, now} {
			scale := &unstructured.Unstructured{}
			if err := c.SubResource("scale").Get(t.Context(), version.DeepCopy(), scale); err != nil {
				t.Errorf("%s has no scale in %s: %v", name, version.GetAPIVersion(), err)
			}
		}
		if err := c.Delete(t.Context(), now); err != nil {
			t.Error(err)
		}
	}
	if len(warnings.texts) == 0 {
		t.Error("v1alpha1 causes no warning")
	}
	for text := range warnings.texts {
		if !strings.Contains(text, "v1alpha1 RollSet is deprecated; use apps.rollset.dev/v1beta1") {
			t.Errorf("warning: %s", text)
		}
	}
}

func apply(t *testing.T, c client.Client, u *unstructured.Unstructured) {
	t.Helper()
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
}

// content returns what a version shows of a set, without what names the version.
func content(t *testing.T, c client.Client, like *unstructured.Unstructured) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(like.GroupVersionKind())
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(like), u); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion("")
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	return u.Object
}

// recorder records warnings of the API server.
type recorder struct {
	mu    sync.Mutex
	texts map[string]bool
}

// HandleWarningHeaderWithContext records a warning.
func (r *recorder) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.texts == nil {
		r.texts = map[string]bool{}
	}
	r.texts[text] = true
}
