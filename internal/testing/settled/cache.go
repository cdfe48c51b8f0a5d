// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package settled

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"rollset.dev/rollset/api/v1beta1"
)

// NewCache returns controller-runtime's own cache, with indexes. It is filled with objects at the start and never changes.
// Unlike a manager's cache it needs no API server.
func NewCache(
	tb testing.TB, scheme *runtime.Scheme, index func(context.Context, client.FieldIndexer) error, objects ...client.Object,
) cache.Cache {
	tb.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	sources := map[string]*source{}
	for _, o := range []client.Object{
		&v1beta1.RollSet{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{},
	} {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			tb.Fatal(err)
		}
		mapper.Add(gvk, meta.RESTScopeNamespace)
		sources[fmt.Sprintf("%T", o)] = &source{}
	}
	mapper.Add(storagev1.SchemeGroupVersion.WithKind("StorageClass"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	sources["*v1.Node"] = &source{}
	for _, o := range objects {
		s := sources[fmt.Sprintf("%T", o)]
		s.objects = append(s.objects, o)
	}
	c, err := cache.New(&rest.Config{}, cache.Options{
		Scheme: scheme,
		Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, o runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(sources[fmt.Sprintf("%T", o)], o, resync, by)
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := index(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	stopped := make(chan error)
	ctx, stop := context.WithCancel(tb.Context())
	go func() { stopped <- c.Start(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			tb.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		tb.Fatal("the cache is not filled")
	}
	return c
}

// source lists a kind's objects for its informer. There are no events to watch.
type source struct{ objects []client.Object }

// List implements the informer's ListerWatcher.
func (s *source) List(metav1.ListOptions) (runtime.Object, error) {
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}
	for _, o := range s.objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: o})
	}
	return list, nil
}

// Watch implements the informer's ListerWatcher.
func (s *source) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported makes the informer list.
func (s *source) IsWatchListSemanticsUnSupported() bool { return true }
