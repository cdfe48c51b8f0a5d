// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// What a look at a set costs: something, and something more for each pod. The units are a hundred times the processor time
// that it takes, so that no set, whatever happens to its pods, gets more than about a hundredth of a core.
const (
	costOfLook = 10 * time.Millisecond
	costOfPod  = 100 * time.Microsecond
	// vain is how many times as much each pod costs if the look leads to fewer writes than one for every usefulPods pods: a
	// large set is looked at when there is something to do for several of its pods.
	vain       = 4
	usefulPods = 200
	// maxCost bounds how long events and timers of a very large set wait.
	maxCost = time.Second
	// credit is what a set may spend at once: a small set gets dozens of looks, one of thousands of pods one or two.
	credit = 500 * time.Millisecond
)

// budget rations the looks that events and timers lead to. It charges each look at a set to that set, and says how long its
// events and timers have to wait until the set can afford the next one. What users do to the set itself does not wait, but
// is charged.
type budget struct {
	mu sync.Mutex
	// paid is when each set will have paid for its looks.
	paid map[types.NamespacedName]time.Time
}

// Look is a look at so many pods, and how many writes it led to.
type Look struct{ Pods, Writes int }

func (l Look) cost() time.Duration {
	ofPods := time.Duration(l.Pods) * costOfPod
	if l.Writes*usefulPods < l.Pods {
		ofPods *= vain
	}
	return min(costOfLook+ofPods, maxCost)
}

// Charge notes a look at a set, and returns how long its timers have to wait at least. One look then serves them and the
// events that waited meanwhile.
func (r *Router) Charge(set types.NamespacedName, now time.Time, l Look) time.Duration {
	r.budget.charge(set, now, l)
	return r.budget.wait(set, now)
}

// charge notes a look.
func (b *budget) charge(set types.NamespacedName, now time.Time, l Look) {
	cost := l.cost()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paid == nil {
		b.paid = map[types.NamespacedName]time.Time{}
	}
	paid, most := b.paid[set], now.Add(credit+maxCost)
	if paid.Before(now) {
		paid = now
	}
	if paid = paid.Add(cost); paid.After(most) {
		paid = most // also after a clock was set back
	}
	b.paid[set] = paid
}

// wait is how long an event of a set waits.
func (b *budget) wait(set types.NamespacedName, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(max(0, b.paid[set].Add(-credit).Sub(now)), maxCost)
}

// forget drops what is known of a set that is gone.
func (b *budget) forget(set types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.paid, set)
}
