// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission tests what a real API server admits with the shipped CRD. There is no webhook, so the CRD is the whole
// of admission.
package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/stored"
	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// shared is the cluster that most tests use.
var shared *cluster

// cluster is a running API server with the CRD.
type cluster struct {
	client.Client
	env *envtest.Environment
}

func TestMain(m *testing.M) {
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) int {
	crd, err := shipped()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shared, err = start(crd); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start starts an API server with a CRD.
func start(crd *apiextensionsv1.CustomResourceDefinition) (*cluster, error) {
	dir, err := assets.Find()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: dir, CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, Scheme: scheme,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: patience.Long()},
		ControlPlaneStartTimeout: patience.Long(), ControlPlaneStopTimeout: patience.Long(),
	}
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &cluster{Client: c, env: env}, nil
}

// shippedPath returns the path of the CRD that users install.
func shippedPath() (string, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "config", "crd", "bases", "apps.rollset.dev_rollsets.yaml"), nil
}

// shipped reads the CRD that users install.
func shipped() (*apiextensionsv1.CustomResourceDefinition, error) {
	path, err := shippedPath()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, yaml.UnmarshalStrict(raw, crd)
}

// manifest is the smallest set. Tests change it.
const manifest = `
apiVersion: apps.rollset.dev/v1beta1
kind: RollSet
metadata:
  name: web
  namespace: default
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - {name: web, image: "nginx:1.27"}
`

// parse reads a manifest, with its namespace set.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	u.SetNamespace("default")
	return u
}

// fields are values, in YAML, by the path of their field. The value "-" removes the field.
type fields map[string]string

// with changes fields of an object.
func with(t testing.TB, u *unstructured.Unstructured, changes fields) *unstructured.Unstructured {
	t.Helper()
	u = u.DeepCopy()
	for path, text := range changes {
		steps := strings.Split(path, ".")
		if text == "-" {
			unstructured.RemoveNestedField(u.Object, steps...)
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := unstructured.SetNestedField(u.Object, runtime.DeepCopyJSONValue(integers(value)), steps...); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return u
}

// integers converts whole numbers that YAML reads as floating point to integers, as the API does.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

// admit asks the API server whether it would accept a new object.
func (c *cluster) admit(ctx context.Context, u *unstructured.Unstructured) error {
	u = u.DeepCopy()
	if err := c.Create(ctx, u, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		return err
	}
	return stored.Print(u)
}
