// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// bookmarkEvery is how often a watch is told how far it has come, as of an API server.
const bookmarkEvery = time.Minute

// selection is which objects of a kind a client asks for.
type selection struct {
	target

	labels labels.Selector
}

func (s selection) has(object client.Object) bool {
	return object != nil && (s.namespace == "" || object.GetNamespace() == s.namespace) && s.labels.Matches(labels.Set(object.GetLabels()))
}

func selectionOf(r *http.Request, to target) (selection, error) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	return selection{target: to, labels: selector}, err
}

// present returns the selected objects, with the version of the newest write and how many writes of the kind there were.
func (s *Server) present(chosen selection) (objects []client.Object, version int64, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range s.store.Objects() {
		if apiserver.KeyOf(object).Kind == chosen.kind.kind && chosen.has(object) {
			objects = append(objects, object)
		}
	}
	for range s.store.History(chosen.kind.kind) {
		writes++
	}
	return objects, s.store.Version(), writes
}

// list answers with all selected objects.
func (s *Server) list(w http.ResponseWriter, r *http.Request, to target) error {
	chosen, err := selectionOf(r, to)
	if err != nil {
		return err
	}
	objects, version, _ := s.present(chosen)
	list := to.kind.list()
	items := make([]runtime.Object, len(objects))
	for i, object := range objects {
		items[i] = object
	}
	if err := meta.SetList(list, items); err != nil {
		return err
	}
	if accessor, err := meta.ListAccessor(list); err == nil {
		accessor.SetResourceVersion(strconv.FormatInt(version, 10))
	}
	return s.codec.respond(w, r, http.StatusOK, to.kind, list)
}

// echo answers with what was sent.
func (s *Server) echo(w http.ResponseWriter, r *http.Request, to target) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusCreated)
	_, err = w.Write(data)
	return err
}

// watch sends events until the client goes or its time is over.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, to target) error {
	chosen, err := selectionOf(r, to)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	_ = s.stream(ctx, w, r, chosen) // the answer has begun: an error ends it
	return nil
}

// stream sends what there is, if the client asks for that, and what is written after it.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, chosen selection) error {
	flusher, _ := w.(http.Flusher)
	send := s.codec.stream(w, r, chosen.kind)
	next := 0
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		objects, version, writes := s.present(chosen)
		for _, object := range objects {
			if err := send(watch.Added, show(object, chosen.kind)); err != nil {
				return err
			}
		}
		if err := send(watch.Bookmark, bookmark(chosen.kind, version, true)); err != nil {
			return err
		}
		next = writes
	} else {
		from, _ := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
		next = s.after(chosen.kind.kind, from)
	}
	bookmarks := time.NewTicker(bookmarkEvery)
	defer bookmarks.Stop()
	for {
		events, version, news := s.since(chosen, &next)
		for _, e := range events {
			if err := send(e.kind, show(e.object, chosen.kind)); err != nil {
				return err
			}
		}
		flusher.Flush()
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-bookmarks.C:
			if err := send(watch.Bookmark, bookmark(chosen.kind, version, false)); err != nil {
				return err
			}
		}
	}
}

// event is what a watch shows of a write.
type event struct {
	kind   watch.EventType
	object client.Object
}

// since returns the events after the first writes of a kind, the version up to which they are complete, and what is closed when
// there are more.
func (s *Server) since(chosen selection, next *int) (events []event, version int64, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.store.Since(chosen.kind.kind, *next) {
		*next++
		was, is := chosen.has(e.Old), chosen.has(e.New)
		switch {
		case is && was:
			events = append(events, event{watch.Modified, e.New})
		case is:
			events = append(events, event{watch.Added, e.New})
		case was:
			gone := apiserver.Clone(e.Old)
			gone.SetResourceVersion(strconv.FormatInt(e.Version, 10))
			events = append(events, event{watch.Deleted, gone})
		}
	}
	return events, s.store.Version(), s.news
}

// after returns how many writes of a kind there were up to a version.
func (s *Server) after(kind apiserver.Kind, version int64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.store.History(kind) {
		if e.Version > version {
			break
		}
		n++
	}
	return n
}

// bookmark returns an object that says how far a watch has come.
func bookmark(of resource, version int64, initial bool) client.Object {
	object := apiserver.New(of.kind)
	object.SetResourceVersion(strconv.FormatInt(version, 10))
	if initial {
		object.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return show(object, of)
}
