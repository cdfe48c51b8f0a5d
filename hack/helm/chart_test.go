// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	root  = "../.."
	chart = root + "/charts/rollset"
)

// tool finds a program that the module file of a folder pins, once: each search by the go command takes a second.
func tool(folder string, args ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		find := exec.Command("go", append([]string{"-C", folder, "tool", "-n"}, args...)...)
		find.Stderr = os.Stderr // it tells what it downloads
		out, err := find.Output()
		path := strings.TrimSpace(string(out))
		if err != nil {
			return path, err
		}
		for range 600 { // the go command prints a path that another one may not have written yet
			if _, err = os.Stat(path); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		return path, err
	})
}

var (
	helm4            = tool(".", "helm")
	helm3            = tool("v3", "helm")
	kustomizeProgram = tool(root, "-modfile=go.tools.mod", "kustomize")
)

// run runs a program and returns its output.
func run(t *testing.T, program func() (string, error), args ...string) (string, error) {
	t.Helper()
	name, err := program()
	if err != nil {
		t.Fatalf("%v\n%s", err, name)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// template renders a chart as helm install would, in the namespace of config/default.
func template(t *testing.T, chart string, args ...string) (string, error) {
	t.Helper()
	return run(t, helm4, append([]string{"template", "rollset", chart, "--namespace=rollset-system"}, args...)...)
}

// TestSameWithHelm3 checks that Helm 3 renders and rejects the same as Helm 4. The CRD takes most of the time, and depends on no other
// value: one row has it.
func TestSameWithHelm3(t *testing.T) {
	for _, values := range []string{
		"crds.install=true", "replicas=1", "namespaces={team-a,team-b}", "networkPolicy=true,metrics.serviceMonitor=true,metrics.rules=true",
		"replicas=2", "metrics.enabled=false", "rbac.aggregate=true", "disruption=true", "disruption=true,namespaces={team-a,team-b}", "namespaces={team-a,team-a}", "replicas=two",
	} {
		by4, err4 := template(t, chart, "--set=crds.install=false", "--set="+values)
		by3, err3 := run(t, helm3, "template", "rollset", chart, "--namespace=rollset-system", "--set=crds.install=false", "--set="+values,
			"--kube-version=1.37.0") // a release of Helm 3 knows the newest version; this build does not
		if (err3 == nil) != (err4 == nil) {
			t.Errorf("%s: Helm 3 says %v, Helm 4 %v", values, err3, err4)
		}
		if diff := cmp.Diff(objects(t, by4), objects(t, by3)); diff != "" {
			t.Errorf("%s (-Helm 4 +Helm 3):\n%s", values, diff)
		}
	}
}

// kustomize builds a folder.
func kustomize(t *testing.T, folder string) string {
	t.Helper()
	built, err := run(t, kustomizeProgram, "build", folder)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// objects returns the objects of a manifest, by kind, namespace and name, without the labels of Helm and kustomize.
func objects(t *testing.T, manifest string) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		u := &unstructured.Unstructured{}
		switch err := documents.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatal(err)
		case len(u.Object) == 0:
			continue
		}
		labels := u.GetLabels()
		for _, key := range []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/name", "helm.sh/chart"} {
			delete(labels, key)
		}
		u.SetLabels(labels)
		annotations := u.GetAnnotations()
		delete(annotations, "helm.sh/resource-policy")
		u.SetAnnotations(annotations)
		for _, empty := range []string{"labels", "annotations"} {
			if value, ok, _ := unstructured.NestedMap(u.Object, "metadata", empty); ok && len(value) == 0 {
				unstructured.RemoveNestedField(u.Object, "metadata", empty)
			}
		}
		found[strings.Join([]string{u.GetKind(), u.GetNamespace(), u.GetName()}, " ")] = u.Object
	}
}

