// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// faults are injected failures, by namespace, and the manager's requests.
type faults struct {
	mu sync.Mutex
	// lags is how long the cache takes to show an event of a pod.
	lags map[string]time.Duration
	// requests counts by namespace and verb.
	requests map[string]map[string]int
}

func (f *faults) setLag(namespace string, lag time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lags == nil {
		f.lags = map[string]time.Duration{}
	}
	f.lags[namespace] = lag
}

func (f *faults) count(namespace, verb string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests == nil {
		f.requests = map[string]map[string]int{}
	}
	if f.requests[namespace] == nil {
		f.requests[namespace] = map[string]int{}
	}
	f.requests[namespace][verb]++
}

func (f *faults) counts(namespace string) map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.requests[namespace])
}

// lag is a transform of the cache: what is slow in it keeps the cache from seeing the event and all after it.
func (f *faults) lag(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		f.mu.Lock()
		lag := f.lags[pod.Namespace]
		f.mu.Unlock()
		if lag > 0 {
			time.Sleep(lag)
		}
	}
	return object, nil
}

// faultyClient is the manager's client.
type faultyClient struct {
	client.Client

	faults *faults
}

// Create counts the creates of pods. A preflight creates nothing.
func (c *faultyClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if pod, ok := object.(*corev1.Pod); ok && len((&client.CreateOptions{}).ApplyOptions(options).DryRun) == 0 {
		c.faults.count(pod.Namespace, "create")
	}
	return c.Client.Create(ctx, object, options...)
}

func (c *faultyClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if pod, ok := object.(*corev1.Pod); ok {
		c.faults.count(pod.Namespace, "delete")
	}
	return c.Client.Delete(ctx, object, options...)
}

// Patch counts the patches of pods that the API server accepted.
func (c *faultyClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := c.Client.Patch(ctx, object, patch, options...)
	if _, ok := object.(*corev1.Pod); ok && err == nil {
		c.faults.count(object.GetNamespace(), "patch")
	}
	return err
}

func (c *faultyClient) SubResource(name string) client.SubResourceClient {
	return &countingSubresource{SubResourceClient: c.Client.SubResource(name), name: name, faults: c.faults}
}

// countingSubresource counts the patches of subresources of pods that the API server accepted.
type countingSubresource struct {
	client.SubResourceClient

	name   string
	faults *faults
}

func (s *countingSubresource) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	err := s.SubResourceClient.Patch(ctx, object, patch, options...)
	if err == nil {
		s.faults.count(object.GetNamespace(), "patch "+s.name)
	}
	return err
}

func (c *faultyClient) Status() client.SubResourceWriter {
	return &countingStatus{SubResourceWriter: c.Client.Status(), faults: c.faults}
}

// countingStatus counts writes of statuses.
type countingStatus struct {
	client.SubResourceWriter

	faults *faults
}

func (s *countingStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	s.faults.count(object.GetNamespace(), "status")
	return s.SubResourceWriter.Patch(ctx, object, patch, options...)
}

// countingReader counts reads past the cache.
type countingReader struct {
	client.Reader

	faults *faults
}

func (r *countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	r.faults.count(key.Namespace, "get")
	return r.Reader.Get(ctx, key, object, options...)
}
