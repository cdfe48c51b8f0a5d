// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package minimal

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// client is the whole program.
type client struct {
	api  kubernetes.Interface
	jobs *jobs
	mu   sync.Mutex // guards the sets and everything in them
	sets map[cache.ObjectName]*set
}

// Run serves all sets of a cluster with the given number of workers, until the context ends. It calls ready when it knows
// the existing objects.
func Run(ctx context.Context, config *rest.Config, workers int, ready func()) error {
	config = rest.CopyConfig(config)
	config.QPS, config.ContentType, config.DisableCompression = -1, protobuf, true
	config.AcceptContentTypes = protobuf + ",application/json"
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	c := &client{api: api, jobs: newJobs(), sets: map[cache.ObjectName]*set{}}
	factory := informers.NewSharedInformerFactoryWithOptions(api, 0, informers.WithTransform(crcache.TransformStripManagedFields()),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = SetLabel }))
	_, setsErr := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(c.setEvents())
	_, podsErr := factory.Core().V1().Pods().Informer().AddEventHandler(c.podEvents())
	if err := errors.Join(setsErr, podsErr); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	factory.StartWithContext(logr.NewContext(ctx, logr.Discard()))
	factory.WaitForCacheSync(ctx.Done())
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { c.jobs.work(ctx) })
	}
	ready()
	<-ctx.Done()
	c.jobs.close()
	running.Wait()
	factory.Shutdown()
	return nil
}

func (c *client) setEvents() cache.ResourceEventHandler {
	see := func(object any) {
		if m, ok := object.(*corev1.ConfigMap); ok {
			c.seeSet(m)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, object any) { see(object) },
		DeleteFunc: func(object any) {
			if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
				c.forgetSet(name)
			}
		},
	}
}

func (c *client) podEvents() cache.ResourceEventHandler {
	see := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			c.with(pod, (*set).see)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, object any) { see(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				c.with(pod, (*set).lose)
			}
		},
	}
}

// with lets the set of a pod record the pod, and do what follows.
func (c *client) with(pod *corev1.Pod, note func(*set, *corev1.Pod)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sets[cache.NewObjectName(pod.Namespace, pod.Labels[SetLabel])]; s != nil {
		note(s, pod)
		s.advance()
	}
}

func (c *client) seeSet(object *corev1.ConfigMap) {
	spec, err := decode(object)
	if err != nil {
		return // the set keeps what it had
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := cache.MetaObjectToName(object)
	s := c.sets[name]
	if s == nil {
		s = &set{name: name, client: c, pods: map[string]*pod{}}
		c.sets[name] = s
	}
	s.want(object.UID, spec)
	s.advance()
}

// forgetSet leaves the pods of a deleted set to the garbage collector.
func (c *client) forgetSet(name cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sets, name)
}
