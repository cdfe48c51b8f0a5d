// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"container/heap"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What counts how much in line. The unit is an arrival: what waits is passed by so many that come after it.
const (
	// arrivalsOfPriority is how many later arrivals of a priority one lower a set stands before.
	arrivalsOfPriority = 10
	// arrivalsOfTurn is how many earlier arrivals a namespace stands behind for each turn that it has had more than another.
	arrivalsOfTurn = 1000
)

// Order is the order in which sets are reconciled, and how many of a namespace at a time.
//
// The rule: namespaces take turns. A namespace that has had fewer turns comes first, and one that has waited for nothing gains
// nothing by that. In a namespace, and among namespaces with as many turns, a set stands by when it came and by its priority: the
// lower its number of arrival, and the higher its priority, the earlier. So every set is passed by a bounded number of others. A
// namespace has at most as many workers as are free: however many of its requests hang, others find a worker.
//
// It is the order of a workqueue, which calls Push, Pop, Touch and Len one at a time.
type Order struct {
	mu sync.Mutex
	// free is how many workers are free.
	free int
	// arrivals counts what was put into the line.
	arrivals int
	// turn is the smallest number of turns of the namespaces that waited when the last set was taken.
	turn       int
	namespaces map[string]*branch
	// priorities are those of the sets that wait, or will wait when they are no longer worked on. working are those of the sets
	// that are worked on.
	priorities, working map[reconcile.Request]int
}

var _ workqueue.Queue[reconcile.Request] = (*Order)(nil)

// branch is the part of the line of one namespace.
type branch struct {
	waiting places
	// turns is how many sets were taken, and working how many of them are worked on.
	turns, working int
}

// NewOrder returns an empty line before a number of workers.
func NewOrder(workers int) *Order {
	return &Order{
		free: workers, namespaces: map[string]*branch{}, priorities: map[reconcile.Request]int{}, working: map[reconcile.Request]int{},
	}
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
	b := o.branch(set.Namespace)
	if len(b.waiting) == 0 && b.working == 0 {
		b.turns = max(b.turns, o.turn)
	}
	o.arrivals++
	if _, ok := o.priorities[set]; !ok { // it was taken, and came again, since its priority was noted
		o.priorities[set] = Priority
	}
	heap.Push(&b.waiting, place{set: set, arrival: o.arrivals, priority: o.priorities[set]})
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

// Len implements workqueue.Queue: it returns how many of those that wait may be taken now.
func (o *Order) Len() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.namespaces {
		if b.working < o.free {
			n += len(b.waiting)
		}
	}
	return n
}

// Pop implements workqueue.Queue.
func (o *Order) Pop() reconcile.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	var first *branch
	least := -1
	for _, b := range o.namespaces {
		if len(b.waiting) == 0 {
			continue
		}
		if least < 0 || b.turns < least {
			least = b.turns
		}
		if b.working < o.free && (first == nil || b.standing() < first.standing()) {
			first = b
		}
	}
	if first == nil {
		return reconcile.Request{} // the workqueue asks for Len before
	}
	o.turn = max(o.turn, least)
	taken, _ := heap.Pop(&first.waiting).(place)
	first.turns++
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

// Done notes that a set is no longer worked on. When no set waits, it is forgotten who had how many turns.
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
		o.turn = 0
		clear(o.namespaces)
	}
}

func (o *Order) branch(namespace string) *branch {
	b, ok := o.namespaces[namespace]
	if !ok {
		b = &branch{}
		o.namespaces[namespace] = b
	}
	return b
}

// standing is where the first set of a namespace stands.
func (b *branch) standing() int { return b.waiting[0].standing() + arrivalsOfTurn*b.turns }

// place is the place of a set in the line of its namespace.
type place struct {
	set               reconcile.Request
	arrival, priority int
}

func (p place) standing() int { return p.arrival - arrivalsOfPriority*p.priority }

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
