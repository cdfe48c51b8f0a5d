// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes runs simulated nodes against a real API server: it registers them, keeps their leases, and plays the
// kubelet of internal/simulator/kubelet for every pod bound to one of them. It can also stand in for a scheduler and for
// a storage provisioner where there is none.
package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"rollset.dev/rollset/internal/simulator/kubelet"
)

const (
	defaultCount = 3
	// workers is how many pods are looked at, and written, at the same time.
	workers = 16
)

// Options describe the nodes to simulate, and the components to stand in for.
type Options struct {
	// Count is the number of nodes. Zero means 3.
	Count int
	// Prefix begins the nodes' names; their numbers follow. Empty means "node-".
	Prefix string
	// Model is how their kubelets behave. Its Allocatable, if nil, is filled in from the nodes' capacity.
	Model kubelet.Model
	// Bind binds pods to nodes, where there is no scheduler: any node whose labels match the pod's node selector.
	Bind bool
	// Claims provides volumes: it makes the storage classes ClaimClass and FixedClaimClass, binds claims of these
	// classes, and lets those of the first one grow.
	Claims bool
}

// Fleet is a number of simulated nodes.
type Fleet struct {
	client  kubernetes.Interface
	options Options
	log     logr.Logger
	names   []string
	// version is that of the API server, which the kubelets report as theirs.
	version string
	pods    corelisters.PodLister
	claims  corelisters.PersistentVolumeClaimLister
	looks   podQueue
	mu      sync.Mutex
	seen    map[podKey]*sighting
	silent  map[string]bool
	running sync.WaitGroup
}

// Start registers the nodes and runs them until the context ends. It returns once the nodes are registered and their
// pods are known.
func Start(ctx context.Context, config *rest.Config, options Options) (*Fleet, error) {
	f, err := newFleet(ctx, config, options)
	if err != nil {
		return nil, err
	}
	if err := f.register(ctx); err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithTransform(cache.TransformStripManagedFields()))
	if err := (podKeeper{f}).watchPods(factory); err != nil {
		return nil, err
	}
	claims := &claimQueue{fleet: f}
	if f.options.Bind || f.options.Claims {
		f.claims = factory.Core().V1().PersistentVolumeClaims().Lister()
	}
	if f.options.Claims {
		if err := claims.start(ctx, factory); err != nil {
			return nil, err
		}
	}
	factory.StartWithContext(ctx)
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, fmt.Errorf("watch %v: %w", kind, context.Cause(ctx))
		}
	}
	f.run(ctx)
	f.running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	return f, nil
}

func newFleet(ctx context.Context, config *rest.Config, options Options) (*Fleet, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // kubelets of many nodes share this client
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if options.Count == 0 {
		options.Count = defaultCount
	}
	if options.Prefix == "" {
		options.Prefix = "node-"
	}
	if options.Model.Allocatable == nil {
		options.Model.Allocatable = capacity()
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the version: %w", err)
	}
	f := &Fleet{
		client: client, options: options, log: logr.FromContextOrDiscard(ctx), version: info.GitVersion,
		looks: workqueue.NewTypedDelayingQueue[podKey](), seen: map[podKey]*sighting{}, silent: map[string]bool{},
	}
	for i := range options.Count {
		f.names = append(f.names, options.Prefix+strconv.Itoa(i+1))
	}
	return f, nil
}

// run starts the workers and the heartbeats.
func (f *Fleet) run(ctx context.Context) {
	for range workers {
		f.running.Go(func() { podKeeper{f}.work(ctx) })
	}
	f.running.Go(func() {
		<-ctx.Done()
		f.looks.ShutDown()
	})
	f.running.Go(func() { f.beat(ctx) })
}

// Wait returns when the fleet has stopped, after its context ended.
func (f *Fleet) Wait() { f.running.Wait() }

// Names returns the names of the nodes.
func (f *Fleet) Names() []string { return slices.Clone(f.names) }

// Silence makes a node fall silent, as if it lost its power: it sends no heartbeat, and its pods stay as they are.
func (f *Fleet) Silence(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent[node] = true
}

// Wake makes a silent node come back, with a kubelet that remembers nothing.
func (f *Fleet) Wake(node string) {
	f.mu.Lock()
	delete(f.silent, node)
	var keys []podKey
	for key, s := range maps.All(f.seen) {
		if s.node == node {
			s.memory = kubelet.Memory{}
			keys = append(keys, key)
		}
	}
	f.mu.Unlock()
	for _, key := range keys {
		f.looks.Add(key)
	}
}

func (f *Fleet) isSilent(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.silent[node]
}

// owns reports whether the pod runs on one of the fleet's nodes.
func (f *Fleet) owns(pod *corev1.Pod) bool { return slices.Contains(f.names, pod.Spec.NodeName) }

// retryDelay is how long a failed write is left alone.
const retryDelay = 100 * time.Millisecond
