// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package assets finds the binaries of the local control plane for tests, building them first if need be.
package assets

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Environment is the variable that names a folder of ready-made binaries; it is the one that envtest itself knows.
const Environment = "KUBEBUILDER_ASSETS"

// Dir returns the folder that holds etcd, kube-apiserver, kubectl and the other binaries of the local control plane. It
// ends the test if there is none and none can be built.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := Find()
	if err != nil {
		t.Fatalf("no control plane binaries: %v", err)
	}
	return dir
}

// Find is Dir for callers that have no testing.TB, such as TestMain.
func Find() (string, error) { return Build(os.Stderr) }

// Build returns the folder that holds some of the binaries, all if none is named, building those that are missing. The
// output of the build goes to out.
func Build(out io.Writer, binaries ...string) (string, error) {
	if dir := os.Getenv(Environment); dir != "" {
		return dir, nil
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	build := exec.Command(filepath.Join(root, "hack", "controlplane", "build.sh"), binaries...)
	build.Stderr = out
	folder, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", build.Path, err)
	}
	return strings.TrimSpace(string(folder)), nil
}

// Tool returns the path of a program that a module file pins, and builds it if need be. The arguments are those of go tool in a
// folder of the project. The search takes the go command a second, so keep the path.
func Tool(folder string, args ...string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	find := exec.Command("go", append([]string{"tool", "-n"}, args...)...)
	find.Dir, find.Stderr = filepath.Join(root, folder), os.Stderr
	out, err := find.Output()
	if err != nil {
		return "", fmt.Errorf("go tool %s: %w", strings.Join(args, " "), err)
	}
	path := strings.TrimSpace(string(out))
	for range 600 { // the go command prints a path that another one may not have written yet
		if _, err = os.Stat(path); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return path, err
}

// ModuleRoot returns the folder of the module that the working directory belongs to: the nearest one upwards with a go.mod.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod in %s or above", start)
		}
	}
}
