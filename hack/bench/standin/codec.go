// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// codec reads requests and writes answers in the format that a client asks for.
type codec struct{ factory serializer.CodecFactory }

func newCodec(scheme *runtime.Scheme) codec {
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	return codec{factory: serializer.NewCodecFactory(scheme)}
}

// format is what an answer is encoded as. Metadata answers show of objects only their metadata.
type format struct {
	runtime.SerializerInfo

	metadata bool
}

// formatOf returns the first format that a client accepts and a kind has.
func (c codec) formatOf(r *http.Request, of resource) format {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, params, err := mime.ParseMediaType(accepted)
		if err != nil || media == runtime.ContentTypeProtobuf && of.jsonOnly {
			continue
		}
		if info, ok := runtime.SerializerInfoForMediaType(c.factory.SupportedMediaTypes(), media); ok {
			return format{SerializerInfo: info, metadata: params["as"] != ""}
		}
	}
	info, _ := runtime.SerializerInfoForMediaType(c.factory.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return format{SerializerInfo: info}
}

// encode writes an object, or its metadata.
func (c codec) encode(w io.Writer, f format, of resource, object runtime.Object) error {
	version := of.version
	if accessor, ok := object.(metav1.Object); ok && f.metadata {
		partial := meta.AsPartialObjectMetadata(accessor)
		partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		object, version = partial, metav1.SchemeGroupVersion
	}
	return c.factory.EncoderForVersion(f.Serializer, version).Encode(object, w)
}

// respond answers with an object.
func (c codec) respond(w http.ResponseWriter, r *http.Request, code int, of resource, object runtime.Object) error {
	f := c.formatOf(r, of)
	w.Header().Set("Content-Type", f.MediaType)
	w.WriteHeader(code)
	if err := c.encode(w, f, of, object); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// stream returns what sends the events of a watch.
func (c codec) stream(w http.ResponseWriter, r *http.Request, of resource) func(kind watch.EventType, object runtime.Object) error {
	f := c.formatOf(r, of)
	media := f.MediaType
	if media == runtime.ContentTypeProtobuf {
		media += ";stream=watch"
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(http.StatusOK)
	frames := f.StreamSerializer.NewFrameWriter(w)
	events := c.factory.EncoderForVersion(f.StreamSerializer.Serializer, of.version)
	return func(kind watch.EventType, object runtime.Object) error {
		var encoded strings.Builder
		if err := c.encode(&encoded, f, of, object); err != nil {
			return err
		}
		event := &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: []byte(encoded.String())}}
		return events.Encode(event, frames)
	}
}

// body is what a request brings.
type body struct {
	object    client.Object
	patch     []byte
	patchType types.PatchType
	delete    client.DeleteOptions
}

// read reads the body of a request.
func (c codec) read(r *http.Request, to target) (b body, err error) {
	data, err := io.ReadAll(r.Body)
	if err != nil || len(data) == 0 {
		return b, err
	}
	switch r.Method {
	case http.MethodPatch:
		b.patch, b.patchType = data, types.PatchType(r.Header.Get("Content-Type"))
	case http.MethodDelete:
		options := &metav1.DeleteOptions{}
		if err := runtime.DecodeInto(c.factory.UniversalDeserializer(), data, options); err != nil {
			return b, fmt.Errorf("decode the options: %w", err)
		}
		b.delete = client.DeleteOptions{
			GracePeriodSeconds: options.GracePeriodSeconds, PropagationPolicy: options.PropagationPolicy,
		}
		if p := options.Preconditions; p != nil {
			b.delete.Preconditions = &client.Preconditions{UID: p.UID, ResourceVersion: p.ResourceVersion}
		}
	default:
		object, _, err := c.factory.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return b, fmt.Errorf("decode: %w", err)
		}
		known, ok := object.(client.Object)
		if !ok {
			return b, fmt.Errorf("%T is no object", object)
		}
		known.SetNamespace(to.namespace)
		b.object = known
	}
	return b, nil
}

// show returns an object with its kind, which the API server always names.
func show(object client.Object, of resource) client.Object {
	shown := apiserver.Clone(object)
	shown.GetObjectKind().SetGroupVersionKind(of.version.WithKind(string(of.kind)))
	return shown
}
