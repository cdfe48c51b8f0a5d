// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	manifest := kustomize(t, "config/default")
	apply(t, manifest)
	run(t, deployment(t, objects(t, manifest)))

	specs := exec.CommandContext(t.Context(), binary, "-installed", "-ginkgo.no-color",
		"-ginkgo.focus=creates as many pods|hand over at once|include kubectl: apply")
	specs.Dir = dir
	specs.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig, "PATH="+shared.BinDir+":"+os.Getenv("PATH"))
	out, err := specs.CombinedOutput()
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
