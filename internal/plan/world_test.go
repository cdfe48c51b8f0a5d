// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
)

// kind is the state of an identity: an index into the kinds of a world; 0 is an identity without pod and claims.
type kind uint8

const nothing kind = 0

// cells are the kinds of up to twelve identities. In a set with ordinals the index is the ordinal. In a set with random
// names the kinds are sorted, because only their numbers count.
type cells [12]kind

// state holds cells in one word, five bits a cell, and how many pods a set with a limit on creation has had in the four bits
// above. It is the key of visited states.
type state uint64

// reachedAt is the first of those four bits.
const reachedAt = 5 * len(cells{})

func (s state) reached() int { return int(s >> reachedAt) }

func pack(c *cells) state {
	var s state
	for i, k := range c {
		s |= state(k) << (5 * i)
	}
	return s
}

func (s state) unpack() (c cells) {
	for i := range c {
		c[i] = kind(s >> (5 * i) & 31)
	}
	return c
}

// world is one configuration of a set, with everything that may happen to its pods. Planners and pods take turns in any
// order: a plan is applied, a pod becomes ready, then available, or a terminating one vanishes. Nothing gets worse by
// itself, so a set that returns to an earlier state is in a loop.
type world struct {
	config string
	snap   *snapshot.Set
	// kinds holds each kind in the notation of package snapshottest. replicas holds each kind at each index.
	kinds    []string
	replicas [len(cells{})][]snapshot.Replica
	// A pod of a kind becomes next by itself, deleted when it is deleted, and prepared or normal when its lifecycle state is
	// written.
	next, deleted, prepared, normal []kind
	rules                           []rule
	facts                           facts
	// quorum is true in worlds whose pods become ready only together: all wanted ones, at the update revision.
	quorum bool

	// visited holds the states that were explored, open those on the path to the present one.
	visited map[state]bool
	open    []state
	err     error
}

// newWorld returns the world of a configuration, which may begin with the word quorum. It has the kinds that states start from, and
// all that follow from them.
func newWorld(config string, start []string) *world {
	alone := strings.Replace(config, "quorum ", "", 1)
	quorum := alone != config
	config = alone
	w := &world{config: config, quorum: quorum, snap: snapshottest.Parse(config, ""), rules: rules(), visited: map[state]bool{}}
	w.snap.Preflights = map[string]snapshot.Preflight{w.snap.Current.Name: {}, w.snap.Update.Name: {}}
	w.add("")
	for _, text := range start {
		w.add(text)
	}
	claims := ""
	if strings.HasSuffix(start[0], "$") { // all pods have claims, and the test does not cover claims
		claims = "$"
		w.snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta1.RetainClaims}
	}
	w.add(w.snap.Current.Name + "." + claims)
	w.add(w.snap.Update.Name + "." + claims)
	if len(w.snap.Spec.VolumeClaimTemplates) > 0 {
		w.add(w.snap.Current.Name + "." + claims + "*")
		w.add(w.snap.Update.Name + "." + claims + "*")
	}
	return w
}

// add adds a kind, and every kind that it can become.
func (w *world) add(text string) kind {
	if i := slices.Index(w.kinds, text); i >= 0 {
		return kind(i)
	}
	k := kind(len(w.kinds))
	if k > 31 {
		panic("more kinds than a state can distinguish")
	}
	w.kinds = append(w.kinds, text)
	w.next, w.deleted = append(w.next, k), append(w.deleted, k)
	w.prepared, w.normal = append(w.prepared, k), append(w.normal, k)
	for i := range w.replicas {
		w.replicas[i] = append(w.replicas[i], w.replica(i, text))
	}
	if text == "" || strings.HasPrefix(text, "-") {
		return k
	}
	pod, isSurge := strings.CutSuffix(text, "*")
	pod, hasClaims := strings.CutSuffix(pod, "$")
	if bare := strings.TrimRight(text, "&^%="); bare != text {
		w.addHooked(k, bare, text[len(bare):])
		return k
	}
	pod, isNamed := strings.CutSuffix(pod, "@")
	pod, leaves := strings.CutSuffix(pod, ">")
	revision, mark := pod[:len(pod)-1], pod[len(pod)-1:]
	suffix := strings.TrimPrefix(text, pod)
	switch mark {
	case "x", "X":
		if hasClaims && !w.snap.Ordinal() {
			w.next[k] = w.add("-" + map[bool]string{true: "*"}[isSurge])
		} else {
			w.next[k] = nothing
		}
		return k
	case ".":
		after := "r"
		if w.quorum {
			after = ","
		}
		w.next[k] = w.add(revision + after + suffix)
	case ",":
		if revision == w.snap.Update.Name {
			w.next[k] = w.add(revision + "r" + suffix)
		}
	case "r":
		w.next[k] = w.add(revision + "+" + suffix)
	}
	if isNamed || leaves {
		suffix = suffix[1:]
	}
	w.deleted[k] = w.add(revision + "x" + suffix)
	return k
}

