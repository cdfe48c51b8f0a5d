// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// Checker judges every write of a manager by the invariants, at the moment at which it is committed. It knows what the
// manager could know: its caches, which do not move during a reconcile, and its own writes that they do not show yet.
type Checker struct {
	world *World
	// manager is the one that reconciles now.
	manager *Manager
	// made are the pods that a manager created for a set, as opposed to those that it adopted, and for which generation of it.
	made map[creation]int64
	// lastWrite is when a manager last wrote something other than a status.
	lastWrite time.Time
	// writes counts the writes of managers by what they did.
	writes  map[string]int
	bounds  *bounds
	creates creates
	// silent are the pods that this reconcile moved silently. A move that was decided before theirs may be written after it.
	silent map[apiserver.Key]bool
	// latest is the last write of a manager, unanswered are the versions of those of which it heard nothing. It counts on
	// them for a while only.
	latest     *apiserver.Entry
	unanswered map[int64]bool
	// done is what each manager knows to be done.
	done map[string]done
	data data
}

// creates is what the reconcile that goes on now knows of how creating pods went. While that is refused no pod is counted on that
// is yet to be created (docs/adr/0011).
type creates struct {
	// failing are the managers whose last reconcile that created something failed in that.
	failing map[string]bool
	// tried and failed count what this reconcile creates.
	tried, failed int
	// unhoped are the pods that it created nevertheless.
	unhoped map[apiserver.Key]bool
	// conflicts counts those in a row that an object met; after tolerated of them one more is a refusal.
	conflicts map[apiserver.Key]int
}

// tolerated is how many conflicts in a row a create may meet before they count as a refusal.
const tolerated = 3

// note takes note of the outcome of a write.
func (c *creates) note(w apiserver.Write, err error) {
	if w.Verb != apiserver.Create || w.DryRun || w.Key.Kind == apiserver.Revisions {
		return
	}
	c.tried++
	if !apierrors.IsConflict(err) {
		delete(c.conflicts, w.Key)
	} else if c.conflicts[w.Key]++; c.conflicts[w.Key] > tolerated {
		c.failed++
	}
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		c.failed++
	}
}

// end closes the reconcile of a manager.
func (c *creates) end(m *Manager) {
	if c.tried > 0 {
		c.failing[m.Name] = c.failed > 0
	}
	c.tried, c.failed = 0, 0
	clear(c.unhoped)
}

func newChecker(w *World) *Checker {
	return &Checker{
		world: w, made: make(map[creation]int64), writes: make(map[string]int), bounds: newBounds(),
		creates: creates{failing: make(map[string]bool), unhoped: make(map[apiserver.Key]bool), conflicts: make(map[apiserver.Key]int)},
		silent:  make(map[apiserver.Key]bool),
		done:    make(map[string]done),

		unanswered: make(map[int64]bool),
	}
}

// restart forgets what a manager knew in its last life.
func (c *Checker) restart(m *Manager) {
	c.bounds.restart(m)
	delete(c.done, m.Name)
}

func (c *Checker) begin(m *Manager) { c.manager = m }

func (c *Checker) end(m *Manager) {
	c.manager = nil
	clear(c.silent)
	c.creates.end(m)
}

// rule is one invariant: it returns what is wrong with a write, or nothing.
type rule struct {
	name  string
	judge func(*verdict) string
}

// rules are the invariants that a single write can break. The others are judged at the end of a history.
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
		{"revisions in use", keepsRevisions},
		{"completion", notesTheTruth},
		{"I8 adoption", adoptsOrphansOnly},
		{"I12 status", tellsTheTruth},
		{"I12 words", agreesWithItself},
		{"I13 deletion", leavesDeletingSets},
		{"I10, I11 bounded writes", writesLittle},
		{"I15 bounded growth", staysSmall},
		{"guard", guardsMoves},
		{"steps in turn", stepsInTurn},
		{"I9 soak", soaksInSilence},
		{"I12 steps", readyWhenDone},
	}
}

// verdict is one write in the light of what its manager could know.
type verdict struct {
	*apiserver.Entry

	world *World
	made  map[creation]int64
	// now is what the manager's clock says.
	now time.Time
	// set is the set as the manager sees it; nil if it sees none.
	set *v1alpha1.RollSet
	// pods are the set's pods as the manager knew them before the write.
	pods map[apiserver.Key]*corev1.Pod
}

