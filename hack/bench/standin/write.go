// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// request is a request for one object.
type request struct {
	target
	apiserver.Write

	method    string
	object    client.Object
	patchType types.PatchType
}

// read reads a request.
func (c codec) read(r *http.Request, to target) (q request, err error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return q, fmt.Errorf("read the body: %w", err)
	}
	q = request{target: to, method: r.Method}
	q.Write = apiserver.Write{Actor: clientActor, Key: to.key(), Subresource: to.subresource, DryRun: r.URL.Query().Has("dryRun")}
	switch r.Method {
	case http.MethodPatch:
		err = q.readPatch(r.Header.Get("Content-Type"), data)
	case http.MethodDelete:
		err = c.readOptions(&q, data)
	case http.MethodPost, http.MethodPut:
		err = c.readObject(&q, data)
	}
	return q, err
}

// readObject reads the object of a create or an update.
func (c codec) readObject(q *request, data []byte) (err error) {
	if q.object, err = c.decode(data, q.kind); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if q.object.GetName() == "" || q.object.GetGenerateName() != "" {
		return apierrors.NewBadRequest("the object has no name, and none is generated here")
	}
	if q.name != "" && q.object.GetName() != q.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object is %s, and that of the path is %s", q.object.GetName(), q.name))
	}
	q.object.SetNamespace(q.namespace)
	return nil
}

// readPatch reads a patch.
func (q *request) readPatch(content string, data []byte) error {
	media, _, err := mime.ParseMediaType(content)
	known := []types.PatchType{types.MergePatchType, types.JSONPatchType}
	if !isCustom(q.kind.version) {
		known = append(known, types.StrategicMergePatchType)
	}
	if q.patchType = types.PatchType(media); err != nil || !slices.Contains(known, q.patchType) {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("patches of type %q are not served for %s", content, q.kind.plural),
		}}
	}
	q.Body = data
	return nil
}

// readOptions reads the options of a delete.
func (c codec) readOptions(q *request, data []byte) error {
	options := &metav1.DeleteOptions{}
	if len(data) > 0 {
		if err := runtime.DecodeInto(c.factory.UniversalDeserializer(), data, options); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	q.DryRun = q.DryRun || len(options.DryRun) > 0
	q.DeleteOptions = client.DeleteOptions{
		GracePeriodSeconds: options.GracePeriodSeconds, PropagationPolicy: options.PropagationPolicy, Preconditions: options.Preconditions,
	}
	return nil
}

// one reads or writes one object.
func (s *Server) one(r *http.Request, to target) (object client.Object, code int, err error) {
	q, err := s.codec.read(r, to)
	if err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.method == http.MethodGet {
		object, err = s.get(to)
		return object, http.StatusOK, err
	}
	if !q.DryRun {
		s.records.writes++
	}
	if object, code, err = s.write(q); err != nil || q.DryRun {
		return object, code, err
	}
	return object, code, s.settle()
}

func (s *Server) get(to target) (client.Object, error) {
	object := s.store.Get(to.key())
	if object == nil {
		return nil, apierrors.NewNotFound(apiserver.GroupResource(to.kind.kind), to.name)
	}
	return object, nil
}

// write writes one object.
func (s *Server) write(q request) (object client.Object, code int, err error) {
	switch q.method {
	case http.MethodPost:
		object, err = s.store.Create(q.Write, q.object)
		return object, http.StatusCreated, err
	case http.MethodPut:
		object, err = s.store.Update(q.Write, q.object)
	case http.MethodPatch:
		object, err = s.store.Patch(q.Write, q.patchType)
	case http.MethodDelete:
		if object, err = s.get(q.target); err == nil {
			err = s.store.Delete(q.Write)
		}
		if left := s.store.Get(q.key()); left != nil {
			object = left
		}
	default:
		err = apierrors.NewMethodNotSupported(apiserver.GroupResource(q.kind.kind), q.method)
	}
	return object, http.StatusOK, err
}

// settle lets the scheduler, the kubelets and the garbage collector react to a write until none of them has anything to do.
func (s *Server) settle() (err error) {
	for err == nil && (len(s.due) > 0 || s.store.HasGarbage()) {
		if len(s.due) == 0 {
			err = s.store.Collect()
			continue
		}
		key := s.due[0]
		s.due = s.due[1:]
		err = s.tend(key)
	}
	return err
}

// acknowledge answers the creation of an object that is kept nowhere. Every right is granted.
func (s *Server) acknowledge(w http.ResponseWriter, r *http.Request, to target) error {
	if r.Method != http.MethodPost {
		return apierrors.NewNotFound(to.kind.version.WithResource(to.kind.plural).GroupResource(), to.name)
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	object, err := s.codec.decode(data, to.kind)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if review, ok := object.(*authorizationv1.SelfSubjectAccessReview); ok {
		review.Status.Allowed = true
	}
	return s.codec.respond(w, r, http.StatusCreated, show(object, to.kind))
}
