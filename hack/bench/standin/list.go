// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selection is which objects of a kind a client asks for.
type selection struct {
	target

	labels labels.Selector
	// from is the resourceVersion that the answer must have reached. 0 stands for any.
	from int64
}

func (s selection) has(object client.Object) bool {
	return object != nil && (s.namespace == "" || object.GetNamespace() == s.namespace) && s.labels.Matches(labels.Set(object.GetLabels()))
}

// selectionOf returns what a list or a watch asks for.
func (s *Server) selectionOf(query url.Values, to target) (chosen selection, err error) {
	chosen = selection{target: to}
	if to.name != "" || query.Get("fieldSelector") != "" {
		return chosen, apierrors.NewBadRequest("objects are not selected by their fields here")
	}
	if chosen.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return chosen, apierrors.NewBadRequest(err.Error())
	}
	if version := query.Get("resourceVersion"); version != "" {
		if chosen.from, err = strconv.ParseInt(version, 10, 64); err != nil {
			return chosen, apierrors.NewBadRequest("invalid resource version: " + version)
		}
	}
	if current := s.version(); chosen.from > current {
		return chosen, tooLarge(chosen.from, current)
	}
	return chosen, nil
}

// tooLarge returns the refusal of a version that was not written yet.
func tooLarge(asked, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func (s *Server) version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Version()
}

// present returns the selected objects, and the version at which they are complete.
func (s *Server) present(chosen selection) (objects []client.Object, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range s.store.Of(chosen.kind.kind) {
		if chosen.has(object) {
			objects = append(objects, object)
		}
	}
	return objects, s.store.Version()
}

// list answers with all selected objects, or with the first of them.
func (s *Server) list(w http.ResponseWriter, r *http.Request, to target) error {
	query := r.URL.Query()
	chosen, err := s.selectionOf(query, to)
	switch {
	case err != nil:
		return err
	case query.Get("continue") != "":
		return apierrors.NewResourceExpired("the next page is not kept")
	case query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact):
		return apierrors.NewBadRequest("old versions are not listed here")
	}
	objects, version := s.present(chosen)
	next := ""
	// As on the real server, a list from the watch cache has no pages.
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && 0 < limit && limit < len(objects) && query.Get("resourceVersion") == "" {
		objects, next = objects[:limit], "more"
	}
	list, err := listOf(chosen.kind, objects)
	if err != nil {
		return err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion(strconv.FormatInt(version, 10))
	accessor.SetContinue(next)
	if err := s.codec.respond(w, r, http.StatusOK, list); err != nil {
		return err
	}
	if next == "" {
		s.hasListed(to.kind.kind)
	}
	return nil
}

// listOf returns objects as a list of their kind.
func listOf(kind resource, objects []client.Object) (runtime.Object, error) {
	items := make([]runtime.Object, len(objects))
	for i, object := range objects {
		items[i] = object
	}
	list := kind.list()
	list.GetObjectKind().SetGroupVersionKind(kind.version.WithKind(string(kind.kind) + "List"))
	return list, meta.SetList(list, items)
}
