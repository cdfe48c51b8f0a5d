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
	// Violation is the first violation of an invariant; nil if there was none.
	Violation error
	// LastWrite is the time at which a manager last wrote something other than a status.
	LastWrite time.Time

	world *Cluster
	// reconcile is the running reconcile; nil between reconciles.
	reconcile *Reconcile
	// active is how many active pods of the set it has known at most. What it writes, it planned at once.
	active int
	// managers holds the names of all managers that were ever started.
	managers map[string]bool
	// born are the versions of the store at which the managers last started.
	born map[string]int64
	// made maps each pod that a manager created for a set to the generation of the set. Adopted pods are not in it.
	made map[creation]int64
	// writes counts the writes of managers by verb and kind.
	writes map[string]int
	// seen holds the revisions that a manager saw proven, by their names and numbers.
	seen    map[numbered]bool
	bounds  *bounds
	creates creates
	// silent holds the pods that this reconcile updated in place without a new image. A write that was decided before
	// may be committed after it.
	silent map[apiserver.Key]bool
	// latest is the last write of a manager.
	latest *apiserver.Entry
	// sent is when a manager gave up waiting for writes that are still under way. unanswered is the same for writes that were
	// committed, by their versions. A manager counts on them for a while only.
	sent       map[attempt]time.Time
	unanswered map[int64]time.Time
	// lost holds the errors of writes whose last try got no answer.
	lost map[attempt]string
	// begun is when each revision was made first, on the clock of the manager that made it.
	begun map[apiserver.Key]time.Time
	// done holds what each manager knows to be done.
	done map[string]done
	data data
	// had is how many pods a set that limits their creation has had at once, as far as its status told.
	had int
	// servedAt is when a pod of the set was last seen available. againAt is when one was available again after a while without, and
	// beforeAt when the last one before that was.
	servedAt, againAt, beforeAt time.Time
	// places is whose place each pod takes, as far as failure domains go.
	places places
	// outline is what the running reconcile has done.
	outline outline
	// entered is since when pods have been in their lifecycle states.
	entered entries
	// otherwise, if not nil, yields the reconciles in which a write may have been decided, apart from the running one.
	otherwise func() iter.Seq[*Reconcile]
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

// set returns the set as the cache shows it; nil if the cache does not have it.
func (r *Reconcile) set() *v1beta1.RollSet {
	set, _ := r.View.Cached(r.Set).(*v1beta1.RollSet)
	return set
}

// NewChecker returns a checker of what is written to a cluster.
func NewChecker(cluster *Cluster) *Checker {
	return &Checker{
		world: cluster, managers: make(map[string]bool), born: make(map[string]int64), made: make(map[creation]int64), writes: make(map[string]int), seen: make(map[numbered]bool), bounds: newBounds(),
		creates: creates{failing: make(map[string]bool), refused: make(map[string]bool), unhoped: make(map[apiserver.Key]bool), conflicts: make(map[apiserver.Key]int)},
		silent:  make(map[apiserver.Key]bool),
		done:    make(map[string]done),
		entered: newEntries(),
		places:  newPlaces(),
		outline: newOutline(),

		sent:       make(map[attempt]time.Time),
		unanswered: make(map[int64]time.Time),
		lost:       make(map[attempt]string),
		begun:      make(map[apiserver.Key]time.Time),
	}
}

// Restart notes that a manager starts, and forgets what it knew before.
func (c *Checker) Restart(manager string) {
	c.managers[manager] = true
	c.bounds.restart(manager)
	delete(c.done, manager)
	delete(c.places.served, manager)
}

// Begin notes that a manager reconciles from now on.
func (c *Checker) Begin(r *Reconcile) {
	c.reconcile = r
	c.born[r.Manager] = r.Born
	c.places.look(r)
	c.watchProofs()
}

// End notes that the reconcile has ended.
func (c *Checker) End() {
	c.settle()
	clear(c.silent)
	c.creates.end(c.reconcile.Manager)
	c.reconcile, c.active = nil, 0
}

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
	c.observeData(e)
	c.observeService()
	c.observeMisfit(e)
	defer c.places.see(c, e)
	byManager := c.reconcile != nil && e.Actor == c.reconcile.Manager
	c.bounds.see(e, byManager, c.generation())
	if !byManager {
		c.entered.arrives(e)
		c.arrives(e)
		c.observeScale(e, nil)
		return
	}
	c.latest = e
	if e.Subresource != "status" {
		c.LastWrite = e.At
	}
	v := c.verdictOn(e)
	c.observeScale(e, v)
	c.active = max(c.active, v.count(IsActive))
	if e.Key.Kind == apiserver.Pods && e.Verb == apiserver.Create {
		if v.set != nil {
			c.made[creation{e.New.GetUID(), v.set.UID}] = v.set.Generation
		}
		c.creates.unhoped[e.Key] = c.creates.failing[e.Actor]
	}
	if e.Subresource != "status" || e.Key.Kind == apiserver.Pods {
		c.writes[strings.TrimSuffix(string(e.Verb)+" "+string(e.Key.Kind)+"/"+e.Subresource, "/")]++
	}
	if v.movesSilently() {
		c.silent[e.Key] = true
	}
	v.begins()
	defer c.entered.see(e, v.now)
	for _, r := range rules() {
		if wrong := r.judge(v); wrong != "" && c.Violation == nil && !c.holds(r, e) {
			c.breaks(r, e, wrong)
		}
	}
	c.outline.doubt(v)
}

