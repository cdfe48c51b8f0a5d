// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func in(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// TestOrder puts sets into the line, each as namespace/name with a priority, and takes all of them one after the other.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ put, want string }{
		"first come, first served": {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"namespaces take turns":    {"a/1 a/2 a/3 b/1 b/2", "a/1 b/1 a/2 b/2 a/3"},
		"a lost pod comes first":   {"a/1 a/2 b/1 a/3=lost", "a/3 b/1 a/1 a/2"},
		"whoever has lost one":     {"a/1 b/1 b/2 c/1=lost a/2=lost", "c/1 a/2 b/1 a/1 b/2"},
		"edits come before events": {"a/1=event a/2=first a/3", "a/3 a/1 a/2"},
		"but are not all there is": {"a/1=event a/1=lost a/2", "a/1 a/2"},
		"a low one changes little": {"a/1=lost a/1=event a/2=lost", "a/1 a/2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := NewOrder(1000)
			queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Queue: o})
			for word := range strings.FieldsSeq(tt.put) {
				word, class, _ := strings.Cut(word, "=")
				namespace, name, _ := strings.Cut(word, "/")
				o.Raise(in(namespace, name), map[string]int{"lost": lostPriority, "event": Priority, "first": handler.LowPriority}[class])
				queue.Add(in(namespace, name))
			}
			var got []string
			for queue.Len() > 0 {
				set, _ := queue.Get()
				got = append(got, set.String())
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWaitsAges lets edits of one set after another come without end. An event of another set is not passed by all of them.
func TestWhatWaitsAges(t *testing.T) {
	t.Parallel()
	o := NewOrder(2)
	put := func(set reconcile.Request, priority int) {
		o.Raise(set, priority)
		o.Push(set)
	}
	put(in("a", "waits"), handler.LowPriority)
	for n := range 2000 {
		put(in("a", strconv.Itoa(n)), 0)
		set := o.Pop()
		o.Done(set)
		if set.Name == "waits" {
			return
		}
	}
	t.Error("2000 edits passed it")
}

// TestHangingNamespaces lets the sets of more and more namespaces hang. The first one gets half of the workers, and there is a worker
// for the next one.
func TestHangingNamespaces(t *testing.T) {
	t.Parallel()
	o := NewOrder(20)
	var held []int
	for namespace := range 4 {
		for n := range 30 {
			set := in(strconv.Itoa(namespace), strconv.Itoa(n))
			o.Raise(set, 0)
			o.Push(set)
		}
		n := 0
		for ; o.Len() > 0; n++ {
			o.Pop()
		}
		held = append(held, n)
	}
	if diff := cmp.Diff([]int{10, 5, 3, 1}, held); diff != "" {
		t.Errorf("workers by namespace (-want +got):\n%s", diff)
	}
}

// TestNobodyIsForgotten lets workers reconcile the sets of some namespaces, and some of these are slow. Each set that is put into the line is
// reconciled after that, and no worker sleeps while a set may be taken.
func TestNobodyIsForgotten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		puts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) put {
			return put{
				set:      in(rapid.SampledFrom([]string{"a", "b", "c", "slow"}).Draw(rt, "namespace"), rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(rt, "name")),
				at:       time.Duration(rapid.IntRange(0, 3000).Draw(rt, "at")) * time.Millisecond,
				after:    time.Duration(rapid.SampledFrom([]int{0, 0, 0, 100, 2000}).Draw(rt, "after")) * time.Millisecond,
				priority: rapid.SampledFrom([]int{lostPriority, 0, newPriority, Priority, handler.LowPriority}).Draw(rt, "priority"),
			}
		}), 1, 60).Draw(rt, "puts")
		workers := rapid.IntRange(2, 6).Draw(rt, "workers")
		synctest.Test(t, func(t *testing.T) { playLine(t, puts, workers) })
	})
}

// put is a set that is put into the line at a time.
type put struct {
	set       reconcile.Request
	at, after time.Duration
	priority  int
}