// TestSameAsKustomize compares the chart with the kustomizations of config, object by object.
func TestSameAsKustomize(t *testing.T) {
	for name, c := range map[string]struct {
		folder string
		values []string
	}{
		"the default": {folder: root + "/config/default"},
		"monitored": {
			folder: root + "/config/overlays/monitored",
			values: []string{"--set=metrics.serviceMonitor=true,metrics.rules=true,networkPolicy=true"},
		},
		"some namespaces": {
			folder: root + "/config/overlays/namespaced",
			values: []string{"--set=namespaces={team-a,team-b}"},
		},
		"disruption": {
			folder: composed(t, "resources: [CONFIG/default]\ncomponents: [CONFIG/components/disruption]\n"),
			values: []string{"--set=disruption=true"},
		},
		"disruption in some namespaces": {
			folder: composed(t, `
resources: [CONFIG/default, CONFIG/overlays/namespaced/team-a, CONFIG/overlays/namespaced/team-b, team-a, team-b]
components: [CONFIG/components/disruption, CONFIG/components/namespaced]
patches:
- target: {kind: Deployment}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--namespaces=team-a,team-b"}]'
`),
			values: []string{"--set=disruption=true,namespaces={team-a,team-b}"},
		},
		"verbose": {folder: root + "/config/overlays/debug", values: []string{"--set=logLevel=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := template(t, chart, c.values...)
			if err != nil {
				t.Fatal(err)
			}
			want, got := objects(t, kustomize(t, c.folder)), objects(t, rendered)
			delete(want, "Namespace  rollset-system") // helm install --create-namespace creates it
			for _, list := range []map[string]map[string]any{want, got} {
				for _, o := range list {
					sortArgs(t, o)
				}
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Fatalf("objects (-kustomize +helm):\n%s", diff)
			}
			for key := range want {
				if diff := cmp.Diff(want[key], got[key]); diff != "" {
					t.Errorf("%s (-kustomize +helm):\n%s", key, diff)
				}
			}
		})
	}
}

// composed returns a folder with a kustomization, in which CONFIG stands for the folder config. Its folders team-a and team-b let
// the manager keep disruption budgets in these namespaces.
func composed(t *testing.T, kustomization string) string {
	t.Helper()
	dir := t.TempDir()
	config, err := filepath.Abs(root + "/config")
	if err != nil {
		t.Fatal(err)
	}
	write := func(folder, text string) {
		folder = filepath.Join(dir, folder)
		relative, err := filepath.Rel(folder, config)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(folder, 0o700),
			os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "CONFIG", relative)), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(".", kustomization)
	for _, namespace := range []string{"team-a", "team-b"} {
		write(namespace, "namespace: "+namespace+"\nresources: [CONFIG/rbac/watched-disruption]\n")
	}
	return dir
}

// sortArgs sorts the manager's flags, because their order has no meaning.
func sortArgs(t *testing.T, object map[string]any) {
	t.Helper()
	containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			t.Fatalf("a container is %v", c)
		}
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(args)
		if err := unstructured.SetNestedStringSlice(container, args, "args"); err != nil {
			t.Fatal(err)
		}
	}
	if len(containers) > 0 {
		if err := unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWithoutNamespaceObject checks that the chart has no Namespace that would conflict with helm install
// --create-namespace.
func TestWithoutNamespaceObject(t *testing.T) {
	rendered, err := template(t, chart)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(rendered, "kind: Namespace") {
		t.Error("the chart makes a Namespace, as helm install --create-namespace does")
	}
}

// TestKept checks that the CRD outlives the release, unless a user wants otherwise.
func TestKept(t *testing.T) {
	for values, want := range map[string]string{"crds.keep=true": "helm.sh/resource-policy: keep", "crds.keep=false": ""} {
		rendered, err := template(t, chart, "--set="+values, "--show-only=templates/crd.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(rendered, "helm.sh/resource-policy") != (want != "") {
			t.Errorf("with %s the CRD is not as it should be", values)
		}
	}
	rendered, err := template(t, chart, "--set=crds.install=false")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(rendered, "kind: CustomResourceDefinition") {
		t.Error("crds.install=false installs the CRD")
	}
}

// TestImages checks the ways to name an image.
func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for values, want := range map[string]string{
		"image.repository=r/rollset,image.tag=v1":                        "image: r/rollset:v1\n",
		"image.repository=r/rollset,image.tag=,image.digest=" + digest:   "image: r/rollset@" + digest + "\n",
		"image.repository=r/rollset,image.tag=v1,image.digest=" + digest: "image: r/rollset:v1@" + digest + "\n",
	} {
		rendered, err := template(t, chart, "--set=crds.install=false,"+values)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(rendered, want) {
			t.Errorf("%s: there is no %q", values, want)
		}
	}
}

