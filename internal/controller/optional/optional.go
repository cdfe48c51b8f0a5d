// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package optional watches kinds that only some sets need, and that the manager may lack the rights for.
//
// The rule: an optional kind costs nothing until a set needs it, and its absence breaks nothing. Once a set needs it, the API
// server is asked whether the manager has the rights, then again every minute. The watch begins when they are granted and
// ends when they are withdrawn, without a restart. Sets are woken at each change.
package optional

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/model/snapshot"
)

const (
	// AskEvery is how often the API server is asked for rights: they may be granted or withdrawn at any time.
	AskEvery = time.Minute
	// listTimeout is how long the first list of a kind may take.
	listTimeout = 2 * time.Minute
)

// Access is whether the objects of a kind can be read from the cache. The zero Access means that this is not known yet.
type Access = snapshot.Access

// Lookup returns the access to the kind of an object. It makes the kind needed.
type Lookup func(kind client.Object) Access

// Kinds are the optional kinds of one manager. The fields are set before Start and not changed afterwards.
type Kinds struct {
	// Cache is the manager's cache.
	Cache cache.Cache
	// Rights returns what the manager may not do with a kind; empty if it has all rights that it needs.
	Rights func(ctx context.Context, kind client.Object) (missing string, err error)
	// Shown is called when the watch of a kind has begun, Hidden when it has ended.
	Shown  func(ctx context.Context, kind client.Object) error
	Hidden func(kind client.Object)
	// Clock paces the checks of rights.
	Clock clock.WithTicker

	mu     sync.Mutex
	needed map[reflect.Type]Access
	// asked holds a value once another kind is needed.
	asked chan struct{}
}

// New returns the optional kinds of a manager; the caller fills in the exported fields.
func New() *Kinds {
	return &Kinds{needed: map[reflect.Type]Access{}, asked: make(chan struct{}, 1)}
}

// Access is a Lookup.
func (k *Kinds) Access(kind client.Object) Access {
	k.mu.Lock()
	defer k.mu.Unlock()
	access, needed := k.needed[reflect.TypeOf(kind)]
	if !needed {
		k.needed[reflect.TypeOf(kind)] = access
		select {
		case k.asked <- struct{}{}:
		default: // it is about to look anyway
		}
	}
	return access
}

// Source returns a source of events of kinds as long as they are needed and permitted. Its controller stops it.
func (k *Kinds) Source(kinds []watch.Source) source.Source {
	return source.Func(func(ctx context.Context, queue queue) error {
		watches := make([]*watched, len(kinds))
		for i, kind := range kinds {
			watches[i] = &watched{Kinds: k, Source: kind, queue: queue}
		}
		go k.run(ctx, watches)
		return nil
	})
}

// run looks after the watches until the controller stops.
func (k *Kinds) run(ctx context.Context, watches []*watched) {
	ticker := k.Clock.NewTicker(AskEvery)
	defer ticker.Stop()
	for {
		for _, w := range watches {
			if access, needed := w.access(); needed {
				w.look(ctx, access)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-k.asked:
		case <-ticker.C():
		}
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watched is a kind while a controller runs.
type watched struct {
	*Kinds
	watch.Source

	queue queue
	// stop ends the watch; nil if there is none.
	stop context.CancelFunc
}

// access returns the access to the kind; false if it is not needed.
func (w *watched) access() (access Access, needed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	access, needed = w.needed[reflect.TypeOf(w.Object)]
	return access, needed
}

// look begins or ends the watch as the rights of the manager allow, and wakes the sets that the change concerns. If the API
// server does not answer, nothing changes.
func (w *watched) look(ctx context.Context, before Access) {
	log := logr.FromContextOrDiscard(ctx).WithValues("kind", fmt.Sprintf("%T", w.Object))
	missing, err := w.Rights(ctx, w.Object)
	now := Access{Served: missing == "", Denied: missing}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		log.V(1).Info("cannot ask for the rights to an optional kind", "cause", err.Error())
		return
	case now.Served && w.stop == nil:
		if err := w.begin(ctx); err != nil {
			w.end(ctx)
			now = Access{Denied: err.Error()}
		}
	case !now.Served:
		w.end(ctx)
	}
	if now == before {
		return
	}
	log.Info("the access to an optional kind changed", "served", now.Served, "denied", now.Denied)
	w.mu.Lock()
	w.needed[reflect.TypeOf(w.Object)] = now
	w.mu.Unlock()
	w.Handler.Generic(ctx, event.GenericEvent{Object: w.Object}, w.queue)
}

// begin starts the watch and waits until the cache is filled.
func (w *watched) begin(ctx context.Context) error {
	ctx, w.stop = context.WithCancel(ctx)
	kind := source.TypedKind(w.Cache, w.Object, w.Handler)
	if err := kind.Start(ctx, w.queue); err != nil {
		return err
	}
	waiting, enough := context.WithTimeout(ctx, listTimeout)
	defer enough()
	if err := kind.WaitForSync(waiting); err != nil {
		return err
	}
	return w.Shown(ctx, w.Object)
}

// end stops the watch, if there is one, and drops what the cache holds.
func (w *watched) end(ctx context.Context) {
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	w.Hidden(w.Object)
	if err := w.Cache.RemoveInformer(ctx, w.Object); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "cannot end the watch of an optional kind", "kind", fmt.Sprintf("%T", w.Object))
	}
}
