// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// TestShipped installs the shipped manifests with the tool that users install them with, and reads them through that tool.
// The steps build on one another.
func TestShipped(t *testing.T) {
	kubectl := startKubectl(t)

	// Client-side apply keeps the whole CRD in an annotation, which holds at most 256 KiB. kubectl reads the
	// kustomization, as in "kubectl apply -k config/crd".
	kubectl.must("apply", "-k", filepath.Join(kubectl.root, "config", "crd"))
	crd, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	// kubectl wait would do, but it fails on a CRD that has no conditions yet.
	if err := envtest.WaitForCRDs(kubectl.env.Config, []*apiextensionsv1.CustomResourceDefinition{crd}, envtest.CRDInstallOptions{MaxTime: patience.Long()}); err != nil {
		t.Fatal(err)
	}
	if again := kubectl.must("apply", "-k", filepath.Join(kubectl.root, "config", "crd")); !strings.Contains(again, "unchanged") {
		t.Errorf("applied again, the CRD is not unchanged: %s", again)
	}

	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("apply", func(t *testing.T) {
		kubectl.on(t).contains(kubectl.on(t).must("apply", "-f", file), "rollset.apps.rollset.dev/web created")
		kubectl.on(t).contains(kubectl.on(t).must("apply", "-f", file), "rollset.apps.rollset.dev/web unchanged")
	})
	t.Run("scale", func(t *testing.T) {
		kubectl.on(t).must("scale", "rollset", "web", "--replicas=4")
		kubectl.on(t).contains(kubectl.on(t).must("get", "rls", "web", "-o", "jsonpath={.spec.replicas}"), "4")
	})
	t.Run("get", func(t *testing.T) {
		kubectl.on(t).must("patch", "rls", "web", "--subresource=status", "--type=merge", "-p",
			`{"status":{"replicas":3,"readyReplicas":2,"updatedReplicas":1,"updateRevision":"web-abc","labelSelector":"app=web","images":["nginx:1.27"],
			"conditions":[{"type":"Ready","status":"False","reason":"Waiting","message":"all is said","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		kubectl.on(t).columns([]string{"get", "rls"}, "NAME DESIRED UPDATED READY AVAILABLE TOTAL STATUS AGE", `web 4 1 2 0? ?3 Waiting \d+s`)
		kubectl.on(t).columns([]string{"get", "rls", "-o", "wide"}, "NAME DESIRED UPDATED READY AVAILABLE TOTAL STATUS AGE MESSAGE REVISION IMAGES SELECTOR",
			`web 4 1 2 0? ?3 Waiting \d+s all is said web-abc nginx:1.27 app=web`)
		kubectl.on(t).contains(kubectl.on(t).must("get", "all"), "rollset.apps.rollset.dev/web")
	})
	t.Run("selector of scale", func(t *testing.T) {
		kubectl.on(t).contains(kubectl.on(t).must("get", "rls", "web", "--subresource=scale", "-o", "jsonpath={.status.selector} {.spec.replicas} {.status.replicas}"), "app=web 4 3")
	})
	t.Run("explain", func(t *testing.T) {
		for field, want := range map[string]string{
			"rollset": "RollSet keeps a number of pods running",
			"rollset.spec.updateStrategy.rollingUpdate.partition":           "partition is how many pods stay at the current revision",
			"rollset.spec.template.spec.containers":                         "List of containers belonging to the pod",
			"rollset.spec.volumeClaimTemplates.metadata.name":               "name of the template, and of the pods' volume",
			"rollset.status.conditions":                                     "conditions are Ready, Available, Progressing",
			"rollset.spec.lifecycle.preDelete.labelsHandler":                "labelsHandler are labels that mark a pod as hooked",
			"rollset.spec.updateStrategy.rollingUpdate.priorityStrategy":    "priorityStrategy selects which pods are updated first",
			"rollset.spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "whenDeleted specifies what happens to all claims",
		} {
			text := strings.Join(strings.Fields(kubectl.on(t).must("explain", field)), " ")
			kubectl.on(t).contains(text, want)
		}
	})
}

// kubectl runs the real kubectl against its own control plane.
type kubectl struct {
	t          *testing.T
	env        *envtest.Environment
	binary     string
	kubeconfig string
	root       string
}

func startKubectl(t *testing.T) *kubectl {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := assets.Dir(t)
	env := &envtest.Environment{BinaryAssetsDirectory: dir, ControlPlaneStartTimeout: patience.Long(), ControlPlaneStopTimeout: patience.Long()}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return &kubectl{t: t, env: env, binary: filepath.Join(dir, "kubectl"), kubeconfig: kubeconfig, root: root}
}

// on returns the same kubectl for a part of the test.
func (k *kubectl) on(t *testing.T) *kubectl {
	sub := *k
	sub.t = t
	return &sub
}

// must runs a command that must succeed, and returns its output.
func (k *kubectl) must(args ...string) string {
	k.t.Helper()
	command := exec.Command(k.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "HOME="+k.t.TempDir())
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String()
}

func (k *kubectl) contains(got, want string) {
	k.t.Helper()
	if !strings.Contains(got, want) {
		k.t.Errorf("want %q in:\n%s", want, got)
	}
}

// columns checks the header and the only line of a table, ignoring the space between columns.
func (k *kubectl) columns(args []string, header, line string) {
	k.t.Helper()
	lines := strings.Split(strings.TrimSpace(k.must(args...)), "\n")
	if len(lines) != 2 {
		k.t.Fatalf("want a header and a line, got:\n%s", strings.Join(lines, "\n"))
	}
	if got := strings.Join(strings.Fields(lines[0]), " "); got != header {
		k.t.Errorf("header is %q, want %q", got, header)
	}
	if got := strings.Join(strings.Fields(lines[1]), " "); !regexp.MustCompile("^" + line + "$").MatchString(got) {
		k.t.Errorf("line is %q, want %q", got, line)
	}
}
