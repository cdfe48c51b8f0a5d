// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// MayWatch fails if the manager may not list one of the kinds in one of the namespaces; no namespaces means all. Without
// this check the cache would retry without end, and the manager would never become ready.
func MayWatch(ctx context.Context, c client.Client, kinds []client.Object, namespaces []string) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, kind := range kinds {
		in := namespaces
		if namespaced, err := c.IsObjectNamespaced(kind); err != nil {
			return fmt.Errorf("ask the API server for %T: %w", kind, err)
		} else if !namespaced {
			in = []string{metav1.NamespaceAll}
		}
		for _, namespace := range in {
			if err := mayList(ctx, c, kind, namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// MayElect fails if the manager may not read its lease. Without this check it would wait for the lease without end.
func MayElect(ctx context.Context, c client.Client, lease client.ObjectKey) error {
	err := c.Get(ctx, lease, &coordinationv1.Lease{})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the manager may not use the lease %s: bind its role there, or choose another place by --leader-election-namespace: %w", lease, err)
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read the lease %s: %w", lease, err)
	default:
		return nil
	}
}

func mayList(ctx context.Context, c client.Client, kind client.Object, namespace string) error {
	gvk, err := apiutil.GVKForObject(kind, c.Scheme())
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = c.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	where := "namespace " + namespace
	if namespace == metav1.NamespaceAll {
		where = "the whole cluster"
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the manager may not watch %s in %s: bind its role there, or restrict it by --namespaces: %w", gvk.Kind, where, err)
	case err != nil:
		return fmt.Errorf("list %s in %s: %w", gvk.Kind, where, err)
	default:
		return nil
	}
}

// Missing returns the first right on a kind that the manager lacks in one of the namespaces; empty if it has them all. No
// namespaces means all.
func Missing(ctx context.Context, c client.Client, kind client.Object, verbs, namespaces []string) (string, error) {
	gvk, err := apiutil.GVKForObject(kind, c.Scheme())
	if err != nil {
		return "", err
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return "", fmt.Errorf("ask the API server for %s: %w", gvk.Kind, err)
	}
	if len(namespaces) == 0 || mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		for _, verb := range verbs {
			review := &authorizationv1.SelfSubjectAccessReview{}
			review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource,
			}
			if err := c.Create(ctx, review); err != nil {
				return "", fmt.Errorf("ask for the right to %s %s: %w", verb, mapping.Resource.Resource, err)
			}
			if !review.Status.Allowed {
				return fmt.Sprintf("the manager may not %s %s%s", verb, mapping.Resource.Resource, inNamespace(namespace)), nil
			}
		}
	}
	return "", nil
}

func inNamespace(name string) string {
	if name == metav1.NamespaceAll {
		return ""
	}
	return " in namespace " + name
}
