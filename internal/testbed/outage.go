// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/kubernetes"
)

const apiServerName = "kube-apiserver"

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
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.launch(c.apiServer()); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return c.await(ctx, apiServerName, func() error { return probe(ctx, client, "/readyz") })
}