// TestRefusedValues checks values that contradict each other or have no meaning. Helm must reject them before it does
// anything.
func TestRefusedValues(t *testing.T) {
	for values, want := range map[string]string{
		"metrics.enabled=false,metrics.serviceMonitor=true":    "serviceMonitor",
		"metrics.enabled=false,metrics.rules=true":             "rules",
		"metrics.enabled=false,metrics.certificateSecret=cert": "certificateSecret",
		"rbac.roles=false,rbac.aggregate=true":                 "aggregate",
		"namespaces={team-a,team-a}":                           "namespaces",
		"namespaces={Team}":                                    "namespaces",
		"replicas=0":                                           "replicas",
		"replicas=two":                                         "replicas",
		"image.tag=":                                           "image",
		"image.digest=latest":                                  "digest",
		"image.repository=":                                    "repository",
		"extraArgs={--namespaces=team-a}":                      "extraArgs",
		"extraArgs={--leader-elect=false}":                     "extraArgs",
		"replicaCount=3":                                       "replicaCount",
		"metrics.serviceMonitors=true":                         "serviceMonitors",
	} {
		_, err := template(t, chart, "--set="+values)
		if err == nil || !strings.Contains(err.Error(), "values don't meet the specifications of the schema") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a refusal that names %s", values, err, want)
		}
	}
}

// TestFiles checks that the chart contains the generated files of config unchanged.
func TestFiles(t *testing.T) {
	for file, from := range map[string]string{
		"crd.yaml":                      "config/crd/bases/apps.rollset.dev_rollsets.yaml",
		"role.yaml":                     "config/rbac/manager/role.yaml",
		"disruption_role.yaml":          "config/rbac/disruption/role.yaml",
		"rollset_admin_role.yaml":       "config/rbac/rollset_admin_role.yaml",
		"rollset_editor_role.yaml":      "config/rbac/rollset_editor_role.yaml",
		"rollset_viewer_role.yaml":      "config/rbac/rollset_viewer_role.yaml",
		"rollset_gate-writer_role.yaml": "config/rbac/rollset_gate-writer_role.yaml",
		"rules.yaml":                    "config/prometheus/rules.yaml",
		"manager_traffic.yaml":          "config/network-policy/manager_traffic.yaml",
	} {
		want, err := os.ReadFile(filepath.Join(root, from))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(chart, "files", file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s is not %s; run make manifests", file, from)
		}
	}
}

// TestLint lints the charts with Helm.
func TestLint(t *testing.T) {
	for _, folder := range []string{chart, root + "/charts/application"} {
		if _, err := run(t, helm4, "lint", "--strict", folder); err != nil {
			t.Error(err)
		}
	}
}

// TestArtifactHub checks that the annotations for Artifact Hub are YAML, and name the existing CRD.
func TestArtifactHub(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := sigsyaml.Unmarshal(raw, &metadata); err != nil {
		t.Fatal(err)
	}
	var crds []struct{ Kind, Version, Name, DisplayName, Description string }
	if err := sigsyaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/crds"]), &crds); err != nil {
		t.Fatal(err)
	}
	if len(crds) != 1 || crds[0].Name != "rollsets.apps.rollset.dev" || crds[0].Kind != "RollSet" || crds[0].Version != "v1beta1" {
		t.Errorf("the CRDs are %v", crds)
	}
	var examples []map[string]any
	if err := sigsyaml.Unmarshal([]byte(metadata.Annotations["artifacthub.io/crdsExamples"]), &examples); err != nil || len(examples) != 1 {
		t.Errorf("the examples are %v: %v", examples, err)
	}
	if raw, err = os.ReadFile(filepath.Join("..", "..", "config", "manifests", "bases", "rollset.clusterserviceversion.yaml")); err != nil {
		t.Fatal(err)
	}
	if claim := metadata.Annotations["artifacthub.io/operatorCapabilities"]; !strings.Contains(string(raw), "capabilities: "+claim+"\n") {
		t.Errorf("the chart claims %s, and the bundle does not", claim)
	}
}
