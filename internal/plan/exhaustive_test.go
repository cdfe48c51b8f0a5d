// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

var exhaustive = flag.Bool("exhaustive", false, "check the planners in all small states, not only in the smallest")

// bounds are the limits of a small set.
type bounds struct {
	// replicas, unavailable and surge are the largest numbers of a configuration.
	replicas, unavailable, surge int
	// pods is the maximum number of pods that a set with random names starts with. places is the number of ordinals that are
	// covered.
	pods, places int
}

func (b bounds) within(limit bounds) bounds {
	return bounds{
		replicas:    min(b.replicas, limit.replicas),
		unavailable: min(b.unavailable, limit.unavailable),
		surge:       min(b.surge, limit.surge),
		pods:        min(b.pods, limit.pods),
		places:      min(b.places, limit.places),
	}
}

// variant is a family of configurations and the pods that they start with.
type variant struct {
	// words are the configuration without its numbers.
	words string
	// partitioned variants are checked with every partition.
	partitioned bool
	kinds       []string
	bounds      bounds
}

// kinds returns every pod at the revisions in every condition, and the given others.
func kinds(revisions []string, conditions string, more ...string) []string {
	var all []string
	for _, revision := range revisions {
		for _, condition := range conditions {
			all = append(all, revision+string(condition))
		}
	}
	return append(all, more...)
}