// observe judges a write and remembers the first violation.
func (c *Checker) observe(e *apiserver.Entry) {
	c.observeData(e)
	byManager := c.manager != nil && e.Actor == c.manager.Name
	c.bounds.see(e, byManager, c.generation())
	if !byManager {
		c.unanswered[e.Version] = true // if it is a manager's, nobody waits for the answer any more
		return
	}
	c.latest = e
	if e.Subresource != "status" {
		c.lastWrite = e.At
	}
	v := c.verdictOn(e)
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
	for _, r := range rules() {
		if wrong := r.judge(v); wrong != "" && c.world.violation == nil {
			c.world.violation = fmt.Errorf("%s broken at resource version %d by %s of %s: %s", r.name, e.Version, e.Actor, e.Write, wrong)
		}
	}
}

// generation is that of the set that the manager knows which reconciles now; 0 if none does, or if it knows none.
func (c *Checker) generation() int64 {
	if c.manager == nil {
		return 0
	}
	if set := c.manager.set(); set != nil {
		return set.Generation
	}
	return 0
}

// tried takes note of the outcome of a write that a manager tried.
func (c *Checker) tried(w apiserver.Write, err error) {
	if lost := (*url.Error)(nil); errors.As(err, &lost) && c.latest != nil && c.latest.Key == w.Key && c.latest.Verb == w.Verb {
		c.unanswered[c.latest.Version] = true
	}
	c.creates.note(w, err)
	if wrong := cmp.Or(c.bounds.try(w, err, c.world.Now()), c.again(w, err)); wrong != "" && c.world.violation == nil {
		c.world.violation = errors.New(wrong)
	}
}

// vain takes note of a patch that a manager wrote and that changed nothing: nobody is to write what its cache shows already.
func (c *Checker) vain(w apiserver.Write) {
	known := c.manager.Client.Cached(w.Key)
	if known != nil && known.GetResourceVersion() == c.world.Store.Get(w.Key).GetResourceVersion() && c.world.violation == nil {
		c.world.violation = fmt.Errorf("silence broken by %s of %s: %s changes nothing", w.Actor, w, w.Body)
	}
}

func (c *Checker) verdictOn(e *apiserver.Entry) *verdict {
	v := &verdict{Entry: e, world: c.world, made: c.made, now: c.manager.clock.Now(), pods: make(map[apiserver.Key]*corev1.Pod)}
	if v.set = c.manager.set(); v.set == nil {
		return v
	}
	for pod := range c.manager.Client.Cache(apiserver.Pods) {
		v.know(apiserver.KeyOf(pod), pod)
	}
	for own := range c.manager.Client.Unseen(apiserver.Pods) {
		if own.Version >= e.Version {
			break
		}
		doubtful := c.unanswered[own.Version] && e.At.Sub(own.At) >= expectations.DoubtTimeout
		if own.Actor == e.Actor && own.Version > c.manager.born && !doubtful {
			v.know(own.Key, own.New)
		}
	}
	return v
}

// know enters what is known of a pod, if it is the set's.
func (v *verdict) know(key apiserver.Key, obj client.Object) {
	delete(v.pods, key)
	if pod, ok := obj.(*corev1.Pod); ok && ownerOf(pod) == v.set.UID && v.selects(pod) {
		v.pods[key] = pod
	}
}

// selects says whether the set's selector matches a pod. One that it does not match is to be released, and if that is refused
// it counts for nothing all the same.
func (v *verdict) selects(pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(v.set.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// pod is the pod before the write, as the manager knew it; nil if it did not, or if the write is not about a pod.
func (v *verdict) pod() *corev1.Pod { return v.pods[v.Key] }

// deletesPod says whether the write deletes a pod of the set.
func (v *verdict) deletesPod() bool {
	return v.Key.Kind == apiserver.Pods && v.Verb == apiserver.Delete
}

// createsPod says whether the write creates a pod.
func (v *verdict) createsPod() bool {
	return v.Key.Kind == apiserver.Pods && v.Verb == apiserver.Create
}

// count counts the known pods before the write that fulfill a condition.
func (v *verdict) count(is func(*corev1.Pod) bool) int {
	n := 0
	for _, pod := range v.pods {
		if is(pod) {
			n++
		}
	}
	return n
}

// isAvailable says whether a pod is available; one that its hook holds back from being normal is not, though it is ready,
// nor is one whose gate anybody has closed.
func (v *verdict) isAvailable(pod *corev1.Pod) bool {
	return isAvailable(pod, v.set.Spec.MinReadySeconds, v.now) && !isUpdating(pod) && !v.heldBack(pod)
}

// heldBack reports whether the hook preNormal keeps a pod from being available. No time ends that, so such a pod counts as
// broken.
func (v *verdict) heldBack(pod *corev1.Pod) bool {
	hooks := v.set.Spec.Lifecycle
	return hooks != nil && hooks.PreNormal != nil &&
		pod.Labels[v1alpha1.LifecycleStateLabel] == string(v1alpha1.LifecyclePreparingNormal)
}
