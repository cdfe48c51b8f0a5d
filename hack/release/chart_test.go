// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// TestChart packs the chart of this project with a release of another, and lets Helm render the result.
func TestChart(t *testing.T) {
	t.Parallel()
	out := imaged(t, project(t))
	pack := func() {
		t.Helper()
		if err := run(t.Context(), []string{"chart", "-root", "../..", "-out", out, "-version", version, "-to", "example.org/rollset"}); err != nil {
			t.Fatal(err)
		}
	}
	pack()
	path := filepath.Join(out, "rollset-1.2.3.tgz")
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pack()
	if second, err := os.ReadFile(path); err != nil || string(second) != string(first) {
		t.Errorf("packed again, the chart differs: %v", err)
	}
	program := tool(t, "../helm", "helm")
	helm := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, args...)
		command.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir())
		text, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("helm %v: %v\n%s", args, err, text)
		}
		return string(text)
	}
	digest := strings.TrimSpace(files(t, out)["image.digest"])
	if rendered := helm("template", "rollset", path); !strings.Contains(rendered, "image: example.org/rollset:v1.2.3@"+digest+"\n") {
		t.Errorf("the chart does not name the image %s:\n%s", digest, rendered)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	charts := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/charts"
	helm("push", path, charts, "--plain-http")
	pulled := helm("template", "rollset", charts+"/rollset", "--version=1.2.3", "--plain-http")
	if !strings.Contains(pulled, "image: example.org/rollset:v1.2.3@"+digest+"\n") {
		t.Errorf("the chart in the registry does not name the image:\n%s", pulled)
	}
	if shown := helm("show", "chart", path); !strings.Contains(shown, "\nversion: 1.2.3\n") || !strings.Contains(shown, "appVersion: 1.2.3\n") {
		t.Errorf("the chart has another version:\n%s", shown)
	}
}

// TestChartRefused checks what a chart cannot be packed without.
func TestChartRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no version": {[]string{"-to", "example.org/rollset"}, "-version and -to are missing"},
		"no image":   {[]string{"-version", version}, "-version and -to are missing"},
		"no release": {[]string{"-version", version, "-to", "example.org/rollset"}, "image.digest"},
	} {
		err := run(t.Context(), append([]string{"chart", "-root", "../..", "-out", t.TempDir()}, test.args...))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "values.yaml"), []byte("  tag: a\n  tag: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := chartFiles(folder, map[string]map[string]string{"values.yaml": {"  tag": "c"}}); err == nil {
		t.Error("a value that is there twice is replaced")
	}
}
