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
	clocktesting "k8s.io/utils/clock/testing"
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
			o := NewOrder(1000, clock.RealClock{})
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

// TestNamespacesPay looks at sets of a namespace, each with a thousand pods, and of another, without any. Both get the same share of the
// manager's time. Neither saves anything by waiting for nothing, or by requests that hang.
func TestNamespacesPay(t *testing.T) {
	t.Parallel()
	o := NewOrder(4, clock.RealClock{})
	look := func() string {
		set := o.Pop()
		o.Charge(set.NamespacedName, Look{Pods: map[string]int{"large": 1000}[set.Namespace], Writes: 1000})
		o.Done(set)
		return set.Namespace
	}
	put := func(namespace string, n int) {
		for i := range n {
			o.Raise(in(namespace, strconv.Itoa(i)), 0)
			o.Push(in(namespace, strconv.Itoa(i)))
		}
	}
	put("hangs", 9)
	hung := o.Pop()
	o.Pop() // now they have half of the workers
	put("large", 50)
	for range 20 {
		look()
	}
	put("small", 900)
	looks := map[string]int{}
	for range 240 {
		looks[look()]++
	}
	if n := looks["large"]; n < 18 || n > 22 {
		t.Errorf("%d looks at sets with 1000 pods, want one for eleven others: %v", n, looks)
	}
	o.Done(hung)
	clear(looks)
	for range 8 {
		looks[look()]++
	}
	if n := looks["hangs"]; n > 4 {
		t.Errorf("%d of 8 looks at sets whose namespace hung", n)
	}
}

// TestWhoWaitsToPay puts a set that cannot afford a look into the line, at once and by a timer. Edits and new sets do not wait for that.
func TestWhoWaitsToPay(t *testing.T) {
	t.Parallel()
	for priority, pays := range map[int]time.Duration{
		0: 0, newPriority: 0, Priority: maxCost, lostPriority: maxCost, handler.LowPriority: maxCost,
	} {
		for _, after := range []time.Duration{0, time.Millisecond} {
			timers := clocktesting.NewFakeClock(time.Unix(1_000, 0))
			l := NewLine("", 1, timers)
			set := in("a", "1")
			for range 10 {
				l.Order.Charge(set.NamespacedName, Look{Pods: 100_000})
			}
			l.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, set)
			waited := time.Duration(0)
			for ; l.Len() == 0 && waited < time.Minute; waited += time.Millisecond {
				timers.Step(time.Millisecond)
			}
			if want := max(after, pays); waited != want {
				t.Errorf("priority %d, after %s: it waits for %s, want %s", priority, after, waited, want)
			}
			l.Order.Forget(set.NamespacedName)
			if wait := l.Order.Wait(set, Priority); wait != 0 {
				t.Errorf("a namesake waits for %s", wait)
			}
		}
	}
}

// TestNamespacesAreForgotten lets a set wait all the time, while sets of one namespace after another arrive.
func TestNamespacesAreForgotten(t *testing.T) {
	t.Parallel()
	o := NewOrder(4, clock.RealClock{})
	for n := range 1000 {
		o.Push(in("always", strconv.Itoa(n)))
		o.Push(in(strconv.Itoa(n), "a"))
		for range 2 {
			o.Done(o.Pop())
		}
		o.Push(in("always", strconv.Itoa(n+1)))
	}
	if n := len(o.namespaces); n > 100 {
		t.Errorf("%d namespaces are remembered", n)
	}
}

// TestWhatWaitsAges lets edits of one set after another arrive without end. An event of another set is not passed by all of them.
func TestWhatWaitsAges(t *testing.T) {
	t.Parallel()
	o := NewOrder(2, clock.RealClock{})
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
	o := NewOrder(20, clock.RealClock{})
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
	l := NewLine("", workers, clock.RealClock{})
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
				l := NewLine("", 20, clock.RealClock{})
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

// work reconciles sets, each for a time, and reports when it begins with one of them.
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
