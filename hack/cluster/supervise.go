// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
	"rollset.dev/rollset/internal/testing/testbed/realnode"
)

// reportPipe is the file descriptor on which the supervisor reports its progress.
const reportPipe = 3

// settings are the flags of up.
type settings struct {
	nodes int
	audit bool
	real  bool
}

// supervise runs the cluster in the background. It reports through the pipe, and closes it after the last report.
func supervise(st state, s settings) error {
	report := os.NewFile(reportPipe, "report")
	if report == nil {
		return errors.New(usage)
	}
	syscall.CloseOnExec(reportPipe) // the components would keep it open
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serve(ctx, st, s,
		func(line string) { _, _ = fmt.Fprintln(report, line) }, // the process that started this one may have exited
		func() { _ = report.Close() })
}

// serve starts a cluster and keeps it until the context ends.
func serve(ctx context.Context, st state, s settings, progress func(string), ready func()) error {
	release, err := st.acquire()
	if err != nil {
		return err
	}
	defer release()
	begin := time.Now()
	if s.real {
		s.nodes = -1
	}
	// Stop, below, ends the cluster: serve waits for it, and returns its error.
	cluster, err := testbed.Start(context.WithoutCancel(ctx), testbed.Options{
		Dir: st.data(), Nodes: s.nodes, Audit: s.audit, Progress: progress,
	})
	if err != nil {
		return err
	}
	var node *realnode.Node
	err = func() error {
		if s.real {
			progress("starting a real node (building its binaries takes minutes, once)")
			if node, err = realnode.Start(ctx, realnode.Options{
				Dir: filepath.Join(st.data(), "node"), Name: "node-1", Config: cluster.RESTConfig(), Kubeconfig: cluster.Kubeconfig,
			}); err != nil {
				return err
			}
		}
		progress("installing the CRD")
		if err := manager.InstallCRD(ctx, cluster.RESTConfig()); err != nil {
			return err
		}
		if err := os.WriteFile(st.readyFile(), []byte(cluster.BinDir), 0o600); err != nil {
			return fmt.Errorf("write state: %w", err)
		}
		progress(fmt.Sprintf("the cluster is up after %v, logs in %s", time.Since(begin).Round(100*time.Millisecond), filepath.Join(st.data(), "logs")))
		ready()
		<-ctx.Done()
		return nil
	}()
	if node != nil {
		err = errors.Join(err, node.Stop())
	}
	return errors.Join(err, cluster.Stop(), st.clear())
}
