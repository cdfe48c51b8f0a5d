// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// surgeRules returns the invariants of a single plan for a set with ordinals and surge. The rules of other sets know no surge
// that is no member.
func surgeRules() []rule {
	return []rule{
		{"a pod is created under a free identity, once", createsFreeIdentities},
		{"a pod is deleted once, and for a reason that holds", deletesForAReason},
		{"a place is not filled twice", fillsPlacesOnce},
		{"no pod is written to twice", writesOnce},
		{"no more members come than R, and no more surge than there may be", surgeIsLimited},
		{"surge has the next ordinals above the range, and comes when each member has a pod", surgeComesAboveMembers},
		{"what serves stays R - maxUnavailable, and members R - max(1, maxUnavailable)", surgePaysForOne},
		{"surge that serves goes when R others do", surgeGoesLast},
	}
}

func surgeIsLimited(f *facts) bool {
	members, surge := 0, 0
	for _, c := range f.creates {
		if c.Surge {
			surge++
		} else {
			members++
		}
	}
	return (members == 0 || f.staying+members <= f.snap.Limits.Replicas) && (surge == 0 || f.extra+surge <= f.snap.Limits.MaxSurge)
}

func surgeComesAboveMembers(f *facts) bool {
	for _, c := range f.creates {
		ordinal, err := strconv.Atoi(c.ID)
		k, usable := f.snap.Ordinals.Rank(ordinal)
		if err != nil || !usable || c.Surge != (k >= f.snap.Limits.Replicas) || k >= f.snap.Limits.Replicas+f.snap.Limits.MaxSurge {
			return false
		}
		if c.Surge && f.staying < f.snap.Limits.Replicas {
			return false
		}
	}
	return true
}

// left counts the available members and surge pods that a plan leaves, and the available members and surge that it takes.
func (f *facts) left() (members, surge, takesMembers, takesSurge int) {
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		_, used := f.snap.InUse(r.Ordinal)
		taken := slices.ContainsFunc(f.deletes, func(d deletion) bool { return d.replica == r })
		switch {
		case !r.Available || !used && !r.Surge:
		case used && taken:
			takesMembers++
		case used:
			members++
		case taken:
			takesSurge++
		default:
			surge++
		}
	}
	return members, surge, takesMembers, takesSurge
}

func surgePaysForOne(f *facts) bool {
	l := f.snap.Limits
	members, surge, takesMembers, _ := f.left()
	return takesMembers == 0 || members+surge >= l.Replicas-l.MaxUnavailable && members >= l.Replicas-max(1, l.MaxUnavailable)
}

func surgeGoesLast(f *facts) bool {
	members, surge, _, takesSurge := f.left()
	return takesSurge == 0 || members+surge >= f.snap.Limits.Replicas
}

// TestExhaustivelyWithSurgeOfOrdinals follows all paths from every state of small sets with ordinals and surge.
func TestExhaustivelyWithSurgeOfOrdinals(t *testing.T) {
	t.Parallel()
	members := []string{"v1+", "v2+", "v1.", "v2.", "v1r", "v2r", "v1x", "v2x", "v1+@"}
	surge := []string{"v1+*", "v2+*", "v1.*", "v2.*", "v2x*", "v2+@*"}
	most := bounds{replicas: 2, unavailable: 1, surge: 1}
	if *exhaustive {
		most = bounds{replicas: 3, unavailable: 2, surge: 2}
	}
	for _, words := range []string{"ordinal v1>v2", "ordered v1>v2", "ordinal rejected v1>v2", "ordinal v2", "ordered start=1 v1>v2"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			members := members
			if strings.Contains(words, "start") { // the ordinals below give many more states
				members = []string{"v1+", "v2+", "v1.", "v2x"}
			}
			states := 0
			for _, config := range (variant{words: words, partitioned: strings.Contains(words, ">")}).configs(most) {
				w := newWorld(config, append(members, surge...))
				if w.snap.Limits.MaxSurge == 0 {
					continue
				}
				w.rules = surgeRules()
				w.assignSurge(cells{}, 0)
				if states += len(w.visited); w.err != nil {
					t.Fatal(w.err)
				}
			}
			t.Logf("%d states", states)
		})
	}
}

// assignSurge gives each ordinal of a member every kind without the mark of surge, and each of surge, and one above, every kind with it.
func (w *world) assignSurge(c cells, ordinal int) {
	k, usable := w.snap.Ordinals.Rank(ordinal)
	if usable && k > w.snap.Limits.Replicas+w.snap.Limits.MaxSurge {
		w.start(&c)
		return
	}
	for kind := range kind(len(w.kinds)) {
		isSurge := strings.HasSuffix(w.kinds[kind], "*")
		if kind != nothing && isSurge != (usable && k >= w.snap.Limits.Replicas) {
			continue
		}
		c[ordinal] = kind
		w.assignSurge(c, ordinal+1)
	}
}
