// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// User is the name under which users write. Invariants make allowance for what users do.
const User = "user"

// Checker judges every write of a manager by the invariants when it is committed. It knows what the manager could know:
// its caches, which do not change during a reconcile, and its own writes that they do not show yet.
type Checker struct {
	lives
	tally
	answers

	// Violation is the first violation of an invariant; nil if there was none.
	Violation error

	world *Cluster
	// reconcile is the running reconcile; nil between reconciles.
	reconcile *Reconcile
	bounds    *bounds
	creates   creates
	proofs    proofs
	data      data
	service   service
	// places is whose place each pod takes, as far as failure domains go.
	places places
	// outline is what the running reconcile has done.
	outline outline
	// entered is since when pods have been in their lifecycle states.
	entered entries
	// otherwise, if not nil, yields the reconciles in which a write may have been decided, apart from the running one.
	otherwise func() iter.Seq[*Reconcile]
}

// tally counts the writes of managers.
type tally struct {
	// LastWrite is the time at which a manager last wrote something other than a status.
	LastWrite time.Time
	// writes counts by verb and kind. The status of sets is left out, because time and not the number of pods bounds its writes.
	writes map[string]int
}

// Reconcile is one reconcile of a manager, and what the manager can know in it.
type Reconcile struct {
	// Manager is the name under which the manager writes.
	Manager string
	// Set names what it reconciles.
	Set apiserver.Key
	// View holds the caches of the manager.
	View *apiserver.View
	// Clock is the manager's clock, which may be wrong.
	Clock clock.PassiveClock
	// Born is the version of the store at the last start of the manager. It remembers no writes from before.
	Born int64
}

// set returns the set as the cache shows it; nil if the cache does not have it, or there is no reconcile.
func (r *Reconcile) set() *v1beta1.RollSet {
	if r == nil {
		return nil
	}
	set, _ := r.View.Cached(r.Set).(*v1beta1.RollSet)
	return set
}

// generation returns the generation of the set as the cache shows it; 0 if there is none.
func (r *Reconcile) generation() int64 {
	if set := r.set(); set != nil {
		return set.Generation
	}
	return 0
}

// isBy reports whether an actor is the manager that reconciles.
func (r *Reconcile) isBy(actor string) bool { return r != nil && actor == r.Manager }

// isOf reports whether a set is the one that is reconciled. Between reconciles, any may be.
func (r *Reconcile) isOf(set apiserver.Key) bool { return r == nil || set == r.Set }

// NewChecker returns a checker of what is written to a cluster.
func NewChecker(cluster *Cluster) *Checker {
	return &Checker{
		lives:   lives{managers: make(map[string]bool), born: make(map[string]int64), done: make(map[string]done)},
		tally:   tally{writes: make(map[string]int)},
		answers: answers{sent: make(map[attempt]time.Time), unanswered: make(map[int64]time.Time), lost: make(map[attempt]string)},
		creates: creates{
			failing: make(map[string]bool), refused: make(map[string]bool), unhoped: make(map[apiserver.Key]bool),
			conflicts: make(map[apiserver.Key]int), made: make(map[creation]int64),
		},
		proofs: proofs{seen: make(map[numbered]bool), begun: make(map[apiserver.Key]time.Time)},
		world:  cluster, bounds: newBounds(), places: newPlaces(), outline: newOutline(), entered: newEntries(),
	}
}

// Restart notes that a manager starts, and forgets what it knew before.
func (c *Checker) Restart(manager string) {
	c.managers[manager] = true
	c.done[manager] = done{created: make(map[creation]time.Time), deleted: make(map[types.UID]time.Time)}
	c.bounds.restart(manager)
	delete(c.places.served, manager)
}

// Begin notes that a manager reconciles from now on.
func (c *Checker) Begin(r *Reconcile) {
	c.reconcile = r
	c.born[r.Manager] = r.Born
	c.places.look(r)
	proof{newVerdict(c, &apiserver.Entry{})}.watch()
}

