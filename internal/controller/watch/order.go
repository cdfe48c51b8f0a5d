// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Priorities of sets in line, in steps. An event of another object has Priority, or lostPriority if the set has lost a pod. Users'
// edits have 0. New sets come next, because a thousand may be created at once. Sets that exist at the start, and resyncs, have
// handler.LowPriority and come last.
const (
	Priority     = handler.LowPriority / 2
	lostPriority = 1000
	newPriority  = -1
)

// The value of a step of priority.
const (
	// stepInLine is how many later arrivals a set stands before, among the sets of its namespace.
	stepInLine = 10
	// stepOfNamespace is by how much less its namespace seems to owe.
	stepOfNamespace = time.Millisecond
)

// Order decides when sets are looked at, in which order, and how many of a namespace at a time.
//
// The rule: a set and its namespace pay for each look at the set. An event of another object puts a set into the line when the set can
// afford a look; an edit puts it there at once. The namespace that owes least is next. A namespace without waiting sets saves nothing.
// Within a namespace, sets are ordered by their arrival, and each step of priority moves a set before some earlier ones. So every set is
// passed by a bounded number of others. A namespace has at most as many workers as are free: however many of its requests hang, others
// find a worker.
//
// It is the order of a workqueue, which calls Push, Pop, Touch and Len one at a time.
type Order struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// free is how many workers are free.
	free int
	// arrivals is how many sets have been put into the line.
	arrivals int
	// least is the lowest account of the namespaces that waited when the last set was taken. It is the clock by which namespaces pay:
	// they wait for each other, and not for time.
	least      time.Time
	namespaces map[string]*branch
	// accounts holds the accounts of sets that were looked at.
	accounts map[types.NamespacedName]account
	// priorities holds the priorities of the sets that wait, or will wait when they are no longer worked on. working holds those of the sets
	// that are worked on.
	priorities, working map[reconcile.Request]int
}

var _ workqueue.Queue[reconcile.Request] = (*Order)(nil)

// branch is the part of the line of one namespace.
type branch struct {
	account

	waiting places
	// working is how many of its sets are worked on.
	working int
}

// NewOrder returns an empty line before a number of workers.
func NewOrder(workers int, c clock.PassiveClock) *Order {
	return &Order{
		clock: c, free: workers, namespaces: map[string]*branch{}, accounts: map[types.NamespacedName]account{},
		priorities: map[reconcile.Request]int{}, working: map[reconcile.Request]int{},
	}
}

// Wait returns how long a set waits before it is put into the line with a priority: until it can afford a look, unless a user has
// edited or made it.
func (o *Order) Wait(set reconcile.Request, priority int) time.Duration {
	if priority == 0 || priority == newPriority {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accounts[set.NamespacedName].wait(o.clock.Now())
}

// Charge charges a look at a set to the set and its namespace. The namespace has already paid the fixed cost.
func (o *Order) Charge(set types.NamespacedName, l Look) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.accounts[set] = o.accounts[set].charge(o.clock.Now(), l.cost())
	b := o.branch(set.Namespace)
	b.account = b.charge(o.least, l.cost()-costOfLook)
}

// Forget drops the account of a set that is gone.
func (o *Order) Forget(set types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.accounts, set)
}

// Raise notes that a set is put into the line with a priority, before it is. The highest one counts.
func (o *Order) Raise(set reconcile.Request, priority int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.priorities[set]; !ok || priority > known {
		o.priorities[set] = priority
	}
}

// Waits reports whether a set waits in line, or will when it is no longer worked on.
func (o *Order) Waits(set reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, waits := o.priorities[set]
	return waits
}

// Push implements workqueue.Queue.
func (o *Order) Push(set reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.priorities[set]; !ok { // it was taken, and put into the line again, since its priority was noted
		o.priorities[set] = Priority
	}
	o.arrivals++
	heap.Push(&o.branch(set.Namespace).waiting, place{set: set, arrival: o.arrivals, priority: o.priorities[set]})
}

// Touch implements workqueue.Queue: a set that waits was put into the line again.
func (o *Order) Touch(set reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.branch(set.Namespace)
	for i := range b.waiting {
		if b.waiting[i].set == set && b.waiting[i].priority < o.priorities[set] {
			b.waiting[i].priority = o.priorities[set]
			heap.Fix(&b.waiting, i)
			return
		}
	}
}

// Len implements workqueue.Queue: it returns how many waiting sets may be taken now.
func (o *Order) Len() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.namespaces {
		if o.finds(b) {
			n += len(b.waiting)
		}
	}
	return n
}

// Pop implements workqueue.Queue.
func (o *Order) Pop() reconcile.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	var least, first *branch
	for name, b := range o.namespaces {
		switch {
		case len(b.waiting)+b.working == 0 && !b.paid.After(o.least): // it owes nothing
			delete(o.namespaces, name)
		case len(b.waiting) > 0 && o.finds(b):
			b.account = b.charge(o.least, 0)
			if least == nil || b.paid.Before(least.paid) {
				least = b
			}
			if first == nil || b.before(first) {
				first = b
			}
		}
	}
	if first == nil {
		return reconcile.Request{} // the workqueue asks for Len before
	}
	o.least = least.paid
	taken, _ := heap.Pop(&first.waiting).(place)
	first.account = first.charge(o.least, costOfLook)
	first.working++
	o.free--
	o.working[taken.set] = taken.priority
	delete(o.priorities, taken.set)
	return taken.set
}

// Priority returns the priority of a set that is worked on.
func (o *Order) Priority(set reconcile.Request) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.working[set]
}

// Done notes that a set is no longer worked on. When no set waits, the accounts of namespaces are dropped.
func (o *Order) Done(set reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.working[set]; !ok {
		return
	}
	delete(o.working, set)
	o.branch(set.Namespace).working--
	o.free++
	if len(o.working)+len(o.priorities) == 0 {
		clear(o.namespaces)
	}
}

// finds reports whether a worker may take a set of a namespace.
func (o *Order) finds(b *branch) bool { return b.working < o.free }

func (o *Order) branch(namespace string) *branch {
	b, ok := o.namespaces[namespace]
	if !ok {
		b = &branch{}
		o.namespaces[namespace] = b
	}
	return b
}

// before reports whether a namespace is next, of two in which sets wait.
func (b *branch) before(other *branch) bool {
	if c := b.owes().Compare(other.owes()); c != 0 {
		return c < 0
	}
	return b.waiting[0].standing() < other.waiting[0].standing()
}

// owes returns the account of a namespace, lowered by the priority of its first set.
func (b *branch) owes() time.Time {
	return b.paid.Add(-time.Duration(b.waiting[0].priority) * stepOfNamespace)
}

// place is the place of a set in the line of its namespace.
type place struct {
	set               reconcile.Request
	arrival, priority int
}

func (p place) standing() int { return p.arrival - stepInLine*p.priority }

// places is a heap of places.
type places []place

// Len implements heap.Interface.
func (p *places) Len() int { return len(*p) }

// Less implements heap.Interface.
func (p *places) Less(i, j int) bool { return (*p)[i].standing() < (*p)[j].standing() }

// Swap implements heap.Interface.
func (p *places) Swap(i, j int) { (*p)[i], (*p)[j] = (*p)[j], (*p)[i] }

// Push implements heap.Interface.
func (p *places) Push(x any) {
	if added, ok := x.(place); ok {
		*p = append(*p, added)
	}
}

// Pop implements heap.Interface.
func (p *places) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
