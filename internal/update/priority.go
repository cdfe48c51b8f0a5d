// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/observed"
)

// prioritizedFirst puts healthy pods with the greater weight first, then those whose labels spell the greater number.
func prioritizedFirst(p observed.Priorities, a, b *observed.Replica) int {
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

// weight is the sum of the weights that match a pod, between 0 and 3,200.
func weight(p observed.Priorities, r *observed.Replica) int32 {
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
func greaterNumberFirst(a, b *observed.Replica, key string) int {
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
func scatterClasses(moves []*candidate, terms []v1alpha1.UpdateScatterTerm) {
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

// scatter interleaves groups of pods in proportion to their sizes, each group keeping its order: the i-th of n pods of a
// group stands at (2i+1)/2n of the way. A group are the pods that match the same terms.
func scatter(moves []*candidate, terms []v1alpha1.UpdateScatterTerm) {
	type spread struct {
		*candidate

		group        string
		index, total int
	}
	sizes := map[string]int{}
	spreads := make([]spread, len(moves))
	for i, m := range moves {
		group := matching(m.Replica, terms)
		spreads[i] = spread{candidate: m, group: group, index: sizes[group]}
		sizes[group]++
	}
	for i := range spreads {
		spreads[i].total = sizes[spreads[i].group]
	}
	slices.SortStableFunc(spreads, func(a, b spread) int {
		return cmp.Compare((2*a.index+1)*b.total, (2*b.index+1)*a.total)
	})
	for i := range spreads {
		moves[i] = spreads[i].candidate
	}
}

// matching spells which terms match a pod.
func matching(r *observed.Replica, terms []v1alpha1.UpdateScatterTerm) string {
	spelled := make([]byte, len(terms))
	for i, term := range terms {
		spelled[i] = '-'
		if value, ok := r.Pod.Labels[term.Key]; ok && value == term.Value {
			spelled[i] = '+'
		}
	}
	return string(spelled)
}
