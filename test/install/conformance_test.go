// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// TestConformanceBinary builds the binary, and runs some of its specs from another folder against a manager that it did not install.
func TestConformanceBinary(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "conformance")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", binary, "./test/e2e")
	build.Dir = shared.root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	own, err := testbed.Start(t.Context(), testbed.Options{}) // other tests want to install the CRD themselves
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := manager.Install(t.Context(), own.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := own.KubeconfigFor(manager.User)
	if err != nil {
		t.Fatal(err)
	}
	p, err := manager.Start(t.Context(), manager.Options{Binary: shared.binary, Kubeconfig: kubeconfig, Log: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})

	run := exec.CommandContext(t.Context(), binary, "-installed", "-ginkgo.no-color",
		"-ginkgo.focus=creates as many pods|hand over at once|include kubectl: apply")
	run.Dir = dir
	run.Env = append(os.Environ(), "KUBECONFIG="+own.Kubeconfig, "PATH="+own.BinDir+":"+os.Getenv("PATH"))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, report, _ := strings.Cut(string(out), "conformance of RollSet\n")
	for _, want := range []string{
		"Scaling creates as many pods as wanted, and says so",
		"the manager of the cluster is not ours to stop",
		"the project's files are not here",
		"1 passed, 0 failed, 2 skipped",
		"left behind  nothing",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}

	alone := exec.CommandContext(t.Context(), binary, "-installed")
	alone.Dir, alone.Env = dir, []string{"PATH=" + os.Getenv("PATH")}
	if out, err := alone.CombinedOutput(); err == nil || !strings.Contains(string(out), "-installed needs the cluster of KUBECONFIG") {
		t.Errorf("without KUBECONFIG: %v\n%s", err, out)
	}
}
