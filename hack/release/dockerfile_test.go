// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

var root = filepath.Join("..", "..")

// TestDockerfile plays the Dockerfile without a container engine: it copies what a COPY would copy into a folder of its own, and
// runs each RUN there. The program that comes out is the one of the image of a release.
func TestDockerfile(t *testing.T) {
	work, program := t.TempDir(), filepath.Join(t.TempDir(), "manager")
	var final []string
	for _, line := range instructions(t) {
		verb, rest, _ := strings.Cut(line, " ")
		switch {
		case verb == "FROM":
			final = nil
			if rest != "scratch" && !strings.Contains(rest, "@sha256:") {
				t.Errorf("%s: the image has no digest, so it may be another one tomorrow", line)
			}
		case verb == "COPY" && !strings.HasPrefix(rest, "--from="):
			paths := strings.Fields(rest)
			copyContext(t, work, paths[:len(paths)-1])
		case verb == "RUN":
			run := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(rest, "-o /manager ", "-o "+program+" ", 1))
			run.Dir = work
			run.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "TARGETARCH="+runtime.GOARCH)
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		}
		final = append(final, line)
	}
	want := []string{"FROM scratch", "COPY --from=build /manager /manager", "USER 65532:65532", `ENTRYPOINT ["/manager"]`}
	if diff := cmp.Diff(want, final); diff != "" {
		t.Errorf("not the image of a release (-want +got):\n%s", diff)
	}

	released := filepath.Join(t.TempDir(), "manager")
	if err := build(t.Context(), root, target{".", "linux", runtime.GOARCH}, released); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(built(t, released), built(t, program)); diff != "" {
		t.Errorf("not the program of a release (-release +Dockerfile):\n%s", diff)
	}
}

// instructions returns the lines of the Dockerfile, joined and without comments.
func instructions(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(text), "")
	plain = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(plain, "")
	var lines []string
	for line := range strings.Lines(plain) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// copyContext copies the files at paths of the project that .dockerignore lets through. The path . stands for all.
func copyContext(t *testing.T, to string, paths []string) {
	t.Helper()
	file, err := os.Open(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	project := os.DirFS(root)
	for _, path := range paths {
		err := fs.WalkDir(project, filepath.Clean(path), func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if name == ".git" {
					return fs.SkipDir
				}
				return nil
			}
			if skip, err := ignored.MatchesOrParentMatches(name); err != nil || skip {
				return err
			}
			content, err := fs.ReadFile(project, name)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o750); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, name), content, 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// built returns how a program was built, without its commit.
func built(t *testing.T, program string) map[string]string {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	how := map[string]string{"path": info.Path, "go": info.GoVersion}
	for _, dependency := range info.Deps {
		how[dependency.Path] = dependency.Version + " " + dependency.Sum
	}
	for _, s := range info.Settings {
		if !strings.HasPrefix(s.Key, "vcs") {
			how[s.Key] = s.Value
		}
	}
	return how
}
