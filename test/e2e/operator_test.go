// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// operator is a manager that can be stopped and started again. All its processes write to one log.
type operator struct {
	environment *environment
	name        string
	args        []string
	log         string
	process     *manager.Process
	// installed is true if the manager is that of the cluster, which is not ours to start or stop.
	installed bool
	// run starts a process that lives until the suite, or the context of newOperator, ends.
	run func(manager.Options) (*manager.Process, error)
}

var errNotOurs = errors.New("the manager is that of the cluster, and not ours to stop")

// newOperator describes a manager; start starts it. The name is that of its log.
func (e *environment) newOperator(ctx context.Context, name string, args ...string) *operator {
	return &operator{
		environment: e, name: name, args: args, log: filepath.Join(e.dir, name+".log"),
		run: func(o manager.Options) (*manager.Process, error) { return manager.Start(ctx, o) },
	}
}

// start starts a process and returns when it reports that it is ready.
func (o *operator) start() (err error) {
	o.process, err = o.run(manager.Options{
		Binary: o.environment.binary, Kubeconfig: o.environment.managerKubeconfig, Log: o.log, Args: o.args,
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", o.name, err)
	}
	return nil
}

// running reports whether its process has not ended.
func (o *operator) running() bool {
	if o.process == nil {
		return o.installed
	}
	select {
	case <-o.process.Done():
		return false
	default:
		return true
	}
}

// kill kills the process without warning, as a power failure does.
func (o *operator) kill() error {
	switch {
	case o.installed:
		return errNotOurs
	case !o.running():
		return nil
	}
	return o.process.Kill()
}

// stop asks the process to exit, and waits for it.
func (o *operator) stop() error {
	switch {
	case o.installed:
		return errNotOurs
	case !o.running():
		return nil
	}
	return o.process.Stop()
}

// ensure starts a process if none runs.
func (o *operator) ensure() error {
	if o.running() {
		return nil
	}
	return o.start()
}

// logged returns what was logged after the first offset bytes, and where the log ends.
func (o *operator) logged(offset int64) (text string, end int64) {
	if o.installed {
		return "the cluster has it", offset
	}
	file, err := os.Open(o.log)
	if err != nil {
		return err.Error(), offset
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return err.Error(), offset
	}
	raw, err := io.ReadAll(file)
	if err != nil {
		return err.Error(), offset
	}
	return string(raw), offset + int64(len(raw))
}
