// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"container/heap"
	"time"
)

// visits are the visits of kubelets, the next one first.
type visits []visit

type visit struct {
	at      time.Time
	pod     *tracked
	planned int
}

// first returns the next visit that counts.
func (v *visits) first() (visit, bool) {
	for len(*v) > 0 {
		if next := (*v)[0]; next.planned == next.pod.planned {
			return next, true
		}
		heap.Pop(v)
	}
	return visit{}, false
}

// Len implements heap.Interface.
func (v *visits) Len() int { return len(*v) }

// Less implements heap.Interface.
func (v *visits) Less(i, j int) bool {
	a, b := (*v)[i], (*v)[j]
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.pod.number, b.pod.number)) < 0
}

// Swap implements heap.Interface.
func (v *visits) Swap(i, j int) { (*v)[i], (*v)[j] = (*v)[j], (*v)[i] }

// Push implements heap.Interface.
func (v *visits) Push(x any) {
	if next, ok := x.(visit); ok {
		*v = append(*v, next)
	}
}

// Pop implements heap.Interface.
func (v *visits) Pop() any {
	last := (*v)[len(*v)-1]
	*v = (*v)[:len(*v)-1]
	return last
}
