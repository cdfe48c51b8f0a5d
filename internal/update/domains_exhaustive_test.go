// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/update"
)

// zoned is a set of three zones with three pods each, and its plan.
type zoned struct {
	snap *snapshot.Set
	plan action.Plan
	// goes are the pods that the plan deletes.
	goes []*snapshot.Replica
}

// in returns the pods of the zone of another, and those of the other zones.
func (z *zoned) in(pod *snapshot.Replica) (same, others []*snapshot.Replica) {
	for i := range z.snap.Replicas {
		if r := &z.snap.Replicas[i]; zoneOf(r) == zoneOf(pod) {
			same = append(same, r)
		} else {
			others = append(others, r)
		}
	}
	return same, others
}

func zoneOf(r *snapshot.Replica) string { return r.Pod.Labels[snapshottest.Zone] }

func isOld(r *snapshot.Replica) bool { return r.Active() && r.Revision == "v1" }

func isLacking(r *snapshot.Replica) bool { return !r.Available }

func number(of []*snapshot.Replica, is func(*snapshot.Replica) bool) (n int) {
	for _, r := range of {
		if is(r) {
			n++
		}
	}
	return n
}

// wrong returns what is wrong with the plan; empty if nothing is.
func (z *zoned) wrong() string {
	all := make([]*snapshot.Replica, len(z.snap.Replicas))
	for i := range z.snap.Replicas {
		all[i] = &z.snap.Replicas[i]
	}
	zone := ""
	for _, r := range z.goes {
		if !r.Ready {
			continue
		}
		switch same, others := z.in(r); {
		case !slices.Contains([]string{"", zoneOf(r)}, zone):
			return "two zones are disturbed"
		case number(others, isLacking) > 0:
			return "a zone is disturbed while another is not whole"
		case !comesFirst(same, others):
			return "zone " + zoneOf(r) + " is not the one to come first"
		}
		zone = zoneOf(r)
	}
	spare := z.snap.Limits.MaxUnavailable - number(all, isLacking)
	switch due := number(all, isOld); {
	case number(all, isLacking) > 0 || due == 0:
		return ""
	case zone == "":
		return "no zone begins although all pods are available"
	default:
		same, _ := z.in(z.goes[0])
		if want := min(spare, number(same, isOld)); len(z.goes) != want {
			return fmt.Sprintf("%d pods go, %d of zone %s may", len(z.goes), want, zone)
		}
		return ""
	}
}

// comesFirst reports whether a zone has moved further than all others that have begun or, if none has begun, is the first by
// name of those with old pods.
func comesFirst(same, others []*snapshot.Replica) bool {
	mine := begun(same)
	for other := range slices.Chunk(others, 3) {
		theirs := begun(other)
		earlier := number(other, isOld) > 0 && zoneOf(other[0]) < zoneOf(same[0])
		if theirs > mine || theirs == mine && earlier {
			return false
		}
	}
	return true
}

// begun returns how many pods of a zone have moved while others have not.
func begun(pods []*snapshot.Replica) int {
	if number(pods, isOld) == 0 {
		return 0
	}
	return number(pods, func(r *snapshot.Replica) bool { return r.Active() && r.Revision == "v2" })
}

// TestDomainsExhaustively plans for every state of three zones with three pods each.
func TestDomainsExhaustively(t *testing.T) {
	t.Parallel()
	kinds := []string{"v1+", "v1.", "v1r", "v1x", "v2+", "v2."}
	if testing.Short() {
		kinds = []string{"v1+", "v1.", "v2+", "v2."}
	}
	for _, config := range []string{"random R=9 mu=1 soak=0 v1>v2", "random R=9 mu=3 soak=0 v1>v2", "ordinal R=9 mu=4 soak=0 v1>v2"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			replicas := eachKind(config, kinds)
			zones := triples(len(kinds))
			snap := snapshottest.Parse(config, "")
			snap.Replicas = make([]snapshot.Replica, 9)
			for n := range len(zones) * len(zones) * len(zones) {
				z := zoned{snap: snap}
				for zone := range 3 {
					for i, kind := range zones[n%len(zones)] {
						snap.Replicas[3*zone+i] = replicas[3*zone+i][kind]
					}
					n /= len(zones)
				}
				w := desired.Of(snap)
				z.plan = update.Plan(snap, w, scaled(snap, w))
				for _, a := range z.plan.Actions {
					if d, ok := a.(action.Delete); ok {
						i := slices.IndexFunc(snap.Replicas, func(r snapshot.Replica) bool { return r.Pod == d.Pod })
						z.goes = append(z.goes, &snap.Replicas[i])
					}
				}
				if wrong := z.wrong(); wrong != "" {
					t.Fatalf("%s in %s:\n%s", wrong, shown(snap), z.plan.String())
				}
			}
		})
	}
}

// eachKind returns the pod of each place in each kind.
func eachKind(config string, kinds []string) (replicas [9][]snapshot.Replica) {
	for i := range replicas {
		for _, kind := range kinds {
			id := strconv.Itoa(i)
			if strings.HasPrefix(config, "random") {
				id = string(rune('a' + i))
			}
			parsed := snapshottest.Parse(config, fmt.Sprintf("%c/%s:%s", 'a'+i/3, id, kind))
			replicas[i] = append(replicas[i], parsed.Replicas[0])
		}
	}
	return replicas
}

// triples returns all multisets of three of n kinds.
func triples(n int) (all [][3]int) {
	for a := range n {
		for b := a; b < n; b++ {
			for c := b; c < n; c++ {
				all = append(all, [3]int{a, b, c})
			}
		}
	}
	return all
}

// shown formats the pods of a set.
func shown(snap *snapshot.Set) string {
	var words []string
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		words = append(words, fmt.Sprintf("%s/%s:%s available=%t ready=%t terminating=%t", zoneOf(r), r.ID, r.Revision, r.Available, r.Ready, r.Terminating))
	}
	return "\n" + strings.Join(words, "\n")
}