func playLine(t *testing.T, puts []put, workers int) {
	t.Helper()
	l := NewLine("", workers, workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), clock.RealClock{})
	start := time.Now()
	var mu sync.Mutex
	last := map[reconcile.Request]time.Time{} // when each was last begun
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				set, _, shutdown := l.GetWithPriority()
				if shutdown {
					return
				}
				mu.Lock()
				last[set] = time.Now()
				mu.Unlock()
				time.Sleep(map[bool]time.Duration{true: 15 * time.Second, false: 20 * time.Millisecond}[set.Namespace == "slow"])
				l.Done(set)
			}
		})
	}
	for _, p := range puts {
		running.Go(func() {
			time.Sleep(p.at)
			l.AddWithOpts(priorityqueue.AddOpts{After: p.after, Priority: &p.priority}, p.set)
		})
	}
	time.Sleep(5 * time.Minute)
	l.ShutDown()
	running.Wait()
	for _, p := range puts {
		if begun, ok := last[p.set]; !ok || begun.Before(start.Add(p.at)) {
			t.Errorf("%s was put into the line at %s, and last reconciled at %s", p.set, p.at, begun.Sub(start))
		}
	}
}

// TestNobodyWaitsForNeighbors plays a manager with ten workers for a namespace, each of whose reconciles takes 50 ms, beside neighbors. A
// set that loses a pod waits for less than a second.
func TestNobodyWaitsForNeighbors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		namespaces, sets int
		every, takes     time.Duration
		priority         int
		victim           string
	}{
		"200 edits a second in ten namespaces":   {10, 30, 5 * time.Millisecond, 50 * time.Millisecond, 0, "victim"},
		"2000 edits a second in one namespace":   {1, 300, 500 * time.Microsecond, 50 * time.Millisecond, 0, "victim"},
		"2000 edits a second in its namespace":   {1, 300, 500 * time.Microsecond, 50 * time.Millisecond, 0, "0"},
		"new sets in a thousand namespaces":      {1000, 5, time.Millisecond, 50 * time.Millisecond, newPriority, "victim"},
		"pods lost all the time in a namespace":  {1, 300, time.Millisecond, 50 * time.Millisecond, lostPriority, "victim"},
		"writes that hang in a namespace":        {1, 12, 100 * time.Millisecond, 15 * time.Second, 0, "victim"},
		"writes that hang in three namespaces":   {3, 12, 100 * time.Millisecond, 15 * time.Second, 0, "victim"},
		"events of 500 sets that are all broken": {10, 50, 2 * time.Millisecond, 50 * time.Millisecond, Priority, "victim"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := NewLine("", 20, workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), clock.RealClock{})
				victim, found := in(tt.victim, "shop"), make(chan time.Time)
				for range 20 {
					go work(l, tt.takes, victim, found)
				}
				stop := make(chan struct{})
				go func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						case <-time.After(tt.every):
						}
						l.AddWithOpts(priorityqueue.AddOpts{Priority: &tt.priority}, in(strconv.Itoa(n%tt.namespaces), strconv.Itoa(n/tt.namespaces%tt.sets)))
					}
				}()
				for range 10 {
					time.Sleep(3 * time.Second)
					lost := time.Now()
					l.AddWithOpts(priorityqueue.AddOpts{Priority: new(lostPriority)}, victim)
					if took := (<-found).Sub(lost); took > time.Second {
						t.Errorf("it waited for %s", took)
					}
				}
				close(stop)
				l.ShutDown()
				time.Sleep(time.Minute)
			})
		})
	}
}

// work reconciles sets, each for a time, and tells when it begins with one of them.
func work(l *Line, takes time.Duration, victim reconcile.Request, found chan<- time.Time) {
	for {
		set, _, shutdown := l.GetWithPriority()
		switch {
		case shutdown:
			return
		case set == victim:
			found <- time.Now()
		default:
			time.Sleep(takes)
		}
		l.Done(set)
	}
}
