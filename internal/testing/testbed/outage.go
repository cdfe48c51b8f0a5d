// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"rollset.dev/rollset/internal/testing/patience"
)

// KillAPIServer ends the API server without warning, as when its machine fails: requests under way get no answer, and
// every watch is cut. Nothing else of the cluster ends. StartAPIServer brings it back.
func (c *Cluster) KillAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == apiServerName })
	if at < 0 {
		return nil
	}
	if err := c.processes[at].kill(); err != nil {
		return err
	}
	c.processes = slices.Delete(c.processes, at, at+1)
	return nil
}

// StartAPIServer starts the API server again, on the same data and at the same address, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience.For(startTimeout))
	defer cancel()
	if err := c.launch(controlPlane{c}.apiServer()); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return c.await(ctx, apiServerName, func() error { return probe(ctx, client) })
}

// restartAfter is how long a component that has ended is left alone.
const restartAfter = time.Second

// supervisor starts components again that have ended.
type supervisor struct{ *Cluster }

// supervise starts components again when they end, as kubelets do with those of a real cluster. Some end on purpose: the
// scheduler does when an outage of the API server has left unknown which node it gave a pod to.
func (c supervisor) supervise(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.supervised = names
	for _, p := range c.processes {
		if slices.Contains(names, p.name) {
			go c.keepRunning(p)
		}
	}
}

// keepRunning supervises one component until the cluster stops, or the component cannot be started.
func (c supervisor) keepRunning(p *process) {
	for p != nil {
		<-p.done
		time.Sleep(restartAfter)
		p = c.startAgain(p)
	}
}

// startAgain starts the successor of a component that has ended; nil means no successor.
func (c supervisor) startAgain(ended *process) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.processes, ended)
	if c.stopped || at < 0 {
		return nil
	}
	p, err := c.run(ended.command)
	if err != nil {
		return nil // a waiting client finds that the component has ended
	}
	c.processes[at] = p
	return p
}
