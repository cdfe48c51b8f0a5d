// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

// runcName is the name under which the supervisor acts as runc, and realRuncName that of the real one beside it.
const (
	runcName     = "runc"
	realRuncName = "runc.real"
)

// linkRunc puts both names into a folder of the node, and returns the path for containerd.
func linkRunc(node setup.Node) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	dir := filepath.Join(node.Dir, "runtime")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	for name, target := range map[string]string{runcName: self, realRuncName: filepath.Join(node.BinDir, runcName)} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("link runc: %w", err)
		}
	}
	return filepath.Join(dir, runcName), nil
}

// becomeRunc runs each time that containerd's shim starts runc.
func becomeRunc(args []string) error {
	if at := slices.Index(args, "--bundle"); at >= 0 && at+1 < len(args) {
		if err := dropSeccomp(filepath.Join(args[at+1], "config.json")); err != nil {
			return err
		}
	}
	path := filepath.Join(filepath.Dir(args[0]), realRuncName)
	if err := syscall.Exec(path, append([]string{path}, args[1:]...), os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// dropSeccomp takes the seccomp profile out of a container's configuration. All else stays as it is written there.
func dropSeccomp(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read container configuration: %w", err)
	}
	var config, linux map[string]json.RawMessage
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	if err := json.Unmarshal(config["linux"], &linux); err != nil {
		return fmt.Errorf("decode linux of %s: %w", path, err)
	}
	delete(linux, "seccomp")
	if config["linux"], err = json.Marshal(linux); err != nil {
		return fmt.Errorf("encode linux of %s: %w", path, err)
	}
	if raw, err = json.Marshal(config); err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return fmt.Errorf("write container configuration: %w", err)
	}
	return nil
}