// elsewhere reports whether the running reconcile is of another set.
func (c *Checker) elsewhere() bool { return c.reconcile != nil && c.reconcile.Set != c.world.set }

// isElsewhere reports whether a write is about another set. Then it judges only that a manager writes in the namespace of the set that it
// reconciles.
func (c *Checker) isElsewhere(e *apiserver.Entry) bool {
	byManager := c.reconcile != nil && e.Actor == c.reconcile.Manager
	if byManager && e.Key.Namespace != c.reconcile.Set.Namespace {
		c.violate("I14 scope broken at resource version %d by %s of %s in the reconcile of %s", e.Version, e.Actor, e.Write, c.reconcile.Set)
	}
	return c.elsewhere() || e.Key.Namespace != "" && e.Key.Namespace != c.world.set.Namespace
}

// observeService notes whether a pod of the set is available.
func (c *Checker) observeService() {
	set := c.world.Set()
	if set == nil {
		return
	}
	for _, pod := range c.world.Pods() {
		if now := c.world.now(); OwnerOf(pod) == set.UID && IsAvailable(pod, set.Spec.MinReadySeconds, now) {
			if now.Sub(c.servedAt) >= time.Minute {
				c.againAt, c.beforeAt = now, c.servedAt
			}
			c.servedAt = now
			return
		}
	}
}

// attempt identifies a write while it is under way.
type attempt struct {
	actor string
	verb  apiserver.Verb
	key   apiserver.Key
}

func attemptOf(w apiserver.Write) attempt { return attempt{w.Actor, w.Verb, w.Key} }

// arrives records a write outside of reconciles. If a manager sent it, the manager has given up on the answer.
func (c *Checker) arrives(e *apiserver.Entry) {
	since, ok := c.sent[attemptOf(e.Write)]
	if !ok {
		since = e.At
	}
	delete(c.sent, attemptOf(e.Write))
	c.unanswered[e.Version] = since
}

// generation returns the generation of the set as the running reconcile sees it; 0 if there is none.
func (c *Checker) generation() int64 {
	if c.reconcile == nil {
		return 0
	}
	if set := c.reconcile.set(); set != nil {
		return set.Generation
	}
	return 0
}

// Tried records the outcome of a write that a manager tried.
func (c *Checker) Tried(w apiserver.Write, err error) {
	if c.elsewhere() {
		if wrong := c.bounds.try(w, err, c.world.now()); wrong != "" && c.Violation == nil {
			c.Violation = errors.New(wrong)
		}
		return
	}
	c.outline.note(w)
	delete(c.lost, attemptOf(w))
	if lost := (*url.Error)(nil); errors.As(err, &lost) {
		c.lost[attemptOf(w)] = lost.Error()
		c.bounds.lost(w, c.generation())
		c.entered.sent[attemptOf(w)] = c.reconcile.Clock.Now()
		if c.latest != nil && c.latest.Key == w.Key && c.latest.Verb == w.Verb {
			c.unanswered[c.latest.Version] = c.latest.At
		} else {
			c.sent[attemptOf(w)] = c.world.now()
		}
	}
	if err != nil && strings.Contains(err.Error(), "sim: ") {
		c.entered.failed[w.Key] = c.world.now()
	}
	c.creates.note(w, err)
	if wrong := cmp.Or(c.bounds.try(w, err, c.world.now()), c.again(w, err)); wrong != "" && c.Violation == nil {
		c.Violation = errors.New(wrong)
	}
}

// Unanswered returns the errors of the writes whose last try got no answer.
func (c *Checker) Unanswered() []string { return slices.Collect(maps.Values(c.lost)) }

// NoChange judges a patch that changed nothing: a manager must not write what its cache already shows.
func (c *Checker) NoChange(w apiserver.Write) {
	known := c.reconcile.View.Cached(w.Key)
	if known != nil && known.GetResourceVersion() == c.world.Store.Get(w.Key).GetResourceVersion() && c.Violation == nil {
		c.Violation = fmt.Errorf("silence broken by %s of %s: %s changes nothing", w.Actor, w, w.Body)
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
	if c.elsewhere() {
		return
	}
	wrong := c.bounds.rewrite(w, c.generation(), c.reconcile.Clock.Now())
	if w.Verb == apiserver.Create && c.world.Misfits[answer.GetUID()] {
		wrong = c.bounds.misfit(c.world.now())
	}
	if wrong != "" && c.Violation == nil {
		c.Violation = errors.New(wrong)
	}
}

// Tally returns a count of the managers' writes. The status of sets is left out, because time and not the number of
// pods bounds its writes.
func (c *Checker) Tally() string {
	kinds := slices.Sorted(maps.Keys(c.writes))
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", kind, c.writes[kind])
	}
	return "# managers wrote: " + strings.Join(kinds, ", ") + "\n"
}
