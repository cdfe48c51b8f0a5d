// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

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
	// maxCost bounds how long events of a very large set wait.
	maxCost = time.Second
	// credit is what a set may spend at once: a small set gets dozens of looks, one of thousands of pods one or two.
	credit = 500 * time.Millisecond
)

// attention rations the looks that events lead to. It charges each look at a set to that set, and says how long its events
// have to wait until the set can afford the next one. What users do to the set itself does not wait, but is charged.
type attention struct {
	mu sync.Mutex
	// paid is when each set will have paid for its looks.
	paid map[types.NamespacedName]time.Time
}

// glance is a look at so many pods, and how many writes it led to.
type glance struct{ pods, writes int }

func (g glance) cost() time.Duration {
	ofPods := time.Duration(g.pods) * costOfPod
	if g.writes*usefulPods < g.pods {
		ofPods *= vain
	}
	return min(costOfLook+ofPods, maxCost)
}

// charge notes a look.
func (a *attention) charge(set types.NamespacedName, now time.Time, g glance) {
	cost := g.cost()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paid == nil {
		a.paid = map[types.NamespacedName]time.Time{}
	}
	paid, most := a.paid[set], now.Add(credit+maxCost)
	if paid.Before(now) {
		paid = now
	}
	if paid = paid.Add(cost); paid.After(most) {
		paid = most // also after a clock was set back
	}
	a.paid[set] = paid
}

// wait is how long an event of a set waits.
func (a *attention) wait(set types.NamespacedName, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return min(max(0, a.paid[set].Add(-credit).Sub(now)), maxCost)
}

// forget drops what is known of a set that is gone.
func (a *attention) forget(set types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.paid, set)
}