func variants() []variant {
	rolling := kinds([]string{"v0", "v1", "v2"}, "+r.!", "v1x", "v2x", "v1+@", "v2+@")
	// A set that has finished its rollout has pods at another revision only if it adopted them.
	rest := kinds([]string{"v1", "v2"}, "+r.!", "v1x", "v2x", "v2+@", "v2.@")
	claims := []string{"v1+$", "v2+$", "v0+$", "v1.$", "v2.$", "v0.$", "v1x$", "v2x$", "v2+@$", "-"}
	// The overdue pod vanishes in the end. Until then everything else must proceed.
	places := kinds([]string{"v0", "v1", "v2"}, "+r.!", "v1x", "v2X", "v1+@", "v2+@")
	hooked := []string{"v1+", "v1+&", "v1.&", "v1+^", "v2+&", "v2+^", "v2.", "v1x", "v2r"}
	hookedAtRest := []string{"v2+", "v2+&", "v2+^", "v2.", "v2x"}
	limited := []string{"v1+", "v1+&", "v1.&", "v1+^", "v1+=", "v2+&", "v2+=", "v2.", "v1x"}
	company := []string{"v0,", "v1.", "v1,", "v2.", "v2,", "v1x", "v2x"}
	companyWithClaims := []string{"v0,$", "v1.$", "v1,$", "v2.$", "v2,$", "v1x$", "v2x$", "-"}
	surge := []string{
		"v1+$", "v2+$", "v1.$", "v2.$", "v0.$", "v1x$", "v2+@$",
		"v1+$*", "v2+$*", "v1.$*", "v2.$*", "v0.$*", "v2x$*", "v2+@$*", "-*",
	}
	leaving := []string{"v1+", "v1+>", "v1.>", "v2+", "v2+>", "v2.>", "v0+>", "v0.", "v1x", "v2r"}
	leavingClaims := []string{"v1+$", "v1+>$", "v1.>$", "v2+$", "v2+>$", "v2.>$", "v1x$", "v2+>$*", "-", "-*"}
	few := []string{"v1+", "v2+", "v0+", "v1.", "v2.", "v0.", "v1x"}

	pods := bounds{replicas: 4, unavailable: 3, surge: 3, pods: 5}
	fewer := bounds{replicas: 4, unavailable: 2, surge: 2, pods: 4}
	noSurge := bounds{replicas: 4, unavailable: 3, pods: 5}
	four := bounds{replicas: 4, unavailable: 2, places: 4}
	five := bounds{replicas: 3, unavailable: 1, places: 5}
	return []variant{
		{words: "random v1>v2", partitioned: true, kinds: rolling, bounds: pods},
		{words: "random paused v1>v2", kinds: rolling, bounds: pods},
		{words: "random rejected v1>v2", kinds: rolling, bounds: pods},
		{words: "random v2", kinds: rest, bounds: pods},
		{words: "random ondelete v1>v2", kinds: rolling, bounds: noSurge},
		{words: "random recreate v1>v2", kinds: rolling, bounds: noSurge},
		{words: "random recreate rejected v1>v2", kinds: rolling, bounds: noSurge},
		{words: "random recreate paused v1>v2", kinds: rolling, bounds: noSurge},
		{words: "random forgotten v1>v2", partitioned: true, kinds: rolling, bounds: fewer},
		{words: "random scalemu=1 v1>v2", partitioned: true, kinds: rolling, bounds: fewer},
		{words: "random scalemu=1 v2", kinds: rest, bounds: fewer},
		{words: "random scalemu=2 claims v1>v2", kinds: claims, bounds: fewer},
		{words: "random v1>v2", partitioned: true, kinds: claims, bounds: fewer},
		{words: "random claims claimless v1>v2", partitioned: true, kinds: claims, bounds: fewer},
		{words: "random v2", kinds: claims, bounds: fewer},
		{words: "random claims v1>v2", partitioned: true, kinds: surge, bounds: fewer},
		{words: "random claims paused v1>v2", kinds: surge, bounds: fewer},
		{words: "random claims rejected v1>v2", kinds: surge, bounds: fewer},
		{words: "random claims v2", kinds: surge, bounds: fewer},
		{words: "random hooked v1>v2", partitioned: true, kinds: hooked, bounds: fewer},
		{words: "random hooked v2", kinds: hooked, bounds: fewer},
		{words: "ordinal hooked v1>v2", partitioned: true, kinds: hooked, bounds: four},
		{words: "ordered hooked v1>v2", partitioned: true, kinds: hooked, bounds: four},
		{words: "ordinal start=2 hooked v2", kinds: hookedAtRest, bounds: five},
		{words: "ordered start=2 hooked v2", kinds: hookedAtRest, bounds: five},
		{words: "ordered start=2 hooked v1>v2", kinds: hooked, bounds: bounds{replicas: 2, unavailable: 1, places: 4}},
		{words: "random hooked limited v1>v2", partitioned: true, kinds: limited, bounds: fewer},
		{words: "ordinal hooked limited v1>v2", partitioned: true, kinds: limited, bounds: four},
		{words: "ordered hooked limited v1>v2", partitioned: true, kinds: limited, bounds: four},
		{words: "random v1>v2", partitioned: true, kinds: leaving, bounds: pods},
		{words: "random v2", kinds: leaving, bounds: pods},
		{words: "random paused v1>v2", kinds: leaving, bounds: pods},
		{words: "random ondelete v1>v2", kinds: leaving, bounds: noSurge},
		{words: "random recreate v1>v2", kinds: leaving, bounds: noSurge},
		{words: "random claims v1>v2", partitioned: true, kinds: leavingClaims, bounds: fewer},
		{words: "random nowhere v1>v2", partitioned: true, kinds: leaving, bounds: fewer},
		{words: "ordinal v1>v2", partitioned: true, kinds: leaving, bounds: four},
		{words: "ordinal nowhere v1>v2", partitioned: true, kinds: leaving, bounds: four},
		{words: "ordered v1>v2", partitioned: true, kinds: leaving, bounds: four},
		{words: "ordered v2", kinds: leaving, bounds: four},
		{words: "quorum random v1>v2", kinds: company, bounds: bounds{replicas: 4, unavailable: 3, surge: 2, pods: 5}}, // more do not fit in cells
		{words: "quorum random v1>v2", kinds: companyWithClaims, bounds: fewer},
		{words: "quorum random scalemu=1 v1>v2", kinds: company, bounds: fewer},
		{words: "quorum ordinal scalemu=1 v1>v2", kinds: company, bounds: four},
		{words: "quorum ordinal v1>v2", kinds: company, bounds: four},
		{words: "ordinal v1>v2", partitioned: true, kinds: places, bounds: four},
		{words: "ordinal paused v1>v2", kinds: places, bounds: four},
		{words: "ordinal recreate v1>v2", kinds: few, bounds: four},
		{words: "ordinal recreate rejected v1>v2", kinds: few, bounds: four},
		{words: "ordinal forgotten v1>v2", partitioned: true, kinds: few, bounds: four},
		{words: "ordinal scalemu=1 v1>v2", partitioned: true, kinds: few, bounds: four},
		{words: "ordinal scalemu=1 start=1 v1>v2", kinds: few, bounds: five},
		{words: "ordered scalemu=1 v1>v2", kinds: few, bounds: four},
		{words: "ordinal start=1 v1>v2", partitioned: true, kinds: few, bounds: five},
		{words: "ordered v1>v2", partitioned: true, kinds: places, bounds: four},
		{words: "ordered start=1 recreate v1>v2", kinds: few, bounds: four},
		{words: "ordered ondelete v1>v2", kinds: few, bounds: four},
		{words: "ordered v2", kinds: few, bounds: four},
		{words: "ordered start=1 reserve=3 v1>v2", partitioned: true, kinds: few, bounds: five},
	}
}

