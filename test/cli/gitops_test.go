// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// gitOps is a tool that keeps a set as a manifest has it.
type gitOps struct {
	// manager is the field manager of its writes.
	manager string
	// takesOver are the prefixes of the managers whose fields it makes its own before it applies, so that it removes those that
	// the manifest has not.
	takesOver []string
	// merges is true if it compares with what it applied last, as kubectl apply without --server-side does.
	merges bool
}

// tools returns the tools, as their documentation and sources describe them. Flux takes over the managers that begin with kubectl or
// before-first-apply. Argo CD takes over the manager of client-side applies when it begins to apply on the server.
func tools() map[string]gitOps {
	all := map[string]gitOps{
		"Flux":                     {"kustomize-controller", []string{"kubectl", "before-first-apply"}, false},
		"Argo CD":                  {"argocd-controller", nil, true},
		"Argo CD, ServerSideApply": {"argocd-controller", []string{"kubectl-client-side-apply"}, false},
	}
	if testing.Short() {
		delete(all, "Argo CD, ServerSideApply") // Flux does the same to more managers
	}
	return all
}

// sync makes the set what the manifest has.
func (g gitOps) sync(t *testing.T, u *user, manifest map[string]any) {
	t.Helper()
	object := &unstructured.Unstructured{Object: manifest}
	object = object.DeepCopy()
	object.SetNamespace(u.namespace)
	if g.merges {
		g.merge(t, object)
		return
	}
	eventually(t, "the fields to be taken over", func() error {
		found := &v1beta1.RollSet{}
		err := shared.Get(t.Context(), client.ObjectKeyFromObject(object), found)
		if apierrors.IsNotFound(err) {
			return nil
		}
		before := client.MergeFromWithOptions(found.DeepCopy(), client.MergeFromWithOptimisticLock{})
		taken := false
		for i := range found.ManagedFields {
			entry := &found.ManagedFields[i]
			for _, prefix := range g.takesOver {
				if strings.HasPrefix(entry.Manager, prefix) && entry.Subresource == "" {
					entry.Manager, entry.Operation, taken = g.manager, metav1.ManagedFieldsOperationApply, true
				}
			}
		}
		if err != nil || !taken {
			return err
		}
		return shared.Patch(t.Context(), found, before)
	})
	if err := shared.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(g.manager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

// merge applies a manifest by a three-way merge.
func (g gitOps) merge(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	err = shared.Get(t.Context(), client.ObjectKeyFromObject(object), found)
	if apierrors.IsNotFound(err) {
		err = shared.Create(t.Context(), object, client.FieldOwner(g.manager))
	}
	if err != nil {
		t.Fatal(err)
	}
	if found.GetName() == "" {
		return
	}
	current, currentErr := json.Marshal(found)
	modified, modifiedErr := json.Marshal(object)
	body, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(found.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), modified, current)
	if err := errors.Join(currentErr, modifiedErr, err); err != nil {
		t.Fatal(err)
	}
	if err := shared.Patch(t.Context(), found, client.RawPatch(types.MergePatchType, body), client.FieldOwner(g.manager)); err != nil {
		t.Fatal(err)
	}
}

// TestGitOpsKeepsWhatVerbsDo syncs a set after each verb that changes it. What the manifest does not have stays as the verb made
// it; what it has, images, is set back, and nothing else is.
func TestGitOpsKeepsWhatVerbsDo(t *testing.T) {
	t.Parallel()
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t).here()
			container := map[string]any{"name": "app", "image": "nginx:1.28"}
			manifest := map[string]any{
				"apiVersion": v1beta1.GroupVersion.String(), "kind": "RollSet", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{
					"replicas": int64(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
					"template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{"containers": []any{container}},
					},
					"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"steps": []any{
						map[string]any{"updated": int64(1), "pause": true}, map[string]any{"updated": int64(2), "pause": true},
					}}},
				},
			}
			after := func(holds func(*v1beta1.RollSet) bool, args ...string) {
				t.Helper()
				u.run(t, args...)
				tool.sync(t, u, manifest)
				if set := u.get(t, "web"); !holds(set) {
					t.Errorf("after %s and a sync: annotations %v, spec %+v\n%+v", strings.Join(args, " "), set.Annotations, set.Spec, set.ManagedFields)
				}
			}
			rolling := func(set *v1beta1.RollSet) *v1beta1.RollingUpdate { return &set.Spec.UpdateStrategy.RollingUpdate }
			restarted := func(set *v1beta1.RollSet) bool {
				return set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != ""
			}
			annotated := func(key string) func(*v1beta1.RollSet) bool {
				return func(set *v1beta1.RollSet) bool { return set.Annotations[key] != "" }
			}
			tool.sync(t, u, manifest)
			contains(t, u.run(t, "status", "web", longest()), "3 of 3 pods")
			after(func(set *v1beta1.RollSet) bool { return rolling(set).Paused }, "pause", "web")
			after(func(set *v1beta1.RollSet) bool { return !rolling(set).Paused }, "resume", "web")
			after(func(set *v1beta1.RollSet) bool { return *rolling(set).Partition == intstr.FromInt32(2) }, "set", "partition", "web", "2")
			after(func(set *v1beta1.RollSet) bool { return *rolling(set).Partition == intstr.FromInt32(0) }, "set", "partition", "web", "0")
			after(func(set *v1beta1.RollSet) bool {
				return image(set) == "nginx:1.28" && *rolling(set).Partition == intstr.FromInt32(0)
			},
				"set", "image", "web", "app=nginx:1.29")
			contains(t, u.run(t, "status", "web", longest()), "3 of 3 pods")
			after(restarted, "restart", "web")
			inPhase(t, u, 1, v1beta1.RolloutPaused)
			after(annotated(v1beta1.PromoteAnnotation), "promote", "web")
			inPhase(t, u, 2, v1beta1.RolloutPaused)
			after(annotated(v1beta1.AbortAnnotation), "abort", "web", "--wait", longest())
			after(annotated(v1beta1.RetryAnnotation), "retry", "web")
			inPhase(t, u, 1, v1beta1.RolloutPaused)
			after(annotated(v1beta1.PromoteAnnotation), "promote", "web", "--full", "--wait", longest())
			if !restarted(u.get(t, "web")) {
				t.Errorf("the restart was undone")
			}
			after(func(set *v1beta1.RollSet) bool { return image(set) == "nginx:1.28" }, "undo", "web")
		})
	}
}
