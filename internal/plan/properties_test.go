// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
)

// TestProperties runs sets of up to fifty pods from any state to the end. On the way some actions fail, creates are refused
// or wait for a back-off, and pods become ready in any order.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		for range 100 + 40*(len(c.pods)+c.replicas) {
			if c.step(t) {
				return
			}
		}
		t.Fatalf("not settled in the end\nconfig: %q\nstate: %q", c.config(), c.state())
	})
}

// cluster is a set with pods that start and end.
type cluster struct {
	ordinal  bool
	replicas int
	// words are the configuration. trouble holds those of its words that are removed later.
	words, trouble []string
	pods           []*pod
	random         *rand.Rand
	// reached is how many pods the set has had at once.
	reached int
	facts   facts
}

// pod is an identity in the notation of package snapshottest.
type pod struct {
	id, revision string
	mark         byte
	named        bool
	leaving      bool
	claims       bool
}

func (p *pod) String() string {
	text := p.id + ":" + p.revision + string(p.mark)
	if p.leaving {
		text += ">"
	}
	if p.named {
		text += "@"
	}
	if p.claims {
		text += "$"
	}
	return text
}

func drawCluster(t *rapid.T) *cluster {
	number := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
	oneOf := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name) }
	c := &cluster{replicas: number("R", 40), random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}

	identity := oneOf("identity", "random", "ordinal", "ordered")
	c.ordinal = identity != "random"
	strategy := oneOf("strategy", "", "", "ondelete", "recreate")
	partition, surge := number("p", c.replicas), 0
	if c.ordinal {
		c.words = append(c.words, fmt.Sprintf("start=%d reserve=%d", number("start", 3), number("reserve", 9)))
	} else {
		surge = number("surge", 10)
	}
	if strategy != "" {
		partition, surge = 0, 0
	}
	unavailable := number("mu", 10)
	if surge == 0 {
		unavailable = max(1, unavailable)
	}
	c.words = append(c.words, identity, strategy, oneOf("revisions", "v1>v2", "v1>v2", "v2"),
		oneOf("limit", "", "scalemu=1", "scalemu=5"), oneOf("paused", "", "", "paused"),
		oneOf("rejected", "", "", "rejected"), oneOf("forgotten", "", "", "", "forgotten"),
		fmt.Sprintf("R=%d p=%d mu=%d surge=%d", c.replicas, partition, unavailable, surge))
	c.trouble = []string{oneOf("refused", "", "refused"), oneOf("wait", "", "wait=60"), oneOf("nowhere", "", "", "nowhere")}
	c.drawPods(t)
	return c
}

func (c *cluster) drawPods(t *rapid.T) {
	claims := !c.ordinal && rapid.Bool().Draw(t, "claims")
	if claims {
		c.words = append(c.words, rapid.SampledFrom([]string{"", "claims", "claims claimless"}).Draw(t, "claim templates"))
	}
	free := rapid.SliceOfNDistinct(rapid.IntRange(10, 99), 0, 50, rapid.ID)
	if c.ordinal {
		free = rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 0, 50, rapid.ID)
	}
	for _, id := range free.Draw(t, "ids") {
		p := &pod{
			id:       strconv.Itoa(id),
			revision: rapid.SampledFrom([]string{"v0", "v1", "v2", "v2"}).Draw(t, "revision"),
			mark:     rapid.SampledFrom([]byte("+++r.xX!")).Draw(t, "mark"),
			named:    rapid.IntRange(0, 9).Draw(t, "named") == 0,
			leaving:  rapid.IntRange(0, 9).Draw(t, "leaving") == 0,
			claims:   claims,
		}
		c.pods = append(c.pods, p)
	}
}

func (c *cluster) config() string {
	return strings.Join(append(slices.Clone(c.words), c.trouble...), " ")
}

func (c *cluster) state() string {
	slices.SortFunc(c.pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(len(a.id), len(b.id)), strings.Compare(a.id, b.id))
	})
	words := make([]string, len(c.pods))
	for i, p := range c.pods {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

// step makes a plan, checks it, applies some of it, and lets some pods advance. It reports whether the set is settled.
func (c *cluster) step(t *rapid.T) bool {
	snap := snapshottest.Parse(c.config(), c.state())
	c.reached = max(c.reached, snap.Reached)
	snap.Reached = c.reached
	snap.Unseen = max(0, snap.Reached-snap.Placed())
	snap.Preflights = map[string]snapshot.Preflight{snap.Current.Name: {}, snap.Update.Name: {}}
	p := plan.Next(snap)
	snap.FindSteady()
	if passing := plan.Next(snap); !reflect.DeepEqual(passing, p) {
		t.Fatalf("another plan if steady pods are passed over\nconfig: %q\nstate: %q\n%s\nwithout: %s", c.config(), c.state(), &passing, &p)
	}
	c.facts.gather(snap, &p)
	for _, r := range rules() {
		if !r.kept(&c.facts) {
			t.Fatalf("broken: %s\nconfig: %q\nstate: %q\n%s", r.name, c.config(), c.state(), &p)
		}
	}
	settled := c.facts.settled()
	work := slices.ContainsFunc(p.Actions, aboutPods)
	if settled && (work || slices.ContainsFunc(p.Held, matters)) {
		t.Fatalf("a settled set has work\nconfig: %q\nstate: %q\n%s", c.config(), c.state(), &p)
	}
	for _, a := range p.Actions {
		if c.random.IntN(4) > 0 {
			c.carryOut(a, snap)
		}
	}
	c.liveOn()
	if c.random.IntN(10) == 0 {
		c.trouble = nil
	}
	return settled
}

// aboutPods reports whether an action creates or deletes a pod. The test does not cover claims.
func aboutPods(a action.Action) bool {
	_, creates := a.(action.Create)
	_, deletes := a.(action.Delete)
	return creates || deletes
}

func (c *cluster) carryOut(a action.Action, snap *snapshot.Set) {
	if create, ok := a.(action.Create); ok && !snap.RefusesCreate(create.ID) {
		claims := len(c.pods) > 0 && c.pods[0].claims
		c.pods = append(c.pods, &pod{id: create.ID, revision: create.Revision, mark: '.', claims: claims})
	}
	if d, ok := a.(action.Delete); ok {
		id := strings.TrimPrefix(d.Pod.Name, "web-")
		i := slices.IndexFunc(c.pods, func(p *pod) bool { return p.id == id })
		c.pods[i].mark, c.pods[i].named, c.pods[i].leaving = 'x', false, false
	}
}

// liveOn lets half of the pods advance one step, and terminating ones vanish.
func (c *cluster) liveOn() {
	c.pods = slices.DeleteFunc(c.pods, func(p *pod) bool {
		if c.random.IntN(2) == 0 {
			return false
		}
		switch p.mark {
		case '.':
			p.mark = 'r'
		case 'r':
			p.mark = '+'
		case 'x', 'X':
			return true
		}
		return false
	})
}
