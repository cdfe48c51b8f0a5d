// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rollset.dev/rollset/internal/testing/patience"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	// leaf is the cgroup of the node's own processes, under cgroup v2: a cgroup that gives controllers to others may have
	// no processes of its own.
	leaf = "supervisor"
	// namedHierarchy precedes the name of a cgroup v1 hierarchy that has no controller, such as systemd's.
	namedHierarchy = "name="
	// emptyTimeout bounds the wait for the processes of a cgroup to be gone.
	emptyTimeout = 10 * time.Second
)

// cgroups are the node's own cgroups as they are seen from outside: one in each hierarchy.
type cgroups []place

// place is a cgroup of the node, and the one in which its supervisor was before.
type place struct{ home, own string }

// isUnified reports whether the machine has cgroup v2 and nothing else.
func isUnified() (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &s); err != nil {
		return false, fmt.Errorf("look at %s: %w", cgroupRoot, err)
	}
	return s.Type == unix.CGROUP2_SUPER_MAGIC, nil
}

// joinCgroups makes cgroups for the node and moves this process there, so that a cgroup namespace made now has them as
// its root.
func joinCgroups(name string) (cgroups, error) {
	unified, err := isUnified()
	if err != nil {
		return nil, err
	}
	all, err := placesOf(name, unified)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		enter := p.enter
		if unified {
			enter = p.enterUnified
		}
		if err := enter(); err != nil {
			return nil, errors.Join(err, all.leave(), all.remove())
		}
	}
	return all, nil
}

// placesOf returns the paths of the node's cgroups, one for each hierarchy.
func placesOf(name string, unified bool) (all cgroups, err error) {
	paths, err := ownCgroups()
	for controllers, path := range paths {
		switch {
		case unified && controllers == "":
			all = append(all, place{home: filepath.Join(cgroupRoot, path), own: filepath.Join(cgroupRoot, name)})
		case !unified && controllers != "":
			mount := filepath.Join(cgroupRoot, strings.TrimPrefix(controllers, namedHierarchy))
			if _, err := os.Stat(mount); err != nil {
				continue // known to the kernel, mounted nowhere
			}
			all = append(all, place{home: filepath.Join(mount, path), own: filepath.Join(mount, path, name)})
		}
	}
	return all, err
}

// ownCgroups returns the cgroups of this process, by the controllers of their hierarchies.
func ownCgroups() (map[string]string, error) {
	// Read as a whole: the lines change while this process moves.
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("read own cgroups: %w", err)
	}
	paths := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			paths[parts[1]] = parts[2]
		}
	}
	return paths, nil
}

// enterUnified does what enter does, under cgroup v2: below the root, which alone may have processes and give controllers
// to others.
func (p place) enterUnified() error {
	if err := enableControllers(filepath.Dir(p.own)); err != nil {
		return fmt.Errorf("%w; under cgroup v2 a node needs the root of the hierarchy: in a container, move all its processes to a leaf", err)
	}
	return p.enter()
}

// enter makes the node's cgroup and moves this process there.
func (p place) enter() error {
	if err := os.MkdirAll(p.own, 0o750); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if err := inheritCPUs(p.own); err != nil {
		return err
	}
	return moveTo(p.own)
}

// inheritCPUs gives a new cgroup of the cpuset hierarchy the CPUs and memory of its parent: it has none by itself.
func inheritCPUs(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another hierarchy, or the root of cgroup v2
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), value, 0o600)
		}
		if err != nil {
			return fmt.Errorf("inherit %s: %w", file, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("let cgroups inherit: %w", err)
	}
	return nil
}

// leave moves this process back to where it was.
func (c cgroups) leave() error {
	var errs []error
	for _, p := range c {
		errs = append(errs, moveTo(p.home))
	}
	return errors.Join(errs...)
}

// remove removes the node's cgroups once their processes are gone.
func (c cgroups) remove() error {
	var errs []error
	for _, p := range c {
		errs = append(errs, removeTree(p.own))
	}
	return errors.Join(errs...)
}

func removeTree(dir string) error {
	var err error
	for deadline := time.Now().Add(patience.For(emptyTimeout)); time.Now().Before(deadline); time.Sleep(pollEvery) {
		var dirs []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // a cgroup that has just gone is none to remove
		})
		if len(dirs) == 0 {
			return nil
		}
		for _, d := range slices.Backward(dirs) {
			err = unix.Rmdir(d)
		}
	}
	return fmt.Errorf("remove cgroup %s: %w", dir, err)
}

func moveTo(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return fmt.Errorf("move to cgroup %s: %w", dir, err)
	}
	return nil
}

// enableControllers gives the children of a cgroup all controllers that it has itself.
func enableControllers(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	path := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	given := strings.Fields(string(enabled))
	for controller := range strings.FieldsSeq(string(available)) {
		if slices.Contains(given, controller) {
			continue
		}
		if err := os.WriteFile(path, []byte("+"+controller), 0o600); err != nil {
			return fmt.Errorf("enable controller %s below %s: %w", controller, dir, err)
		}
	}
	return nil
}

// mountCgroups mounts the hierarchies of cgroup v1 afresh. In the namespace of the node its own cgroups are their roots.
func mountCgroups() error {
	paths, err := ownCgroups()
	if err != nil {
		return err
	}
	if err := mount("tmpfs", cgroupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for controllers := range paths {
		if controllers == "" {
			continue
		}
		options := controllers
		if strings.HasPrefix(options, namedHierarchy) {
			options = "none," + options
		}
		dir := filepath.Join(cgroupRoot, strings.TrimPrefix(controllers, namedHierarchy))
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
		if err := mount("cgroup", dir, "cgroup", 0, options); err != nil {
			return err
		}
	}
	return nil
}

// mountUnified does the same for cgroup v2, and makes room for pods: this process goes to a leaf, so that its cgroup may give
// controllers to others. The process that started this one leaves the cgroup at the same time, and is waited for.
func mountUnified() error {
	if err := mount("cgroup2", cgroupRoot, "cgroup2", 0, ""); err != nil {
		return err
	}
	dir := filepath.Join(cgroupRoot, leaf)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if err := moveTo(dir); err != nil {
		return err
	}
	var err error
	for deadline := time.Now().Add(patience.For(emptyTimeout)); time.Now().Before(deadline); time.Sleep(pollEvery) {
		if err = enableControllers(cgroupRoot); !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return err
}
