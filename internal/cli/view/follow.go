// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An API server that does not answer is asked again for outage. Failures further apart than outageGap are two outages.
const (
	outage    = 30 * time.Second
	outageGap = 75 * time.Second
)

// follower keeps copies of objects up to date, and signals when one changes.
type follower struct {
	client client.WithWatch
	clock  clock.PassiveClock
	// changed receives a value after changes. Several changes may share one.
	changed chan struct{}
	// failed receives the error after which no events will come.
	failed chan error

	firstFailure, lastFailure time.Time
}

func newFollower(c client.WithWatch, now clock.PassiveClock) *follower {
	return &follower{client: c, clock: now, changed: make(chan struct{}, 1), failed: make(chan error, 1)}
}

// follow lists and watches objects of a kind until ctx ends. It returns a store of the newest objects.
func (f *follower) follow(ctx context.Context, object client.Object, list client.ObjectList, options client.ListOptions) (toolscache.Store, error) {
	informer := toolscache.NewSharedInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into, _ := list.DeepCopyObject().(client.ObjectList)
			return into, f.client.List(ctx, into, withRaw(options, raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			into, _ := list.DeepCopyObject().(client.ObjectList)
			w, err := f.client.Watch(ctx, into, withRaw(options, raw))
			if err != nil { // the informer does not report a refused connection
				f.fail(err)
			}
			return w, err
		},
	}, object, 0)
	// Managed fields are the largest part of an object, and are never shown.
	if err := informer.SetTransform(cache.TransformStripManagedFields()); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) { f.fail(err) }); err != nil {
		return nil, err
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f.tell() },
		UpdateFunc: func(any, any) { f.tell() },
		DeleteFunc: func(any) { f.tell() },
	}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return informer.GetStore(), f.await(ctx, informer.HasSynced)
}

// await waits for the first list.
func (f *follower) await(ctx context.Context, synced func() bool) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		toolscache.WaitForCacheSync(ctx.Done(), synced)
	}()
	select {
	case <-done:
		return ctx.Err()
	case err := <-f.failed:
		return err
	}
}

func withRaw(options client.ListOptions, raw metav1.ListOptions) *client.ListOptions {
	options.Raw = &raw
	return &options
}

func (f *follower) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// fail judges a failure. One that is permanent ends the following, and so does an outage that lasts.
func (f *follower) fail(err error) {
	now := f.clock.Now()
	if now.Sub(f.lastFailure) > outageGap {
		f.firstFailure = now
	}
	f.lastFailure = now
	final := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || !final && now.Sub(f.firstFailure) < outage {
		return // the informer starts again
	}
	if !final {
		err = fmt.Errorf("lost the API server for %v: %w", outage, err)
	}
	select {
	case f.failed <- err:
	default:
	}
}
