// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestFluxKeepsTheCRD removes the CRD as the kustomize-controller does: when it is no more among the manifests of a Kustomization, and
// when the Kustomization is deleted. Without the annotation it would go.
func TestFluxKeepsTheCRD(t *testing.T) {
	t.Parallel()
	shipped := &unstructured.Unstructured{}
	decode(t, "config/crd/bases/apps.rollset.dev_rollsets.yaml", &shipped.Object)
	bare := shipped.DeepCopy()
	bare.SetAnnotations(nil)
	options := ssa.DefaultDeleteOptions()
	options.Exclusions = map[string]string{kustomizev1.GroupVersion.Group + "/prune": kustomizev1.DisabledValue}
	for _, c := range []struct {
		crd  *unstructured.Unstructured
		want ssa.Action
	}{{shipped, ssa.SkippedAction}, {bare, ssa.DeletedAction}} {
		cluster := fake.NewClientBuilder().WithObjects(c.crd.DeepCopy()).Build()
		change, err := ssa.NewResourceManager(cluster, nil, ssa.Owner{}).Delete(t.Context(), c.crd, options)
		if err != nil {
			t.Fatal(err)
		}
		left := cluster.Get(t.Context(), client.ObjectKeyFromObject(c.crd), c.crd.DeepCopy()) == nil
		if change.Action != c.want || left != (c.want == ssa.SkippedAction) {
			t.Errorf("with the annotations %v it is %s", c.crd.GetAnnotations(), change.Action)
		}
	}
}

// TestArgoCDKeepsTheCRD looks for the options by which Argo CD neither prunes an object that is no more among the manifests, nor deletes
// it with its Application. Its own module cannot be imported here: the names are copied from AnnotationSyncOptions,
// SyncOptionDisablePrune and SyncOptionDisableDeletion in gitops-engine/pkg/sync/common, which splits the annotation at its commas.
func TestArgoCDKeepsTheCRD(t *testing.T) {
	t.Parallel()
	crd := &unstructured.Unstructured{}
	decode(t, "config/crd/bases/apps.rollset.dev_rollsets.yaml", &crd.Object)
	options := strings.Split(crd.GetAnnotations()["argocd.argoproj.io/sync-options"], ",")
	for _, want := range []string{"Prune=false", "Delete=false"} {
		if !slices.Contains(options, want) {
			t.Errorf("the options of the CRD are %q, want %s", options, want)
		}
	}
}
