// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package standin serves the simulator's API server over HTTP/2, so that a manager can be measured with more pods than a
// machine can run a cluster for. There is no database and no authorization. Each pod is bound, and its kubelet reports it ready,
// before the request that creates it is answered. The nodes themselves are no objects.
//
// The rule: what a client may rely on holds. Each write has its resourceVersion, a watch shows every write after the version
// that it begins at, in their order, and a bookmark promises nothing that was not sent. Streaming lists, JSON and protobuf are
// there. What is not served is refused: field selectors, old versions in lists, tables, server-side apply, and any page of a
// list but the first.
package standin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Server is the API server.
type Server struct {
	url         string
	certificate []byte
	http        *http.Server
	codec       codec
	routes      map[route]resource
	// bookmarks is how often a watch gets a bookmark.
	bookmarks time.Duration

	mu    sync.Mutex // guards all below
	store *apiserver.Store
	// news holds a channel for each kind. It is closed, and replaced, at each write.
	news map[apiserver.Kind]chan struct{}
	// bound counts the pods that were bound.
	bound int
	// due are pods that their kubelets have to look at.
	due     []apiserver.Key
	records records
}

// records are what the server remembers of its clients for a measurement.
type records struct {
	// writes counts the requests to write an object. Events are left out.
	writes int
	// ready counts the sets that are ready.
	ready int
	// listed has the time at which a client last had a whole list of a kind.
	listed map[apiserver.Kind]time.Time
	// created is the time at which the first pod was created.
	created time.Time
}

// Start serves until Stop is called.
func Start(ctx context.Context) (*Server, error) {
	s := &Server{
		store: apiserver.NewStore(time.Now), routes: routes(), bookmarks: bookmarkEvery, news: map[apiserver.Kind]chan struct{}{},
		records: records{listed: map[apiserver.Kind]time.Time{}},
	}
	for _, kind := range apiserver.Kinds() {
		s.news[kind] = make(chan struct{})
	}
	s.store.OnWrite(s.note)
	s.store.Admission = append(s.store.Admission, admission())
	var err error
	if s.codec, err = newCodec(); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.url, s.certificate = "https://"+listener.Addr().String(), certificate
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
	}
	go func() { _ = s.http.ServeTLS(listener, "", "") }() // it ends with Stop
	return s, nil
}

// Stop ends all connections.
func (s *Server) Stop() error { return s.http.Close() }

// RESTConfig returns the configuration of a client without a limit of requests.
func (s *Server) RESTConfig() *rest.Config {
	return &rest.Config{Host: s.url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.certificate}}
}

// Load stores objects as they are, with their UIDs and status.
func (s *Server) Load(objects ...client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.Load(objects...)
}

// Writes returns how many requests so far were to write an object. Events are left out.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records.writes
}

// ReadySets returns how many sets are ready in their newest generation.
func (s *Server) ReadySets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records.ready
}

// Listed returns when a client last had a whole list of a kind. It is the zero time if none had since Forget.
func (s *Server) Listed(kind apiserver.Kind) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records.listed[kind]
}

// FirstCreated returns when the first pod was created since Forget. It is the zero time if none was.
func (s *Server) FirstCreated() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records.created
}

// Forget forgets what Listed and FirstCreated return.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.records.listed)
	s.records.created = time.Time{}
}

// hasListed records that a client has a whole list.
func (s *Server) hasListed(kind apiserver.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records.listed[kind] = time.Now()
}

// note wakes what waits for a write: the watches of its kind, and the kubelet of a pod.
func (s *Server) note(e *apiserver.Entry) {
	if e.Key.Kind == apiserver.Pods && (e.Actor == clientActor || e.Actor == apiserver.GCActor) {
		s.due = append(s.due, e.Key)
		if e.Old == nil && s.records.created.IsZero() {
			s.records.created = time.Now()
		}
	}
	close(s.news[e.Key.Kind])
	s.news[e.Key.Kind] = make(chan struct{})
	if isReady(e.Old) {
		s.records.ready--
	}
	if isReady(e.New) {
		s.records.ready++
	}
}

// isReady reports whether an object is a set that is ready in its newest generation.
func isReady(object client.Object) bool {
	set, ok := object.(*v1alpha1.RollSet)
	return ok && set.Status.ObservedGeneration == set.Generation && meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionReady)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.discover(w, r) {
		return
	}
	to, ok := s.parse(r.URL.Path)
	if !ok {
		s.refuse(w, r, apierrors.NewNotFound(corev1.Resource(r.URL.Path), ""))
		return
	}
	if err := s.answer(w, r, to); err != nil {
		s.refuse(w, r, err)
	}
}

// answer carries out a request for objects.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, to target) error {
	query := r.URL.Query()
	switch {
	case to.kind.transient:
		return s.acknowledge(w, r, to)
	case r.Method == http.MethodGet && query.Get("watch") != "":
		return s.watch(w, r, to)
	case r.Method == http.MethodGet && to.name == "":
		return s.list(w, r, to)
	}
	object, code, err := s.one(r, to)
	if err != nil {
		return err
	}
	return s.codec.respond(w, r, code, show(object, to.kind))
}

// refuse answers with an error as the API server words it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := apierrors.NewInternalError(err).ErrStatus
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	_ = s.codec.respond(w, r, int(status.Code), &status) // the client has gone
}
