// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkKrew checks the manifest of the plugin with krew's own validator, and lets krew install each archive.
func checkKrew(t *testing.T, out string) {
	t.Helper()
	manifest := filepath.Join(out, krewManifest)
	tool := func(env []string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "go", append([]string{"tool"}, args...)...)
		command.Env = append(os.Environ(), env...)
		text, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, text)
		}
		return string(text)
	}
	if text := tool(nil, "validate-krew-manifest", "-manifest", manifest, "-skip-install"); !strings.Contains(text, "structural validation OK") {
		t.Errorf("the validator says\n%s", text)
	}
	for _, platform := range plugins() {
		root := t.TempDir()
		env := []string{"KREW_ROOT=" + root, "KREW_OS=" + platform.os, "KREW_ARCH=" + platform.arch, "KREW_NO_UPGRADE_CHECK=1"}
		tool(env, "krew", "install", "--manifest", manifest, "--archive", filepath.Join(out, platform.archive()))
		for _, name := range []string{platform.file(), licenseName} {
			if _, err := os.Stat(filepath.Join(root, "store", "rollset", version, name)); err != nil {
				t.Errorf("%s/%s: krew did not install %s: %v", platform.os, platform.arch, name, err)
			}
		}
	}
}