// addHooked adds what a pod can become under the hook preDelete. The pod carries the mark until it is prepared and another
// program releases it. If the hook has a limit, no program does, and the limit passes.
func (w *world) addHooked(k kind, bare, hook string) {
	switch hook {
	case "&":
		revision := bare[:len(bare)-1]
		switch bare[len(bare)-1] {
		case '.':
			w.next[k] = w.add(revision + "r&")
		case 'r':
			w.next[k] = w.add(revision + "+&")
		}
		w.prepared[k] = w.add(bare + "^")
		w.normal[w.prepared[k]] = k
	case "^":
		if w.snap.Spec.Lifecycle.PreDelete.TimeoutSeconds == nil {
			w.next[k] = w.add(bare + "%")
		} else {
			w.next[k] = w.add(bare + "=")
		}
	case "=":
		w.normal[k] = w.add(bare + "&")
	case "%":
		w.normal[k] = w.add(bare)
	}
	w.deleted[k] = w.add(bare[:len(bare)-1] + "x")
}

func (w *world) replica(index int, text string) snapshot.Replica {
	if text == "" {
		return snapshot.Replica{}
	}
	words := make([]string, index+1)
	for i := range words {
		id := string(rune('a' + i))
		if w.snap.Ordinal() {
			id = strconv.Itoa(i)
		}
		words[i] = id + ":" + text
	}
	return snapshottest.Parse(w.config, strings.Join(words, " ")).Replicas[index]
}

// show sets the observation to a state.
func (w *world) show(c *cells) {
	w.snap.Replicas = w.snap.Replicas[:0]
	for i, k := range c {
		if k != nothing {
			w.snap.Replicas = append(w.snap.Replicas, w.replicas[i][k])
		}
	}
	w.snap.FindSteady()
	snapshottest.FindNone(w.snap)
}

// view sets the observation to a state, and returns its cells.
func (w *world) view(s state) cells {
	c := s.unpack()
	w.show(&c)
	w.snap.Reached = max(s.reached(), min(w.snap.Placed(), w.snap.Limits.Replicas))
	w.remember()
	return c
}

// remember lets all places without an active pod be those of moves. States do not show which of them are.
func (w *world) remember() {
	w.snap.Replacing = nil
	w.snap.Unseen = max(0, w.snap.Limits.Replicas-w.snap.Placed())
	if w.snap.Paused() {
		return
	}
	if !w.snap.Ordinal() {
		w.snap.Replacing = map[string]string{}
		for i := range w.snap.Replicas {
			if r := &w.snap.Replicas[i]; !r.Active() && !r.Surge && len(r.Claims) > 0 {
				w.snap.Replacing[r.ID] = w.snap.Update.Name
			}
		}
		return
	}
	w.snap.Unseen, w.snap.Replacing = 0, map[string]string{}
	for k := range w.snap.Limits.Replicas {
		w.snap.Replacing[strconv.Itoa(w.snap.Ordinals.At(k))] = w.snap.Update.Name
	}
	for i := range w.snap.Replicas {
		if r := &w.snap.Replicas[i]; r.Active() {
			delete(w.snap.Replacing, r.ID)
		}
	}
}

// spell returns a state in the notation of package snapshottest.
func (w *world) spell(s state) string {
	var words []string
	for i, k := range s.unpack() {
		if k != nothing {
			words = append(words, w.replicas[i][k].ID+":"+w.kinds[k])
		}
	}
	return strings.Join(words, " ")
}