// End notes that the reconcile has ended, and judges the doubtful writes again, now that all writes of the plan are known.
func (c *Checker) End() {
	for _, d := range c.outline.doubts {
		c.apply(d.rule, d.verdict)
	}
	c.outline = newOutline()
	c.creates.end(c.reconcile.Manager)
	c.reconcile = nil
}

// Crash notes that the manager of the running reconcile crashes, so that the rest of its plan will never be known.
func (c *Checker) Crash() { c.outline = newOutline() }

// rule is one invariant. It returns what is wrong with a write, or an empty text.
type rule struct {
	name  string
	judge func(*verdict) string
}

// rules returns the invariants that a single write can break. The others are judged at the end of a history.
func rules() []rule {
	return []rule{
		{"I14 scope", inScope},
		{"I2 ownership", ownsIt},
		{"no name twice", namesOnce},
		{"names counted", countsNames},
		{"I1 identity", keepsIdentity},
		{"I3 upper bound", withinBound},
		{"I4 availability", withinBudget},
		{"I4 availability in place", keepsServing},
		{"I4 gate", closesFirst},
		{"I4 evidence", opensWhenDone},
		{"I5 order", inOrder},
		{"I6 revision", atWantedRevision},
		{"I6 revision in place", updatesAsWanted},
		{"I6 content", runsItsRevision},
		{"I7 storage", keepsClaims},
		{"claims first", claimsFirst},
		{"claims of its revision", mountsItsClaims},
		{"claims in turn", asksInTurn},
		{"revisions in use", keepsRevisions},
		{"completion", notesTheTruth},
		{"verdict", givesUpWithReason},
		{"I8 adoption", adoptsOrphansOnly},
		{"budget", keepsBudget},
		{"I12 status", tellsTheTruth},
		{"I12 words", agreesWithItself},
		{"I13 deletion", leavesDeletingSets},
		{"I10, I11 bounded writes", writesLittle},
		{"I15 bounded growth", staysSmall},
		{"domains", oneDomainAtATime},
		{"drain", keepsWhereNothingStays},
		{"hooks", waitsForHooks},
		{"hooks at rest", staysPrepared},
		{"steps in turn", stepsInTurn},
		{"I9 soak", soaksInSilence},
		{"I12 steps", readyWhenDone},
		{"I12 ready", readyInPlace},
	}
}

// rulesOfPlans returns the invariants that a single write can break, unless the rest of its plan shows that it is right.
func rulesOfPlans() []rule {
	return []rule{
		{"guard", guardsMoves},
		{"guard of new pods", keepsTheGood},
	}
}

// Observe judges a write and remembers the first violation.
func (c *Checker) Observe(e *apiserver.Entry) {
	if c.isElsewhere(e) {
		return
	}
	c.data.see(c, e)
	c.service.see(c.world)
	c.observeMisfit(e)
	defer c.places.see(c, e)
	byManager := c.reconcile.isBy(e.Actor)
	c.bounds.see(e, byManager, c.reconcile.generation())
	if !byManager {
		c.entered.arrives(e)
		c.arrives(e)
		c.creates.observeScale(c.world.set, e, nil)
		return
	}
	c.latest = e
	c.countWrite(e)
	v := c.verdictOn(e)
	c.creates.observeScale(c.world.set, e, v)
	c.creates.see(e, v)
	c.outline.see(v)
	proof{v}.begins()
	defer c.entered.see(e, v.now)
	for _, r := range rules() {
		c.apply(r, v)
	}
	c.outline.doubt(v)
}

// apply records a violation if a write breaks a rule.
func (c *Checker) apply(r rule, v *verdict) {
	if wrong := r.judge(v); wrong != "" && c.Violation == nil && !c.holds(r, v.Entry) {
		c.violate(fmt.Sprintf("%s broken at resource version %d by %s of %s: %s", r.name, v.Version, v.Actor, v.Write, wrong))
	}
}

