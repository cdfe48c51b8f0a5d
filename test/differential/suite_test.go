// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package differential plays random histories on pairs of sets: a RollSet, and the Deployment or StatefulSet that people would
// have used instead, which the cluster's own controller manager runs. It compares what the watches of both show. It judges
// without the planners: of the project it imports the types of the API, and the cluster for tests.
package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

var (
	pairs    = flag.Int("pairs", 16, "how many pairs are played")
	seed     = flag.Uint64("seed", 1, "the seed of the first pair")
	slots    = flag.Int("slots", 40, "how many pairs are played at a time")
	all      = flag.Bool("all", false, "play all pairs, whichever fail, and shrink none")
	update   = flag.Bool("update", false, "write the sentences into the page")
	replayed = flag.String("history", "", "a history to play instead, its scenes separated by semicolons")
)

// bed is the cluster of all pairs.
type bed struct {
	*testbed.Cluster
	client.Client

	manager *manager.Process
	mu      sync.Mutex
	films   map[string]*film // by namespace
}

// slot is where one pair at a time is played: two namespaces, each with a node.
type slot struct {
	*bed
	number, serial int
}

func (s *slot) namespace(side int) string {
	return fmt.Sprintf("pair-%d-%s", s.number, [...]string{"ours", "theirs"}[side])
}

// side prepares one side of a pair.
func (s *slot) side(number int, w wish, write func(wish, string, string) client.Object) *side {
	d := &side{
		Client: s.Client, namespace: s.namespace(number), node: s.Nodes.Names()[2*s.number+number], wish: w, film: newFilm(w),
		write: func(w wish, d *side) client.Object { return write(w, d.namespace, d.node) },
	}
	d.set = d.write(w, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.films[d.namespace] = d.film
	return d
}

// release ends the films of a slot.
func (s *slot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.films, s.namespace(0))
	delete(s.films, s.namespace(1))
}

// newBed starts a cluster with a manager. No controller there reports nodes as lost: histories do, pod by pod.
func newBed(t *testing.T, slots int) *bed {
	t.Helper()
	log.SetLogger(logr.Discard())
	b := &bed{films: map[string]*film{}}
	ctx := t.Context()
	var err error
	b.Cluster, err = testbed.Start(context.WithoutCancel(ctx), testbed.Options{
		Nodes:       2 * slots,
		Controllers: "*,-node-lifecycle-controller,-taint-eviction-controller,-horizontal-pod-autoscaler-controller",
		Model: &kubelet.Model{
			ReadyDelay: 100 * time.Millisecond, SlowDelay: time.Second, TermDelay: 100 * time.Millisecond, BackOff: time.Hour,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if b.Client, err = client.New(b.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	b.startManager(t)
	b.watch(t)
	return b
}

func (b *bed) startManager(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := manager.Install(ctx, b.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	binary, err := manager.Build(ctx, b.Dir())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := b.KubeconfigFor(manager.User)
	if err != nil {
		t.Fatal(err)
	}
	b.manager, err = manager.Start(ctx, manager.Options{
		Binary: binary, Kubeconfig: kubeconfig, Log: filepath.Join(b.Dir(), "manager.log"), Args: []string{"--zap-log-level=error"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.manager.Kill() })
}

// watch shows every change of pods, claims and sets to the film of its namespace.
func (b *bed) watch(t *testing.T) {
	t.Helper()
	c, err := cache.New(b.RESTConfig(), cache.Options{Scheme: b.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	show := func(object any, gone bool) {
		if o, ok := object.(client.Object); ok {
			b.mu.Lock()
			f := b.films[o.GetNamespace()]
			b.mu.Unlock()
			if f != nil {
				f.see(o, gone)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	for _, kind := range []client.Object{
		&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &v1beta1.RollSet{},
	} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc:    func(o any) { show(o, false) },
				UpdateFunc: func(_, o any) { show(o, false) },
				DeleteFunc: func(o any) {
					if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
						o = last.Obj
					}
					show(o, true)
				},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("no watch")
	}
}

// newSlot makes the namespaces of a slot.
func (b *bed) newSlot(ctx context.Context, number int) (*slot, error) {
	s := &slot{bed: b, number: number}
	for side := range 2 {
		name := s.namespace(side)
		if err := b.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, err
		}
		for {
			err := b.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
			if err == nil {
				break
			}
			if !apierrors.IsNotFound(err) {
				return nil, err
			}
			time.Sleep(pollEvery)
		}
	}
	return s, nil
}
