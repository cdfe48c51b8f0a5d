// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

// pageSize is how many sets are listed by one request.
const pageSize = 500

func newMigrateStorage(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate-storage",
		Short: "Store all RollSets in the newest version of the API",
		Long: templates.LongDesc(`Store all RollSets of the cluster in the newest version of the API, and note in the CustomResourceDefinition that no
			other version is stored any more.

			Each set is written unchanged, and the API server stores it anew. No pod restarts. A migration that was interrupted is
			run again. It takes the rights to patch all RollSets and the status of CustomResourceDefinitions.`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.Client()
			if err != nil {
				return err
			}
			return migrateStorage(cmd.Context(), s, c)
		},
	}
}

func migrateStorage(ctx context.Context, s *session.Session, c client.Client) error {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(session.CustomResourceDefinition())
	if err := c.Get(ctx, client.ObjectKey{Name: "rollsets." + v1beta1.GroupVersion.Group}, crd); err != nil {
		return fmt.Errorf("read the CustomResourceDefinition: %w", err)
	}
	newest, err := storedIn(crd)
	if err != nil {
		return err
	}
	stored, _, err := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	if err != nil {
		return fmt.Errorf("read the versions that are stored: %w", err)
	}
	if slices.Equal(stored, []string{newest}) {
		_, err := fmt.Fprintf(s.Out, "all RollSets are stored as %s\n", newest)
		return err
	}
	n, err := storeAnew(ctx, c)
	if err != nil {
		return fmt.Errorf("%d RollSets are stored as %s, run the command again: %w", n, newest, err)
	}
	before := crd.DeepCopy()
	if err := unstructured.SetNestedStringSlice(crd.Object, []string{newest}, "status", "storedVersions"); err != nil {
		return fmt.Errorf("change the CustomResourceDefinition: %w", err)
	}
	if err := c.Status().Patch(ctx, crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("%d RollSets are stored as %s, and the CustomResourceDefinition does not note it, run the command again: %w", n, newest, err)
	}
	_, err = fmt.Fprintf(s.Out, "%d RollSets are stored as %s; before: %v\n", n, newest, stored)
	return err
}

// storedIn returns the version in which the API server stores objects.
func storedIn(crd *unstructured.Unstructured) (string, error) {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return "", fmt.Errorf("read the versions of the CustomResourceDefinition: %w", err)
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if stored, _ := version["storage"].(bool); stored {
			name, _, err := unstructured.NestedString(version, "name")
			return name, err
		}
	}
	return "", errors.New("the CustomResourceDefinition stores no version")
}

// storeAnew writes all sets unchanged, and returns how many it wrote. The API server stores an object that another version encoded.
func storeAnew(ctx context.Context, c client.Client) (n int, err error) {
	for next := ""; ; {
		list := &v1beta1.RollSetList{}
		if err := c.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return n, fmt.Errorf("list RollSets: %w", err)
		}
		for i := range list.Items {
			set := &list.Items[i]
			err := c.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte("{}")))
			if client.IgnoreNotFound(err) != nil {
				return n, fmt.Errorf("rollset %s in namespace %s: %w", set.Name, set.Namespace, err)
			}
			if !apierrors.IsNotFound(err) {
				n++
			}
		}
		if next = list.Continue; next == "" {
			return n, nil
		}
	}
}