// violate records what is wrong, if anything, as the first violation.
func (c *Checker) violate(wrong string) {
	if wrong != "" && c.Violation == nil {
		c.Violation = errors.New(wrong)
	}
}

// isElsewhere reports whether a write is about another set. Then it judges only that a manager writes in the namespace of the set that it
// reconciles.
func (c *Checker) isElsewhere(e *apiserver.Entry) bool {
	if c.reconcile.isBy(e.Actor) && e.Key.Namespace != c.reconcile.Set.Namespace {
		c.violate(fmt.Sprintf("I14 scope broken at resource version %d by %s of %s in the reconcile of %s", e.Version, e.Actor, e.Write, c.reconcile.Set))
	}
	return !c.reconcile.isOf(c.world.set) || e.Key.Namespace != "" && e.Key.Namespace != c.world.set.Namespace
}

// Tried records the outcome of a write that a manager tried.
func (c *Checker) Tried(w apiserver.Write, err error) {
	now := c.world.now()
	if !c.reconcile.isOf(c.world.set) {
		c.violate(c.bounds.try(w, err, now))
		return
	}
	c.outline.note(w)
	delete(c.lost, attemptOf(w))
	if lost := (*url.Error)(nil); errors.As(err, &lost) {
		c.lose(w, lost, now)
		c.bounds.lost(w, c.reconcile.generation())
		c.entered.sent[attemptOf(w)] = c.reconcile.Clock.Now()
	}
	if err != nil && strings.Contains(err.Error(), "sim: ") {
		c.entered.failed[w.Key] = now
	}
	c.creates.note(w, err)
	c.violate(cmp.Or(c.bounds.try(w, err, now), c.done[w.Actor].again(c, w, err)))
}

// NoChange judges a patch that changed nothing: a manager must not write what its cache already shows.
func (c *Checker) NoChange(w apiserver.Write) {
	known := c.reconcile.View.Cached(w.Key)
	if known != nil && known.GetResourceVersion() == c.world.Store.Get(w.Key).GetResourceVersion() {
		c.violate(fmt.Sprintf("silence broken by %s of %s: %s changes nothing", w.Actor, w, w.Body))
	}
}

// observeMisfit notes a pod that admission makes none of the set's when a manager creates it.
func (c *Checker) observeMisfit(e *apiserver.Entry) {
	pod, isPod := e.New.(*corev1.Pod)
	if set := c.world.Set(); e.Sent != nil && isPod && e.Verb == apiserver.Create && c.managers[e.Actor] && set != nil {
		c.world.Misfits[pod.UID] = OwnerOf(pod) != set.UID || !matches(set, pod)
	}
}

// Rewritten judges a write that admission changed: the manager must notice, and not try it again and again. It waits by its own clock,
// which may be set meanwhile.
func (c *Checker) Rewritten(w apiserver.Write, answer client.Object) {
	if !c.reconcile.isOf(c.world.set) {
		return
	}
	wrong := c.bounds.rewrite(w, c.reconcile.generation(), c.reconcile.Clock.Now())
	if w.Verb == apiserver.Create && c.world.Misfits[answer.GetUID()] {
		wrong = c.bounds.misfit(c.world.now())
	}
	c.violate(wrong)
}

// countWrite counts a write of a manager.
func (t *tally) countWrite(e *apiserver.Entry) {
	if e.Subresource != "status" {
		t.LastWrite = e.At
	}
	if e.Subresource != "status" || e.Key.Kind == apiserver.Pods {
		t.writes[strings.TrimSuffix(string(e.Verb)+" "+string(e.Key.Kind)+"/"+e.Subresource, "/")]++
	}
}

// Tally returns a count of the managers' writes.
func (t *tally) Tally() string {
	kinds := slices.Sorted(maps.Keys(t.writes))
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", kind, t.writes[kind])
	}
	return "# managers wrote: " + strings.Join(kinds, ", ") + "\n"
}
