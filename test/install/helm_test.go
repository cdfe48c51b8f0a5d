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

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
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
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"-C", string(h), "tool", "helm", "--kubeconfig=" + shared.Kubeconfig}, args...)...)
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

// TestHelm goes through the life of a release with Helm 3 and Helm 4.
func TestHelm(t *testing.T) {
	helm3.life(t, "helm-3", func() {}) // it waits for built-in kinds only
	helm4.life(t, "helm-4", func() { waitsForSets(t, "helm-4") })
}

// life goes through the life of a release on a cluster on which kubectl has installed the CRD before, while a set in a
// namespace is in the middle of a rollout. Its pods notice nothing, and outlive the release. end runs at the end, while the
// manager runs.
func (h helm) life(t *testing.T, namespace string, end func()) {
	t.Helper()
	kubectl(t, "", "delete", "crd", "--ignore-not-found", "rollsets.apps.rollset.dev")
	kubectl(t, kustomize(t, "config/crd"), "apply", "-f", "-")
	chart := filepath.Join(shared.root, "charts", "rollset")
	in := []string{"--namespace=rollset-system", "--set=image.repository=registry.example/rollset,image.tag=v1"}
	install := append([]string{"install", "rollset", chart, "--create-namespace", "--wait", "--timeout=2m"}, in...)
	if _, err := h.try(t, install...); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("over what kubectl has installed: %v", err)
	}
	h.must(t, append(install, "--take-ownership")...)
	second := []string{"install", "second-rollset", chart, "--create-namespace", "--namespace=rollset-two"}
	if _, err := h.try(t, second...); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("beside another release: %v", err)
	}
	h.must(t, append(second, "--set=crds.install=false,namespaces={default}")...)
	h.must(t, "uninstall", "second-rollset", "--namespace=rollset-two", "--wait")
	d := deployment(t, objects(t, h.must(t, append([]string{"template", "rollset", chart, "--kube-version=1.37.0"}, in...)...)))
	p, err := tryRun(t, d)
	if err != nil {
		t.Fatal(err)
	}
	ensureNamespace(t, namespace)
	set := inTheMiddle(t, namespace)
	before := ownedBy(t, set)

	h.must(t, append([]string{"upgrade", "rollset", chart, "--wait", "--timeout=2m", "--set=replicas=1,logLevel=1"}, in...)...)
	sameAs(t, "helm upgrade", set, before)
	h.must(t, "rollback", "rollset", "1", "--namespace=rollset-system", "--wait", "--timeout=2m")
	sameAs(t, "helm rollback", set, before)
	if err := p.Stop(); err != nil { // the rights go with the release
		t.Error(err)
	}
	h.must(t, "uninstall", "rollset", "--namespace=rollset-system", "--wait", "--timeout=2m")
	established(t, "rollsets.apps.rollset.dev")
	sameAs(t, "helm uninstall", set, before)

	h.must(t, install...) // the CRD that was left belongs to the release
	if p, err = tryRun(t, d); err != nil {
		t.Fatal(err)
	}
	edit(t, set, func(spec *v1alpha1.RollSetSpec) { spec.UpdateStrategy.RollingUpdate.Partition = nil })
	awaitUpdated(t, set, 4)
	end()
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
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
		set := &v1alpha1.RollSet{}
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
