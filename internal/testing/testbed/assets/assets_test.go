// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDirHoldsTheControlPlane(t *testing.T) {
	dir := Dir(t)
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if info.Mode()&0o111 == 0 {
			t.Errorf("%s is not executable", name)
		}
	}
}

func TestDirHonoursTheEnvironment(t *testing.T) {
	t.Setenv(Environment, "/somewhere")
	if got := Dir(t); got != "/somewhere" {
		t.Errorf("Dir() = %q, want what %s says", got, Environment)
	}
}

func TestModuleRootOutsideOfAModule(t *testing.T) {
	t.Chdir(t.TempDir())
	if root, err := ModuleRoot(); err == nil {
		t.Errorf("ModuleRoot() = %q, want an error", root)
	}
}
