// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// Controllers is a controller manager beside the cluster's own, with a few controllers in it.
type Controllers struct {
	cluster *Cluster
	process *process
	port    int
}

// StartControllers starts a controller manager that runs the named controllers and nothing else, without a limit of
// requests. Its metrics show when it has started.
func (c *Cluster) StartControllers(names string) (*Controllers, error) {
	p := &Controllers{cluster: c}
	if err := FindPorts(&p.port); err != nil {
		return nil, err
	}
	args := append(controlPlane{c}.controllerManagerArgs(),
		"--controllers="+names, "--kube-api-qps=1e6", "--kube-api-burst=1000000",
		"--bind-address="+loopback, fmt.Sprintf("--secure-port=%d", p.port),
		"--tls-cert-file="+c.authority.serverCertFile, "--tls-private-key-file="+c.authority.serverKeyFile,
		"--authorization-always-allow-paths=/metrics",
	)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, errStopped
	}
	process, err := c.run(command{name: controllerManagerName, args: args})
	if err != nil {
		return nil, err
	}
	p.process = process
	c.processes = append(c.processes, process)
	return p, nil
}

// PID returns the process id.
func (p *Controllers) PID() int { return p.process.pid }

// Done is closed when the process has ended.
func (p *Controllers) Done() <-chan struct{} { return p.process.done }

// Stop ends the process.
func (p *Controllers) Stop() error {
	c := p.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = slices.DeleteFunc(c.processes, func(q *process) bool { return q == p.process })
	return p.process.kill()
}

// Metrics returns the metrics as the process serves them.
func (p *Controllers) Metrics(ctx context.Context) ([]byte, error) {
	return getLocal(ctx, p.cluster.authority, p.port, "/metrics")
}

// PIDs returns the process ids of all components that run, and of this process, which simulates the nodes.
func (c *Cluster) PIDs() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := []int{os.Getpid()}
	for _, p := range c.processes {
		pids = append(pids, p.pid)
	}
	return pids
}
