// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// bookmarkEvery is how often a watch gets a bookmark, as from a real API server.
const bookmarkEvery = time.Minute

// stream is the answer to a watch.
type stream struct {
	server *Server
	chosen selection
	write  func(kind watch.EventType, object runtime.Object) error
	flush  func() error
	// bookmarks reports whether the client wants them.
	bookmarks bool
	// version is the version up to which everything was sent.
	version int64
}

// watch sends events until the client goes or its time is over.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, to target) error {
	query := r.URL.Query()
	chosen, err := s.selectionOf(query, to)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	st := &stream{
		server: s, chosen: chosen, write: s.codec.stream(w, r, chosen.kind), flush: http.NewResponseController(w).Flush,
		bookmarks: query.Get("allowWatchBookmarks") == "true", version: chosen.from,
	}
	if err := st.begin(query.Get("sendInitialEvents")); err == nil { // the answer has begun: an error ends it
		_ = st.follow(ctx)
	}
	return nil
}

// begin sends the selected objects as new ones and then the bookmark that ends them, if the client asks for initial events. If it
// asks for no version, the bookmark is left out, as it was before there were streaming lists.
func (st *stream) begin(initial string) error {
	switch {
	case initial == "true", initial == "" && st.chosen.from == 0:
	case st.chosen.from == 0:
		st.version = st.server.version()
		return nil
	default:
		return nil
	}
	objects, version := st.server.present(st.chosen)
	for _, object := range objects {
		if err := st.send(watch.Added, object); err != nil {
			return err
		}
	}
	st.version = version
	if initial == "true" && st.bookmarks {
		if err := st.send(watch.Bookmark, st.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})); err != nil {
			return err
		}
	}
	if err := st.flush(); err != nil {
		return err
	}
	st.server.hasListed(st.chosen.kind.kind)
	return nil
}

// follow sends what is written, until the context ends.
func (st *stream) follow(ctx context.Context) error {
	ticker := time.NewTicker(st.server.bookmarks)
	defer ticker.Stop()
	for due := false; ; {
		news, err := st.catchUp()
		if err == nil && due && st.bookmarks {
			err = st.send(watch.Bookmark, st.bookmark(nil))
		}
		if err := errors.Join(err, st.flush()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
			due = false
		case <-ticker.C:
			due = true
		}
	}
}

// catchUp sends what was written. The channel is closed when there is more.
func (st *stream) catchUp() (news <-chan struct{}, err error) {
	events, version, news := st.server.since(st.chosen, st.version)
	for _, e := range events {
		if err := st.send(e.kind, e.object); err != nil {
			return nil, err
		}
	}
	st.version = version
	return news, nil
}

func (st *stream) send(kind watch.EventType, object client.Object) error {
	return st.write(kind, show(object, st.chosen.kind))
}

// bookmark returns an object that shows up to which version everything was sent.
func (st *stream) bookmark(annotations map[string]string) client.Object {
	object := apiserver.New(st.chosen.kind.kind)
	object.SetResourceVersion(strconv.FormatInt(st.version, 10))
	object.SetAnnotations(annotations)
	return object
}

// event is what a watch shows of a write.
type event struct {
	kind   watch.EventType
	object client.Object
}

// since returns the selected events after a version, and the version up to which they are complete. The channel is closed when
// there are more.
func (s *Server) since(chosen selection, version int64) (events []event, newest int64, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.store.Since(chosen.kind.kind, version) {
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
	return events, s.store.Version(), s.news[chosen.kind.kind]
}
