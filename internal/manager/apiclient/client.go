// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiclient makes the client that a manager writes with.
package apiclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// accepted is the accepted content of an answer: the metadata of the written pod, as protobuf if available.
const accepted = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// New returns the client of a manager: controller-runtime's, except for writes of pods. The API server answers those with
// the whole pod, and decoding it is a large part of the cost of a write. controller-runtime even converts the answer of a
// delete to JSON and decodes it again. So this client asks for the metadata only, and after a write the rest of a pod is as
// it was sent. A create that is a dry run is answered in full.
//
// DryRun, FieldOwner and FieldValidation in the options do not apply to pods, but those of a single write do.
func New(config *rest.Config, options client.Options) (client.Client, error) {
	usual, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil { // as in the usual client
		config.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{})
	}
	core, err := typedcorev1.NewForConfigAndClient(config, options.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("make a client of pods: %w", err)
	}
	return podWriter{Client: usual, core: core.RESTClient()}, nil
}

// podWriter writes pods and reads only the metadata of the answer, unless it is an error.
type podWriter struct {
	client.Client

	core rest.Interface
}

// Create implements client.Writer.
func (t podWriter) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	pod, ok := object.(*corev1.Pod)
	if !ok || len(options.DryRun) > 0 { // a dry run is made for its answer
		return t.Client.Create(ctx, object, opts...)
	}
	request := t.core.Post().Namespace(pod.Namespace).Resource("pods").Body(pod)
	return write(ctx, request, options.AsCreateOptions(), pod)
}

// Patch implements client.Writer.
func (t podWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return t.Client.Patch(ctx, object, patch, opts...)
	}
	var options client.PatchOptions
	options.ApplyOptions(opts)
	return t.patch(ctx, pod, patch, options.AsPatchOptions())
}

// Delete implements client.Writer.
func (t podWriter) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return t.Client.Delete(ctx, object, opts...)
	}
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	return t.core.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SetHeader("Accept", accepted).Body(options.AsDeleteOptions()).Do(ctx).Error()
}

// SubResource implements client.SubResourceClientConstructor.
func (t podWriter) SubResource(name string) client.SubResourceClient {
	return podSubResourceWriter{SubResourceClient: t.Client.SubResource(name), podWriter: t, name: name}
}

// podSubResourceWriter patches subresources of pods as podWriter does.
type podSubResourceWriter struct {
	client.SubResourceClient

	podWriter podWriter
	name      string
}

// Patch implements client.SubResourceWriter.
func (s podSubResourceWriter) Patch(
	ctx context.Context, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	var options client.SubResourcePatchOptions
	options.ApplyOptions(opts)
	pod, ok := object.(*corev1.Pod)
	if !ok || options.SubResourceBody != nil {
		return s.SubResourceClient.Patch(ctx, object, patch, opts...)
	}
	return s.podWriter.patch(ctx, pod, patch, options.AsPatchOptions(), s.name)
}

func (t podWriter) patch(
	ctx context.Context, pod *corev1.Pod, patch client.Patch, options *metav1.PatchOptions, subresource ...string,
) error {
	data, err := patch.Data(pod)
	if err != nil {
		return fmt.Errorf("patch pod %s: %w", pod.Name, err)
	}
	request := t.core.Patch(patch.Type()).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource(subresource...)
	return write(ctx, request.Body(data), options, pod)
}

// write sends a request and sets the pod's metadata from the answer.
func write(ctx context.Context, request *rest.Request, options runtime.Object, pod *corev1.Pod) error {
	var answer metav1.PartialObjectMetadata
	err := request.VersionedParams(options, clientgoscheme.ParameterCodec).SetHeader("Accept", accepted).Do(ctx).Into(&answer)
	if err == nil {
		pod.ObjectMeta = answer.ObjectMeta
	}
	return err
}