// TestExhaustively starts from every state of every small set, and follows all paths from it. Each must end in the wanted
// state.
func TestExhaustively(t *testing.T) {
	t.Parallel()
	limit := bounds{replicas: 2, unavailable: 1, surge: 1, pods: 3, places: 3}
	if *exhaustive {
		limit = bounds{replicas: 4, unavailable: 3, surge: 3, pods: 5, places: 5}
	}
	total := 0
	for _, v := range variants() {
		t.Run(v.words, func(t *testing.T) {
			states, err := v.check(limit)
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d states", states)
			total += states
		})
	}
	t.Logf("%d states of all variants", total)
}

// check explores all states of a variant on all processors. It returns the number of states, and the first error.
func (v variant) check(limit bounds) (states int, err error) {
	b := v.bounds.within(limit)
	configs := make(chan string)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for config := range configs {
				w := newWorld(config, v.kinds)
				w.exploreAll(b)
				mu.Lock()
				states += len(w.visited)
				if err == nil {
					err = w.err
				}
				mu.Unlock()
			}
		})
	}
	for _, config := range v.configs(b) {
		configs <- config
	}
	close(configs)
	wg.Wait()
	return states, err
}

// configs returns the configurations of a variant, with all numbers within bounds.
func (v variant) configs(b bounds) []string {
	var all []string
	for replicas := range b.replicas + 1 {
		for partition := range replicas + 1 {
			if partition > 0 && !v.partitioned {
				break
			}
			for unavailable := range b.unavailable + 1 {
				for surge := range b.surge + 1 {
					if unavailable+surge > 0 {
						all = append(all, fmt.Sprintf("%s R=%d p=%d mu=%d surge=%d", v.words, replicas, partition, unavailable, surge))
					}
				}
			}
		}
	}
	return all
}

// exploreAll starts from every state within bounds.
func (w *world) exploreAll(b bounds) {
	end := kind(len(w.kinds))
	if w.snap.Ordinal() {
		w.assign(cells{}, 0, b.places, end)
		return
	}
	w.choose(cells{}, 0, b.pods, end)
}

// start explores all paths from a state, if it can come about.
func (w *world) start(c *cells) {
	if w.ruptured(c) {
		return
	}
	most := w.snap.Limits.Replicas
	least := most
	if w.limited() && !w.quorum { // a quorum that never was does not come about under a limit
		w.show(c)
		least = min(w.snap.Placed(), most)
	}
	for reached := least; reached <= most; reached++ {
		sorted := *c
		w.snap.Reached = reached
		w.explore(w.packed(&sorted))
	}
}

// assign gives each ordinal every kind, or no pod.
func (w *world) assign(c cells, i, places int, end kind) {
	if i == places {
		w.start(&c)
		return
	}
	for k := range end {
		c[i] = k
		w.assign(c, i+1, places, end)
	}
}

// choose chooses every multiset of kinds.
func (w *world) choose(c cells, i, pods int, end kind) {
	w.start(&c)
	if i == pods {
		return
	}
	least := nothing + 1
	if i > 0 {
		least = c[i-1]
	}
	for k := least; k < end; k++ {
		c[i] = k
		w.choose(c, i+1, pods, end)
	}
}

// TestSettled fails if the check treats an unsettled set as settled.
func TestSettled(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config, state string
		want          bool
	}{
		"all there":       {config: "random R=2 p=1 v1>v2", state: "a:v1+ b:v2+", want: true},
		"one too few":     {config: "random R=2 p=1 v1>v2", state: "a:v1+"},
		"one too many":    {config: "random R=1 p=1 v1>v2", state: "a:v1+ b:v2+"},
		"not available":   {config: "random R=2 p=1 v1>v2", state: "a:v1+ b:v2r"},
		"wrong mix":       {config: "random R=2 p=1 v1>v2", state: "a:v2+ b:v2+"},
		"paused":          {config: "random R=2 paused v1>v2", state: "a:v1+ b:v2+", want: true},
		"one is going":    {config: "random R=1 v1", state: "a:v1+ b:v1x"},
		"one has ended":   {config: "random R=1 v1", state: "a:v1+ b:v1!"},
		"one is named":    {config: "random R=1 v1", state: "a:v1+@"},
		"wrong order":     {config: "ordinal R=2 p=1 v1>v2", state: "0:v2+ 1:v1+"},
		"outside":         {config: "ordinal R=2 start=1 v1", state: "0:v1+ 1:v1+"},
		"ordinals, moved": {config: "ordinal R=2 start=1 v1", state: "1:v1+ 2:v1+", want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f facts
			f.gather(snapshottest.Parse(tt.config, tt.state), &action.Plan{})
			if got := f.settled(); got != tt.want {
				t.Errorf("settled = %v for %q in %q", got, tt.state, tt.config)
			}
		})
	}
}
