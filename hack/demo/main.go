// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows a RollSet at work, on a local cluster that it starts for that: pods are created, scaled, rolled to a
// new image, rolled to a broken one, and repaired. Every line is one state that the API server has had.
//
// The cluster stays up until Ctrl-C, unless the environment says DEMO=once.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// nodeCount is the number of simulated nodes.
const nodeCount = 5

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrllog.SetLogger(logr.Discard())
	err := run(ctx)
	if interrupted := ctx.Err() != nil && errors.Is(err, context.Canceled); err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	say := func(text string) { fmt.Println("   " + text) }
	fmt.Println("A local cluster for the demo")
	// The demo needs only these two, and the manager. The rest is built in the background.
	folder, err := assets.Build(os.Stderr, "etcd", "kube-apiserver")
	if err != nil {
		return err
	}
	// The cluster outlives the signal: the call below stops it, and waits for it.
	cluster, err := testbed.Start(context.WithoutCancel(ctx), testbed.Options{
		BinDir: folder, Nodes: nodeCount, Progress: say, WithoutScheduler: true, WithoutControllerManager: true,
	})
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	process, err := startManager(ctx, cluster, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()

	c, err := newClient(cluster)
	if err != nil {
		return err
	}
	s, err := newShow(ctx, c)
	if err != nil {
		return err
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	if os.Getenv("DEMO") == "once" {
		return nil
	}
	if err := addControllers(ctx, cluster, say); err != nil {
		return err
	}
	return stay(ctx, cluster, process)
}

// addControllers adds the parts of a cluster that the demo did not need: garbage collection, which deletes the
// pods of a deleted set, and Kubernetes' own workloads.
func addControllers(ctx context.Context, cluster *testbed.Cluster, say func(string)) error {
	fmt.Println("\nMaking it a whole cluster, for kubectl")
	wanted := []string{"kube-controller-manager"}
	if _, err := exec.LookPath("kubectl"); err != nil {
		wanted = append(wanted, "kubectl")
	}
	if _, err := assets.Build(os.Stderr, wanted...); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	say("starting kube-controller-manager")
	if _, err := cluster.StartControllers("*", ""); err != nil {
		return fmt.Errorf("start the controller manager: %w", err)
	}
	return nil
}

// startManager installs the CRD and the manager's role, and runs the manager as a user with that role.
func startManager(ctx context.Context, cluster *testbed.Cluster, say func(string)) (*manager.Process, error) {
	say("building the manager")
	binary, err := manager.Build(ctx, cluster.Dir())
	if err != nil {
		return nil, err
	}
	say("installing the CRD and starting the manager")
	if err := manager.Install(ctx, cluster.RESTConfig()); err != nil {
		return nil, err
	}
	kubeconfig, err := cluster.KubeconfigFor(manager.User)
	if err != nil {
		return nil, fmt.Errorf("make the manager's kubeconfig: %w", err)
	}
	return manager.Start(context.WithoutCancel(ctx), manager.Options{
		Binary: binary, Kubeconfig: kubeconfig, Log: filepath.Join(cluster.Dir(), "logs", "manager.log"),
	})
}

func newClient(cluster *testbed.Cluster) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	c, err := client.NewWithWatch(cluster.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

// stay leaves the cluster to the user until Ctrl-C.
func stay(ctx context.Context, cluster *testbed.Cluster, process *manager.Process) error {
	fmt.Printf(`
The cluster stays up until Ctrl-C. Try it from another terminal:

   export PATH=%s:$PATH
   export KUBECONFIG=%s
   kubectl get rollsets,pods
   kubectl edit rollset web

`, cluster.BinDir, cluster.Kubeconfig)
	select {
	case <-ctx.Done():
		return nil
	case <-process.Done():
		return errors.New("the manager has ended; its log is in " + filepath.Join(cluster.Dir(), "logs"))
	}
}

// deadline bounds one act of the demo.
const deadline = 3 * time.Minute
