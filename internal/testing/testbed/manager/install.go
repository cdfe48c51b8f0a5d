// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the manager as a process of its own against a cluster, as a user with the rights of its generated
// role and no others.
package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/assets"
)

const (
	// User is whom the manager acts as.
	User = "rollset-manager"
	// fieldManager is the field manager of the installed objects.
	fieldManager = "rollset-testbed"
	// crdTimeout bounds the time until the API server serves the CRD.
	crdTimeout = 20 * time.Second
)

// Install applies the generated CRD and gives User the generated roles.
func Install(ctx context.Context, config *rest.Config) error {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	return InstallFrom(ctx, config, root)
}

// InstallFrom is Install with the CRD and the roles of another source tree, such as that of another version.
func InstallFrom(ctx context.Context, config *rest.Config, root string) error {
	if err := installCRD(ctx, config, root); err != nil {
		return err
	}
	return InstallRoles(ctx, config, root)
}

// InstallRoles applies the roles of a source tree, and binds User to them.
func InstallRoles(ctx context.Context, config *rest.Config, root string) error {
	files := []string{filepath.Join(root, "config", "rbac", "manager", "role.yaml")}
	bindings := []*unstructured.Unstructured{binding("manager-role"), binding("storage-reader-role")}
	disruption := filepath.Join(root, "config", "rbac", "disruption", "role.yaml")
	if _, err := os.Stat(disruption); err == nil { // older versions have none
		files = append(files, disruption)
		for _, role := range DisruptionRoles() {
			bindings = append(bindings, binding(role))
		}
	}
	return applyFiles(ctx, config, files, bindings...)
}

// DisruptionRoles are the roles of the component disruption, which the manager works without. User is bound to each by a
// ClusterRoleBinding named BindingOf.
func DisruptionRoles() []string { return []string{"node-reader-role", "disruption-budget-role"} }

// BindingOf returns the name of the ClusterRoleBinding of a role.
func BindingOf(role string) string { return User + "-" + role }

// InstallCRD applies the generated CRD and waits until it is served.
func InstallCRD(ctx context.Context, config *rest.Config) error {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	return installCRD(ctx, config, root)
}

func installCRD(ctx context.Context, config *rest.Config, root string) error {
	file := filepath.Join(root, "config", "crd", "bases", "apps.rollset.dev_rollsets.yaml")
	if err := applyFiles(ctx, config, []string{file}); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return AwaitServed(ctx, c, "rollsets.apps.rollset.dev")
}

// applyFiles applies files, and then objects.
func applyFiles(ctx context.Context, config *rest.Config, files []string, objects ...*unstructured.Unstructured) error {
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for _, file := range files {
		if err := applyFile(ctx, c, file); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := apply(ctx, c, object); err != nil {
			return err
		}
	}
	return nil
}

// binding gives User a role in the whole cluster.
func binding(role string) *unstructured.Unstructured {
	b := &unstructured.Unstructured{Object: map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": User}},
	}}
	b.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
	b.SetName(BindingOf(role))
	return b
}

// applyFile applies every document of a YAML file.
func applyFile(ctx context.Context, c client.Client, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("decode %s: %w", path, err)
		case len(object.Object) == 0: // an empty document
			continue
		}
		if err := apply(ctx, c, object); err != nil {
			return err
		}
	}
}

func apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	object.SetManagedFields(nil)
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// AwaitServed waits until the API server has established a CRD.
func AwaitServed(ctx context.Context, c client.Client, name string) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience.For(crdTimeout), true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
			return false, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd)
		return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established), err
	})
	if err != nil {
		return fmt.Errorf("wait for CRD %s: %w", name, err)
	}
	return nil
}
