// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"
)

// architectures returns the architectures that the manager is built for.
func architectures() []string { return []string{"amd64", "arm64"} }

// binaryPath returns the path of the binary for an architecture.
func binaryPath(out, arch string) string { return filepath.Join(out, "manager-linux-"+arch) }

// target is a program to build, and its platform.
type target struct {
	// program is the folder of the program, relative to that of the project.
	program  string
	os, arch string
}

// build builds a static binary of a program in a project. Nothing of the folder's name, of the machine or of the time gets
// into it.
func build(ctx context.Context, root string, t target, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w", "-o", path, t.program)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w\n%s", t.program, t.os, t.arch, err, out)
	}
	return nil
}

// buildVersion builds a binary and inspects it. A version that is not empty must be that of the commit.
func (t target) buildVersion(ctx context.Context, root, path, version string) (binary, error) {
	if err := build(ctx, root, t, path); err != nil {
		return binary{}, err
	}
	b, err := inspect(path, t.arch)
	if err != nil || version == "" {
		return b, err
	}
	return b, b.checkVersion(version)
}

// binary is a binary, with its build information.
type binary struct {
	path, arch string
	info       *debug.BuildInfo
}

// inspect reads the build information of a binary. Everything made from the binary uses it, so the version has a single
// source.
func inspect(path, arch string) (binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return binary{}, fmt.Errorf("read what %s says of itself: %w", path, err)
	}
	return binary{path: path, arch: arch, info: info}, nil
}

func (b binary) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func (b binary) version() string  { return b.info.Main.Version }
func (b binary) revision() string { return b.setting("vcs.revision") }

// committed returns when its commit was made: the only time that is the same for all builds of it.
func (b binary) committed() (time.Time, error) {
	at, err := time.Parse(time.RFC3339, b.setting("vcs.time"))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s does not record its commit, build it in a git work tree: %w", b.path, err)
	}
	return at, nil
}

// checkVersion returns why a binary cannot be released under a version.
func (b binary) checkVersion(version string) error {
	switch {
	case b.setting("vcs.modified") != "false":
		return fmt.Errorf("the work tree has changes that are not committed: version %s would not be what its commit says", version)
	case b.version() != version:
		return fmt.Errorf("the commit is version %s, not %s: tag it with git tag %s", b.version(), version, version)
	default:
		return nil
	}
}
