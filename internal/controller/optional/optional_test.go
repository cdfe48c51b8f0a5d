// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/settled"
)

// bench is optional nodes, rights that change, and a clock that stands.
type bench struct {
	*Kinds

	missing atomic.Pointer[string]
	failure atomic.Pointer[error]
	asked   atomic.Int32
	clock   *clocktesting.FakeClock
	reader  client.Reader
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	none := func(context.Context, client.FieldIndexer) error { return nil }
	cache := settled.NewCache(t, scheme, none, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "1"}})
	b := &bench{Kinds: New(), clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), reader: cache}
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(b.queue.ShutDown)
	b.grant("")
	b.Cache, b.Clock = cache, b.clock
	b.Rights = func(context.Context, client.Object) (string, error) {
		b.asked.Add(1)
		if err := b.failure.Load(); err != nil {
			return "", *err
		}
		return *b.missing.Load(), nil
	}
	b.Shown = func(context.Context, client.Object) error { return nil }
	b.Hidden = func(client.Object) {}
	wakes := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "of " + o.GetName()}}}
	})
	source := b.Source([]watch.Source{{Object: &corev1.Node{}, Handler: wakes}})
	if err := source.Start(t.Context(), b.queue); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) grant(missing string) { b.missing.Store(&missing) }

// await waits until holds returns true.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience.Long()); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// eventually waits for an access.
func (b *bench) eventually(t *testing.T, want Access) {
	t.Helper()
	await(t, fmt.Sprintf("access %+v", want), func() bool { return b.Access(&corev1.Node{}) == want })
}

// aMinuteLater lets the rights be asked for again.
func (b *bench) aMinuteLater(t *testing.T) {
	t.Helper()
	before := b.asked.Load()
	await(t, "the wait before the next question", b.clock.HasWaiters)
	b.clock.Step(AskEvery)
	await(t, "the next question about rights", func() bool { return b.asked.Load() > before })
}

// woken returns the next request in the queue.
func (b *bench) woken(t *testing.T) string {
	t.Helper()
	await(t, "a set to be woken", func() bool { return b.queue.Len() > 0 })
	request, _ := b.queue.Get()
	b.queue.Done(request)
	return request.Name
}

func (b *bench) nodes(t *testing.T) (int, error) {
	t.Helper()
	list := &corev1.NodeList{}
	err := b.reader.List(t.Context(), list)
	return len(list.Items), err
}

func TestNotNeeded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	time.Sleep(50 * time.Millisecond)
	if n := b.asked.Load(); n > 0 {
		t.Errorf("asked %d times for rights that no set needs", n)
	}
}

func TestGrantedLaterAndWithdrawn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.grant("may not list")
	if access := b.Access(&corev1.Node{}); access != (Access{}) {
		t.Errorf("access %+v before anything is known", access)
	}
	b.eventually(t, Access{Denied: "may not list"})
	if got := b.woken(t); got != "of " {
		t.Errorf("woke the set %q, want all", got)
	}

	b.grant("")
	b.aMinuteLater(t)
	b.eventually(t, Access{Served: true})
	if first, second := b.woken(t), b.woken(t); first != "of n1" || second != "of " {
		t.Errorf("woke the sets %q and %q, want those of the node, and all", first, second)
	}
	if n, err := b.nodes(t); n != 1 || err != nil {
		t.Errorf("the cache has %d nodes, %v", n, err)
	}

	b.grant("may not watch")
	b.aMinuteLater(t)
	b.eventually(t, Access{Denied: "may not watch"})

	b.grant("")
	b.aMinuteLater(t)
	b.eventually(t, Access{Served: true})
	if n, err := b.nodes(t); n != 1 || err != nil {
		t.Errorf("the cache has %d nodes after a second watch, %v", n, err)
	}
}

func TestNoAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.eventually(t, Access{Served: true})
	b.failure.Store(new(errors.New("timeout")))
	b.aMinuteLater(t)
	b.eventually(t, Access{Served: true})
}