// explore follows every path from a state that was not followed before. If it records no error, all paths end in settled
// states.
func (w *world) explore(s state) {
	if w.err != nil || w.visited[s] {
		return
	}
	if slices.Contains(w.open, s) {
		w.fail(s, "the set is led in a circle")
		return
	}
	w.open = append(w.open, s)
	for _, successor := range w.successors(s) {
		w.explore(successor)
	}
	w.open = w.open[:len(w.open)-1]
	w.visited[s] = true
}

// successors returns the states that can follow a state. It checks the plan on the way.
func (w *world) successors(s state) []state {
	c := w.view(s)
	p := plan.Next(w.snap)
	w.facts.gather(w.snap, &p)
	settled := w.facts.settled()
	if what := w.judge(&c, &p, settled); what != "" {
		w.fail(s, what)
		return nil
	}
	var next []state
	if !p.Empty() {
		next = append(next, w.carryOut(c, &p))
	}
	moving := len(next) > 0 || w.timeHelps(&p) || w.snap.Nowhere && slices.ContainsFunc(w.snap.Replicas, func(r snapshot.Replica) bool { return r.Leaving != "" })
	for i, k := range c {
		if w.next[k] == k || w.twin(&c, i) || !w.inCompany(&c, i) {
			continue
		}
		moving = moving || !w.isBroken(i, k) || w.quorum && w.snap.Now.Sub(podstate.UnreadySince(w.replicas[i][k].Pod)) < time.Minute
		after := c
		after[i] = w.next[k]
		next = append(next, w.packed(&after))
	}
	if !moving && !settled {
		w.fail(s, "dead: nothing is planned, and no pod that is wanted is on its way")
	}
	return next
}

// timeHelps reports whether a plan that only waits has something to do when the time for which it waits has passed.
func (w *world) timeHelps(p *action.Plan) bool {
	now := w.snap.Now
	defer func() { w.snap.Now = now }()
	for next := *p; next.Empty(); next = plan.Next(w.snap) {
		if next.RequeueAfter <= 0 {
			return false
		}
		w.snap.Now = w.snap.Now.Add(next.RequeueAfter)
	}
	return true
}

// judge returns what is wrong with a plan; empty if nothing is.
func (w *world) judge(c *cells, p *action.Plan, settled bool) string {
	for i := range w.rules {
		if !w.rules[i].kept(&w.facts) {
			return "broken: " + w.rules[i].name
		}
	}
	if settled && (!p.Empty() || slices.ContainsFunc(p.Held, matters)) {
		return "a settled set has work"
	}
	if len(w.visited)%100 == 0 && !w.repeats(c, p) {
		return "the plan is another the second time, or it changed what was observed"
	}
	return ""
}

// matters reports whether a hold keeps a set from being settled. Holds that users asked for do not.
func matters(h action.Hold) bool {
	return h.Kind != action.HeldByPause && h.Kind != action.HeldByOnDelete
}

// repeats reports whether a second plan equals the first, and leaves the observation unchanged.
func (w *world) repeats(c *cells, p *action.Plan) bool {
	again := plan.Next(w.snap)
	after := slices.Clone(w.snap.Replicas)
	w.show(c)
	return reflect.DeepEqual(*p, again) && reflect.DeepEqual(after, w.snap.Replicas)
}

// twin reports whether the pod at an index equals the one before it, in a set in which only numbers count.
func (w *world) twin(c *cells, i int) bool { return !w.snap.Ordinal() && i > 0 && c[i] == c[i-1] }

// inCompany reports whether nothing keeps the pod at an index from its next kind. In a quorum world a pod becomes ready only
// when all pods are there.
func (w *world) inCompany(c *cells, index int) bool {
	if !w.quorum || !strings.Contains(w.kinds[c[index]], ",") {
		return true
	}
	return w.complete(c)
}

// ruptured reports whether a pod of a quorum world is ready although others are lacking. No such state comes about: the pods
// of a quorum lose their readiness together.
func (w *world) ruptured(c *cells) bool {
	if !w.quorum || w.complete(c) {
		return false
	}
	for i, k := range c {
		if w.replicas[i][k].Ready {
			return true
		}
	}
	return false
}

// complete reports whether all pods that a quorum needs are there.
func (w *world) complete(c *cells) bool {
	n := 0
	for i, k := range c {
		if r := &w.replicas[i][k]; r.Active() && r.Revision == w.snap.Update.Name && !w.snap.Condemned(r) {
			n++
		}
	}
	return n >= w.snap.Limits.Replicas
}

