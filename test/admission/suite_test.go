// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission tests what a real API server admits with the shipped CRD. There is no webhook, so the CRD is the whole
// of admission.
package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// shared is the cluster that all tests use.
var shared *cluster

// cluster is a running API server with the CRD.
type cluster struct {
	client.Client
	env *envtest.Environment
	// dir is the home of kubectl's user.
	dir string
}

func TestMain(m *testing.M) {
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) int {
	c := &cluster{env: &envtest.Environment{ControlPlaneStartTimeout: patience.Long(), ControlPlaneStopTimeout: patience.Long()}}
	code := 1
	err := c.start()
	if err == nil {
		shared = c
		code = m.Run()
	}
	if err := errors.Join(err, c.env.Stop(), os.RemoveAll(c.dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start starts an API server, and installs the CRD with the tool that users install it with.
func (c *cluster) start() (err error) {
	if c.env.BinaryAssetsDirectory, err = assets.Find(); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return err
	}
	config, err := c.env.Start()
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "rollset-admission-"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "kubeconfig"), c.env.KubeConfig, 0o600); err != nil {
		return err
	}
	if _, err := c.kubectl("apply", "-k", crdFolder); err != nil {
		return err
	}
	crd, err := shipped()
	if err != nil {
		return err
	}
	// kubectl wait would do, but it fails on a CRD that has no conditions yet.
	return envtest.WaitForCRDs(config, []*apiextensionsv1.CustomResourceDefinition{crd}, envtest.CRDInstallOptions{MaxTime: patience.Long()})
}

// kubectl runs the real kubectl, and returns what it prints to standard output.
func (c *cluster) kubectl(args ...string) (string, error) {
	command := exec.Command(filepath.Join(c.env.BinaryAssetsDirectory, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"), "HOME="+c.dir)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// crdFolder is the kustomization of the CRD that users install.
const crdFolder = "../../config/crd"

// shipped reads the CRD that users install.
func shipped() (*apiextensionsv1.CustomResourceDefinition, error) {
	raw, err := os.ReadFile(crdFolder + "/bases/apps.rollset.dev_rollsets.yaml")
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
