// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
)

// helm is the folder of the module of a pinned Helm.
type helm string

const (
	helm3 helm = "hack/helm/v3"
	helm4 helm = "hack/helm"
)

// try runs Helm with all rights.
func (h helm) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := tool(string(h), "helm")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig=" + shared.Kubeconfig}, args...)...)
	cmd.Dir = shared.root
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// must runs Helm and fails the test on an error.
func (h helm) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.try(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// chart is the folder of the chart, below the project's.
const chart = "charts/rollset"

// in is how a release of the chart is named by tests, with the image of a version.
func in(version int) []string {
	return []string{"rollset", filepath.Join(shared.root, chart), "--namespace=rollset-system", fmt.Sprintf("--set=image.repository=registry.example/rollset,image.tag=v%d", version)}
}

// means installs a chart. On a cluster without the CRD, what kubectl has installed is taken over.
func (h helm) means(t *testing.T, _ string) means {
	t.Helper()
	verb := []string{"install", "--create-namespace", "--take-ownership"}
	return means{
		install: func(version int) *appsv1.Deployment {
			h.must(t, append(append(verb, "--wait", "--timeout=2m"), in(version)...)...)
			verb = []string{"upgrade"}
			return installed(t, "rollset-system")
		},
		uninstall: func() {
			h.must(t, "uninstall", "rollset", "--namespace=rollset-system", "--wait", "--timeout=2m")
			verb = []string{"install"} // the CRD that was left belongs to the release
		},
	}
}

// installed returns the Deployment of a namespace, the only one.
func installed(t *testing.T, namespace string) *appsv1.Deployment {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := shared.List(t.Context(), list, client.InNamespace(namespace)); err != nil || len(list.Items) != 1 {
		t.Fatalf("want one Deployment in %s, got %v: %v", namespace, list.Items, err)
	}
	return &list.Items[0]
}

// helms returns the Helms to test. In the short form, Helm 3 is only compared with Helm 4, by hack/helm.
func helms() map[string]helm {
	if testing.Short() {
		return map[string]helm{"helm-4": helm4}
	}
	return map[string]helm{"helm-3": helm3, "helm-4": helm4}
}

// TestHelm installs over what another tool has installed, rolls back, and waits.
func TestHelm(t *testing.T) {
	for name, h := range helms() {
		t.Run(name, func(t *testing.T) {
			kubectl(t, kustomize(t, "config/default"), "delete", "--ignore-not-found", "-f", "-")
			kubectl(t, kustomize(t, "config/crd"), "apply", "-f", "-")
			h.conflicts(t)
			by := h.means(t, "")
			p, err := tryRun(t, by.install(1))
			if err != nil {
				t.Fatal(err)
			}
			ensureNamespace(t, name)
			set := inTheMiddle(t, name)
			before := ownedBy(t, set)
			by.install(2)
			h.must(t, "rollback", "rollset", "1", "--namespace=rollset-system", "--wait", "--timeout=2m")
			sameAs(t, "helm rollback", set, before)
			if h == helm4 { // the one before waits for built-in kinds only
				waitsForSets(t, name)
			}
			if err := p.Stop(); err != nil { // the rights go with the release
				t.Error(err)
			}
			by.uninstall()
			sameAs(t, "helm uninstall", set, before)
		})
	}
}

// conflicts installs over the CRD that kubectl has installed, and beside another release. Version 1 of OLM installs by Helm's library,
// so the commands of its page, which give the CRD away, are good for Helm too.
func (h helm) conflicts(t *testing.T) {
	t.Helper()
	install := append([]string{"install", "--create-namespace"}, in(1)...)
	if _, err := h.try(t, install...); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("over what kubectl has installed: %v", err)
	}
	page, err := os.ReadFile(filepath.Join(shared.root, "docs", "how-to", "olm.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, commands, found := strings.Cut(string(page), "```sh\nkubectl label crd ")
	commands, _, closed := strings.Cut("kubectl label crd "+commands, "```")
	if !found || !closed {
		t.Fatal("docs/how-to/olm.md does not give the CRD away")
	}
	command(t, "kubectl() { "+filepath.Join(shared.BinDir, "kubectl")+" --kubeconfig="+shared.Kubeconfig+" \"$@\"; }\n"+commands, "bash", "-eu")
	h.must(t, install...)
	second := []string{"install", "second-rollset", filepath.Join(shared.root, chart), "--create-namespace", "--namespace=rollset-two"}
	if _, err := h.try(t, second...); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("beside another release: %v", err)
	}
	h.must(t, append(second, "--set=crds.install=false,namespaces={default}")...)
	h.must(t, "uninstall", "second-rollset", "--namespace=rollset-two", "--wait")
	h.must(t, "uninstall", "rollset", "--namespace=rollset-system", "--wait", "--timeout=2m")
}

// waitsForSets lets helm --wait wait for the RollSet of an application: until it is ready, however slow it is, and no longer
// than it takes to see that it never will be.
func waitsForSets(t *testing.T, namespace string) {
	t.Helper()
	install := func(name string, args ...string) error {
		t.Helper()
		_, err := helm4.try(t, append([]string{"install", name, filepath.Join(shared.root, "charts", "application"), "--namespace=" + namespace, "--wait"}, args...)...)
		return err
	}
	for name, image := range map[string]string{"ready": "nginx:1.29", "slow": "nginx:slow"} {
		if err := install(name, "--timeout=2m", "--set=image="+image); err != nil {
			t.Error(err)
		}
		set := &v1beta1.RollSet{}
		if err := shared.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, set); err != nil {
			t.Fatal(err)
		}
		if set.Status.AvailableReplicas != 2 {
			t.Errorf("helm --wait ends while %d of 2 pods of %s are available", set.Status.AvailableReplicas, name)
		}
	}
	begin, limit := time.Now(), patience.Long()
	err := install("stalled", "--timeout="+(2*limit).String(), "--set=image=nginx:broken,progressDeadlineSeconds=3")
	if took := time.Since(begin); err == nil || took > limit {
		t.Errorf("helm --wait for a set that makes no progress: %v after %s", err, took)
	}
	helm4.must(t, "uninstall", "ready", "slow", "stalled", "--namespace="+namespace)
}