// isBroken reports whether a pod is permanently broken: an old pod that never becomes ready unless it is replaced. A pod
// that waits for its hook recovers.
func (w *world) isBroken(index int, k kind) bool {
	r := &w.replicas[index][k]
	return r.Broken() && !strings.HasSuffix(w.kinds[k], "^") && !w.facts.frozen() && w.facts.misplaced(r)
}

// carryOut returns the state after a plan is applied. Only actions on pods count.
func (w *world) carryOut(c cells, p *action.Plan) state {
	for _, a := range p.Actions {
		if create, ok := a.(action.Create); ok {
			place := w.place(&c, create.ID)
			if place < 0 {
				w.fail(pack(&c), "pods are created without end")
				break
			}
			c[place] = w.born(create)
			continue
		}
		if gone, ok := a.(action.DeleteClaim); ok {
			c[w.place(&c, gone.ID)] = nothing
			continue
		}
		i := w.find(&c, a)
		switch state, writes := a.(action.SetState); {
		case !writes:
			c[i] = w.deleted[c[i]]
		case state.State == v1beta1.LifecyclePreparingDelete:
			c[i] = w.prepared[c[i]]
		default:
			c[i] = w.normal[c[i]]
		}
	}
	return w.packed(&c)
}

// find returns the index of the pod that an action deletes, or whose state it writes.
func (w *world) find(c *cells, a action.Action) int {
	if pod := written(a); pod != nil {
		for i, k := range c {
			if w.replicas[i][k].Pod == pod {
				return i
			}
		}
	}
	panic(fmt.Sprintf("there is nothing to do this to: %s", a))
}

// place returns the index of an identity that gets its pod: its ordinal, that of its claims, or a free one. If none is free, a pod that
// terminates has ended now. It is −1 if none terminates.
func (w *world) place(c *cells, id string) int {
	if w.snap.Ordinal() {
		ordinal, err := strconv.Atoi(id)
		if err != nil {
			panic(err)
		}
		return ordinal
	}
	for i, k := range c {
		if k != nothing && w.replicas[i][k].ID == id {
			return i
		}
	}
	if free := slices.Index(c[:], nothing); free >= 0 {
		return free
	}
	for i, k := range c {
		if w.replicas[i][k].Terminating && w.next[k] == nothing {
			return i
		}
	}
	return -1
}

// born returns the kind of a pod that was just created.
func (w *world) born(a action.Create) kind {
	return kind(slices.IndexFunc(w.kinds, func(text string) bool {
		text, isSurge := strings.CutSuffix(text, "*")
		return strings.TrimSuffix(text, "$") == a.Revision+"." && isSurge == a.Surge
	}))
}

// limited reports whether the set limits the creation of pods.
func (w *world) limited() bool { return w.snap.Limits.ScaleMaxUnavailable >= 0 }

// packed returns the state of some cells. What the set has had so far stays.
func (w *world) packed(c *cells) state {
	s := w.sorted(c)
	if w.limited() {
		s |= state(w.snap.Reached) << reachedAt
	}
	return s
}

// sorted returns a state in which the cells of a set with random names are sorted. Terminating pods without claims do not
// matter there, so more than two of them are not distinguished.
func (w *world) sorted(c *cells) state {
	if w.snap.Ordinal() {
		return pack(c)
	}
	slices.SortFunc(c[:], func(a, b kind) int { return int(b) - int(a) })
	for i := 2; i < len(c); i++ {
		r := &w.replicas[0][c[i]]
		if r.Terminating && len(r.Claims) == 0 && c[i] == c[i-2] {
			copy(c[i:], c[i+1:])
			c[len(c)-1] = nothing
			i--
		}
	}
	return pack(c)
}

// fail records what is wrong with a state, and how it was reached.
func (w *world) fail(s state, what string) {
	if w.err != nil {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nconfig: %q\n", what, w.config)
	for _, before := range w.open {
		fmt.Fprintf(&b, "  %q\n", w.spell(before))
	}
	w.view(s)
	p := plan.Next(w.snap)
	w.err = fmt.Errorf("%sstate: %q, reached %d\n%s", &b, w.spell(s), w.snap.Reached, &p)
}
