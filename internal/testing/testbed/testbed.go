// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed starts a local cluster: a real etcd, API server, controller manager and scheduler as processes on
// this machine, and simulated nodes. It needs no container runtime and no privileges, listens on the loopback address
// only, and leaves nothing behind.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

// startTimeout bounds the start of a cluster on an idle machine, once its binaries are there.
const startTimeout = time.Minute

// Options describe a cluster. The zero value is a complete cluster with three nodes.
type Options struct {
	// Dir is the folder for the cluster's data, logs and credentials. Empty means a temporary one that Stop removes.
	Dir string
	// Nodes is the number of nodes. Zero means 3; less than zero means none.
	Nodes int
	// Model is how the nodes' kubelets behave. Nil means kubelet.Recorded.
	Model *kubelet.Model
	// WithoutScheduler leaves the scheduler out; the nodes then bind pods themselves.
	WithoutScheduler bool
	// WithoutControllerManager leaves the controller manager out: no garbage collection, no service accounts, no
	// built-in workloads.
	WithoutControllerManager bool
	// Controllers is the value of the controller manager's flag --controllers. Empty means the default.
	Controllers string
	// Audit has the API server write every request, with user and verb, to the file Cluster.AuditLog.
	Audit bool
	// AuditWrites is a user whose writes are in the audit log with what was sent and answered.
	AuditWrites string
	// Progress, if not nil, receives a few words on what is being started.
	Progress func(string)
}

// Cluster is a running cluster.
type Cluster struct {
	// BinDir is the folder of the binaries, kubectl among them.
	BinDir string
	// Kubeconfig is the path of a kubeconfig file with all rights.
	Kubeconfig string
	// AuditLog is the path of the API server's audit log, if there is one.
	AuditLog string
	// Nodes are the simulated nodes; nil if there are none.
	Nodes *nodes.Fleet

	components
	dir       string
	ownsDir   bool
	options   Options
	authority *authority
	ports     ports
	admin     *rest.Config
	stopNodes context.CancelFunc
	stopOnce  sync.Once
	stopErr   error
}

// Start starts a cluster and returns when pods can be created in it. The cluster runs until Stop is called or ctx ends.
// If it cannot be started, the parts that were started are stopped again.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c, err := prepare(options)
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	supervisor{c}.supervise(controllerManagerName, schedulerName)
	context.AfterFunc(ctx, func() { _ = c.Stop() })
	return c, nil
}

// prepare finds the binaries and makes folders, ports and credentials.
func prepare(options Options) (*Cluster, error) {
	c := &Cluster{dir: options.Dir, options: options, stopNodes: func() {}}
	if c.options.Progress == nil {
		c.options.Progress = func(string) {}
	}
	var err error
	if c.BinDir, err = assets.Find(); err != nil {
		return nil, fmt.Errorf("find binaries: %w", err)
	}
	if c.dir == "" {
		c.ownsDir = true
		if c.dir, err = os.MkdirTemp("", "rollset-cluster-"); err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
	} else if err = os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	if err = c.prepareFiles(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) prepareFiles() (err error) {
	if err = FindPorts(&c.ports.etcd, &c.ports.etcdPeer, &c.ports.apiServer, &c.ports.scheduler); err != nil {
		return err
	}
	if c.authority, err = newAuthority(c.dir); err != nil {
		return err
	}
	if c.Kubeconfig, err = c.KubeconfigFor("admin", groupMasters); err != nil {
		return err
	}
	if c.admin, err = c.RESTConfigFor("admin", groupMasters); err != nil {
		return err
	}
	if c.options.Audit {
		c.AuditLog = filepath.Join(c.dir, "audit.log")
	}
	return controlPlane{c}.writeComponentFiles()
}

// start runs the components, each as soon as those that it needs are there.
func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience.For(startTimeout))
	defer cancel()
	c.options.Progress("starting etcd and kube-apiserver")
	if err := c.launch(controlPlane{c}.etcd(), controlPlane{c}.apiServer()); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := c.await(ctx, apiServerName, func() error { return probe(ctx, client) }); err != nil {
		return err
	}
	if !c.options.WithoutControllerManager {
		c.options.Progress("starting kube-controller-manager")
		if err := c.launch(controlPlane{c}.controllerManager()); err != nil {
			return err
		}
	}
	if !c.options.WithoutScheduler {
		c.options.Progress("starting kube-scheduler")
		if err := c.launch(controlPlane{c}.scheduler()); err != nil {
			return err
		}
	}
	if err := c.startNodes(ctx); err != nil {
		return err
	}
	return c.awaitComponents(ctx, client)
}

func (c *Cluster) startNodes(ctx context.Context) error {
	if c.options.Nodes < 0 {
		return nil
	}
	c.options.Progress("starting simulated nodes")
	model := kubelet.Recorded()
	if c.options.Model != nil {
		model = *c.options.Model
	}
	log, err := os.Create(c.logFile("nodes"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	// The nodes outlive the start, whose context has a deadline.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stopNodes = stop
	context.AfterFunc(running, func() { _ = log.Close() })
	running = logr.NewContext(running, logr.FromSlogHandler(slog.NewTextHandler(log, nil)))
	c.Nodes, err = nodes.Start(running, c.admin, nodes.Options{
		Count: c.options.Nodes, Model: model, Bind: c.options.WithoutScheduler, Claims: true,
	})
	if err != nil {
		return fmt.Errorf("start nodes: %w", err)
	}
	return nil
}

// awaitComponents waits until a first pod can run: its service account exists, and the scheduler has started.
func (c *Cluster) awaitComponents(ctx context.Context, client kubernetes.Interface) error {
	if !c.options.WithoutControllerManager {
		err := c.await(ctx, "default service account", func() error {
			_, err := client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	if c.options.WithoutScheduler {
		return nil
	}
	return c.await(ctx, "kube-scheduler", func() error {
		_, err := getLocal(ctx, c.authority, c.ports.scheduler, "/readyz")
		return err
	})
}

// RESTConfig is for clients with all rights and no limit of requests.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Dir returns the folder of the cluster's data; the components' logs are in its folder logs.
func (c *Cluster) Dir() string { return c.dir }

// Stop ends the cluster: when it returns, no process is left, nor any file that Start made in a temporary folder.
// Calling it again does nothing.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		c.stopNodes()
		if c.Nodes != nil {
			c.Nodes.Wait()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopped = true
		// The API server goes before what it writes to.
		for _, p := range slices.Backward(c.processes) {
			c.stopErr = errors.Join(c.stopErr, p.kill())
		}
		if c.ownsDir {
			c.stopErr = errors.Join(c.stopErr, os.RemoveAll(c.dir))
		}
	})
	return c.stopErr
}
