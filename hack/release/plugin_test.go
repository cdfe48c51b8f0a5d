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
	validate := exec.CommandContext(t.Context(), tool(t, ".", "validate-krew-manifest"), "-manifest", manifest, "-skip-install")
	if text, err := validate.CombinedOutput(); err != nil || !strings.Contains(string(text), "structural validation OK") {
		t.Errorf("the validator says %v\n%s", err, text)
	}
	krew := tool(t, ".", "krew")
	for _, platform := range plugins() {
		root := t.TempDir()
		install := exec.CommandContext(t.Context(), krew, "install", "--manifest", manifest, "--archive", filepath.Join(out, platform.archive()))
		install.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_OS="+platform.os, "KREW_ARCH="+platform.arch, "KREW_NO_UPGRADE_CHECK=1")
		if text, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%s/%s: %v\n%s", platform.os, platform.arch, err, text)
		}
		for _, name := range []string{platform.file(), licenseName} {
			if _, err := os.Stat(filepath.Join(root, "store", "rollset", version, name)); err != nil {
				t.Errorf("%s/%s: krew did not install %s: %v", platform.os, platform.arch, name, err)
			}
		}
	}
}
