// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// codec reads requests and writes answers in the format that a client asks for.
type codec struct{ factory serializer.CodecFactory }

func newCodec() (codec, error) {
	scheme := apiserver.NewScheme()
	err := errors.Join(eventsv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme))
	return codec{factory: serializer.NewCodecFactory(scheme)}, err
}

// format is the form of an answer.
type format struct {
	runtime.SerializerInfo

	// metadata reports whether objects are shown by their metadata only.
	metadata bool
}

// formatOf returns the first format that a client accepts and an answer can have. It is JSON if there is none.
func (c codec) formatOf(r *http.Request, version schema.GroupVersion) format {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, params, err := mime.ParseMediaType(accepted)
		as := params["as"]
		if err != nil || media == runtime.ContentTypeProtobuf && isCustom(version) || as != "" && !strings.HasPrefix(as, "PartialObjectMetadata") {
			continue
		}
		if info, ok := runtime.SerializerInfoForMediaType(c.factory.SupportedMediaTypes(), media); ok {
			return format{SerializerInfo: info, metadata: as != ""}
		}
	}
	info, _ := runtime.SerializerInfoForMediaType(c.factory.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return format{SerializerInfo: info}
}

// encode writes an object, or its metadata. The object has its kind.
func (f format) encode(object runtime.Object, w io.Writer) error {
	if f.metadata {
		object = metadataOf(object)
	}
	return f.Serializer.Encode(object, w)
}

// metadataOf returns the metadata of an object or a list. Others, such as a Status, stay as they are.
func metadataOf(object runtime.Object) runtime.Object {
	if accessor, ok := object.(metav1.Object); ok {
		return partial(accessor)
	}
	if !meta.IsListType(object) {
		return object
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	if accessor, err := meta.ListAccessor(object); err == nil {
		list.SetResourceVersion(accessor.GetResourceVersion())
		list.SetContinue(accessor.GetContinue())
	}
	_ = meta.EachListItem(object, func(item runtime.Object) error { // which returns no error
		if accessor, ok := item.(metav1.Object); ok {
			list.Items = append(list.Items, *partial(accessor))
		}
		return nil
	})
	return list
}

func partial(object metav1.Object) *metav1.PartialObjectMetadata {
	p := meta.AsPartialObjectMetadata(object)
	p.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return p
}

// respond answers with an object that has its kind. It returns an error only if nothing was answered.
func (c codec) respond(w http.ResponseWriter, r *http.Request, code int, object runtime.Object) error {
	f := c.formatOf(r, object.GetObjectKind().GroupVersionKind().GroupVersion())
	var encoded bytes.Buffer
	if err := f.encode(object, &encoded); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", f.MediaType)
	w.WriteHeader(code)
	_, _ = w.Write(encoded.Bytes()) // the client has gone
	return nil
}

// isCustom reports whether a kind is that of custom resources. They have no protobuf and no strategic merge patches.
func isCustom(version schema.GroupVersion) bool { return version.Group == v1alpha1.GroupVersion.Group }

// stream begins the answer to a watch. It returns a function that sends an event with an object that has its kind.
func (c codec) stream(w http.ResponseWriter, r *http.Request, of resource) func(kind watch.EventType, object runtime.Object) error {
	f := c.formatOf(r, of.version)
	media := f.MediaType
	if media == runtime.ContentTypeProtobuf {
		media += ";stream=watch"
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(http.StatusOK)
	frames := f.StreamSerializer.NewFrameWriter(w)
	var encoded bytes.Buffer
	return func(kind watch.EventType, object runtime.Object) error {
		encoded.Reset()
		if err := f.encode(object, &encoded); err != nil {
			return err
		}
		event := &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: encoded.Bytes()}}
		return f.StreamSerializer.Encode(event, frames)
	}
}

// decode decodes the body of a request, which must be of one kind.
func (c codec) decode(data []byte, of resource) (client.Object, error) {
	object, kind, err := c.factory.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	known, ok := object.(client.Object)
	if !ok || *kind != of.version.WithKind(string(of.kind)) {
		return nil, fmt.Errorf("the body has a %s", kind)
	}
	known.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // stored objects have none
	return known, nil
}

// show returns a copy of an object with its kind.
func show(object client.Object, of resource) client.Object {
	shown := apiserver.Clone(object)
	shown.GetObjectKind().SetGroupVersionKind(of.version.WithKind(string(of.kind)))
	return shown
}
