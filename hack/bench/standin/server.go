// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package standin serves the simulator's API server over HTTP, so that a manager can be measured with more pods than the machine
// could run a cluster for. There is no database, no admission and no authorization. A pod runs and is ready from the moment it is
// created.
//
// The rule: what a client may rely on holds. Each write has its resourceVersion, a watch shows every write after the version that
// it begins at, in their order, and a bookmark promises nothing that was not sent. Streaming lists, JSON and protobuf are there.
// What no client here uses is not: pages of lists, field selectors, other patches than the simulator knows.
package standin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// Server is the API server.
type Server struct {
	// URL is where it is served.
	URL string

	http  *http.Server
	codec codec

	mu    sync.Mutex
	store *apiserver.Store
	// news is closed, and replaced, at each write.
	news chan struct{}
	// requests counts requests by their verbs.
	requests map[string]int
}

// Start serves until Stop is called.
func Start(ctx context.Context) (*Server, error) {
	s := &Server{store: apiserver.NewStore(time.Now), news: make(chan struct{}), requests: map[string]int{}}
	s.codec = newCodec(apiserver.NewScheme())
	s.store.OnWrite(func(*apiserver.Entry) {
		close(s.news)
		s.news = make(chan struct{})
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.URL = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(listener) }() // it ends with Stop
	return s, nil
}

// Stop ends all connections.
func (s *Server) Stop() error { return s.http.Close() }

// Load stores objects as they are. Those with UIDs keep them.
func (s *Server) Load(objects ...client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.Load(objects...)
}

// Writes returns how many requests asked for a write of an object so far, events left out.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, verb := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		n += s.requests[verb]
	}
	return n
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.discover(w, r) {
		return
	}
	to, ok := parse(r.URL.Path)
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
	if to.kind.echoed {
		return s.echo(w, r, to)
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && query.Get("watch") != "":
		return s.watch(w, r, to)
	case r.Method == http.MethodGet && to.name == "":
		return s.list(w, r, to)
	}
	object, code, err := s.one(r, to)
	if err != nil {
		return err
	}
	return s.codec.respond(w, r, code, to.kind, object)
}

// one reads or writes one object.
func (s *Server) one(r *http.Request, to target) (object client.Object, code int, err error) {
	body, err := s.codec.read(r, to)
	if err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	write := apiserver.Write{
		Actor: "client", Key: to.key(), Subresource: to.subresource, Body: body.patch, DeleteOptions: body.delete, DryRun: r.URL.Query().Has("dryRun"),
	}
	if r.Method != http.MethodGet && !write.DryRun {
		s.requests[r.Method]++
	}
	code = http.StatusOK
	switch r.Method {
	case http.MethodGet:
		if object = s.store.Get(to.key()); object == nil {
			err = apierrors.NewNotFound(apiserver.GroupResource(to.kind.kind), to.name)
		}
	case http.MethodPost:
		code = http.StatusCreated
		object, err = s.store.Create(write, body.object)
		if pod, ok := object.(*corev1.Pod); ok && err == nil && !write.DryRun {
			err = s.run(pod)
		}
	case http.MethodPut:
		object, err = s.store.Update(write, body.object)
	case http.MethodPatch:
		object, err = s.store.Patch(write, body.patchType)
	case http.MethodDelete:
		object = s.store.Get(to.key())
		err = s.store.Delete(write)
	default:
		err = apierrors.NewMethodNotSupported(apiserver.GroupResource(to.kind.kind), r.Method)
	}
	return object, code, err
}

// run lets a pod run and be ready.
func (s *Server) run(created *corev1.Pod) error {
	pod := apiserver.Clone(created)
	now := s.store.Stamp()
	pod.Status = RunningStatus(&pod.Spec, now)
	_, err := s.store.Update(apiserver.Write{Actor: "kubelet", Subresource: "status"}, pod)
	return err
}

// RunningStatus returns the status of a pod whose containers have run since a time.
func RunningStatus(spec *corev1.PodSpec, since metav1.Time) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBestEffort, StartTime: &since, HostIP: "10.0.0.1", PodIP: "10.1.0.1"}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: since, ObservedGeneration: 1,
		})
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: "docker.io/library/" + c.Image, ImageID: fmt.Sprintf("sha256:%064d", len(c.Image)), Ready: true, Started: new(true),
			ContainerID: fmt.Sprintf("containerd://%064d", since.Unix()),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
		})
	}
	return status
}

// refuse answers with an error as the API server words it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := apierrors.NewInternalError(err).ErrStatus
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	_ = s.codec.respond(w, r, int(status.Code), statusKind(), &status) // the client has gone
}
