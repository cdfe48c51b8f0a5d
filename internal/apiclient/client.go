// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiclient makes the client by which a manager writes.
package apiclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// New makes the client of a manager: controller-runtime's, but for deletes of pods. That one decodes the pod which the
// API server answers with, and takes it to JSON and back; it is half of what a delete costs, and nobody looks at it.
func New(config *rest.Config, options client.Options) (client.Client, error) {
	usual, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	pods, err := typedcorev1.NewForConfigAndClient(config, options.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("make a client of pods: %w", err)
	}
	return terse{Client: usual, pods: pods}, nil
}

// terse deletes pods without looking at what the API server answers, unless it is an error.
type terse struct {
	client.Client

	pods typedcorev1.PodsGetter
}

// Delete implements client.Writer.
func (t terse) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return t.Client.Delete(ctx, object, opts...)
	}
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	return t.pods.Pods(pod.Namespace).Delete(ctx, pod.Name, *options.AsDeleteOptions())
}
