// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import "time"

// A look at a set has a fixed cost and a cost for each pod. Both are a hundred times the processor time that they stand for, so that
// no set takes more than about a hundredth of a core.
const (
	costOfLook = 10 * time.Millisecond
	costOfPod  = 100 * time.Microsecond
	// idleFactor is how many times as much each pod costs if the look leads to fewer writes than one for every usefulPods pods: a
	// large set is looked at when there is something to do for several of its pods.
	idleFactor = 4
	usefulPods = 200
	// maxCost bounds how long events and timers of a very large set wait.
	maxCost = time.Second
	// credit is the cost that a set may spend at once: a small set gets dozens of looks, one of thousands of pods one or two.
	credit = 500 * time.Millisecond
)

// Look is a look at so many pods, and how many writes it led to.
type Look struct{ Pods, Writes int }

func (l Look) cost() time.Duration {
	ofPods := time.Duration(l.Pods) * costOfPod
	if l.Writes*usefulPods < l.Pods {
		ofPods *= idleFactor
	}
	return min(costOfLook+ofPods, maxCost)
}

// account is the time at which its holder, a set or a namespace, has paid for the looks at it. A time in the past means that it owes
// nothing.
type account struct{ paid time.Time }

// charge charges the account. It owes at most credit and maxCost, also after a clock was set back.
func (a account) charge(now time.Time, cost time.Duration) account {
	paid, most := a.paid, now.Add(credit+maxCost)
	if paid.Before(now) {
		paid = now
	}
	if paid = paid.Add(cost); paid.After(most) {
		paid = most
	}
	return account{paid}
}

// wait returns how long its holder waits until it can afford a look.
func (a account) wait(now time.Time) time.Duration {
	return min(max(0, a.paid.Add(-credit).Sub(now)), maxCost)
}
