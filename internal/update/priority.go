// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// prioritizedFirst orders healthy pods by greater weight, then by the greater number in their labels.
func prioritizedFirst(p snapshot.Priorities, a, b *snapshot.Replica) int {
	if a.Broken() || b.Broken() {
		return 0
	}
	if c := cmp.Compare(weight(p, b), weight(p, a)); c != 0 {
		return c
	}
	for _, key := range p.Keys {
		if c := greaterNumberFirst(a, b, key); c != 0 {
			return c
		}
	}
	return 0
}

// weight returns the sum of the weights that match a pod, between 0 and 3,200.
func weight(p snapshot.Priorities, r *snapshot.Replica) int32 {
	var sum int32
	for _, w := range p.Weights {
		if w.Selector.Matches(labels.Set(r.Pod.Labels)) {
			sum += w.Value
		}
	}
	return sum
}

// greaterNumberFirst compares the trailing numbers of a label. Pods without the label, or without a number in it, come
// last.
func greaterNumberFirst(a, b *snapshot.Replica, key string) int {
	x, hasX := trailingNumber(a.Pod.Labels[key])
	y, hasY := trailingNumber(b.Pod.Labels[key])
	if c := trueFirst(hasX, hasY); c != 0 {
		return c
	}
	// Label values are up to 63 digits long: longer is greater, and equally long ones compare as text.
	return cmp.Or(cmp.Compare(len(y), len(x)), strings.Compare(y, x))
}

// trailingNumber returns the digits that end a text, without leading zeros; false if there are none.
func trailingNumber(s string) (string, bool) {
	digits := s[len(strings.TrimRight(s, "0123456789")):]
	return strings.TrimLeft(digits, "0"), digits != ""
}

// scatterClasses spreads, within each class of equally urgent healthy pods, those that share a label.
func scatterClasses(moves []*candidate, terms []v1beta1.UpdateScatterTerm) {
	for start := 0; len(terms) > 0 && start < len(moves); {
		end := start + 1
		for end < len(moves) && moves[start].class == moves[end].class {
			end++
		}
		if !moves[start].Replica.Broken() {
			scatter(moves[start:end], terms)
		}
		start = end
	}
}

// scatter spreads the pods that each term names over the others. Both keep their order. The next named pod gets position
// u/(n+1) of the n named and u other pods that are left. A later plan, which sees only the pods that are left, places the
// next named pod by the same rule. So no two named pods follow each other from one step to the next while there are as many
// others.
func scatter(moves []*candidate, terms []v1beta1.UpdateScatterTerm) {
	for _, term := range terms {
		var named, others []*candidate
		for _, m := range moves {
			if value, ok := m.Replica.Pod.Labels[term.Key]; ok && value == term.Value {
				named = append(named, m)
			} else {
				others = append(others, m)
			}
		}
		next := moves[:0]
		for ; len(named) > 0; named = named[1:] {
			before := len(others) / (len(named) + 1)
			next = append(append(next, others[:before]...), named[0])
			others = others[before:]
		}
		copy(moves[len(next):], others)
	}
}
