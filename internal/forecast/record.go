// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// State is the state of a pod in a picture of a rollout.
type State string

// These are the states.
const (
	// Starting pods are not ready.
	Starting State = "starting"
	// Ready pods have not been ready for minReadySeconds.
	Ready State = "ready"
	// Available pods have been ready for minReadySeconds.
	Available State = "available"
	// Updating pods are out of service while they are changed in place.
	Updating State = "updating"
	// Terminating pods are being deleted.
	Terminating State = "terminating"
	// Failed pods have ended.
	Failed State = "failed"
)

// Write is one request that the controller will send.
type Write struct {
	// At is when, counted from now.
	At time.Duration `json:"-"`
	// Step numbers the steps, from 1. A step is a group of writes before the controller waits.
	Step int `json:"step"`
	// Verb is create, patch, update or delete.
	Verb string `json:"verb"`
	// Resource is pods, persistentvolumeclaims, controllerrevisions or poddisruptionbudgets, or a subresource as in pods/resize.
	Resource string `json:"resource"`
	// Name is the name of the object.
	Name string `json:"name"`
	// Domain is the failure domain of the pod, such as its zone; empty if the set has no domains, or the pod is in none yet.
	Domain string `json:"domain,omitempty"`
	// Reason is the reason in the controller's log.
	Reason string `json:"reason"`

	effect effect
}

// effect is the effect of a write on its object.
type effect int

// These are the effects on which the class of a change depends.
const (
	// keeps is the effect of writes that change nothing that users see, such as owner references and the status.
	keeps effect = iota
	creates
	deletes
	// relabels changes labels or annotations of a running pod.
	relabels
	// alters changes the spec: containers of a running pod, or the volume behind a claim.
	alters
)

// effectOf returns the effect of a write.
func effectOf(e *apiserver.Entry) effect {
	switch {
	case e.Verb == apiserver.Create:
		return creates
	case e.Verb == apiserver.Delete:
		return deletes
	case e.Subresource == "status" || e.Old == nil || e.New == nil:
		return keeps
	}
	old, isPod := e.Old.(*corev1.Pod)
	pod, _ := e.New.(*corev1.Pod)
	oldClaim, isClaim := e.Old.(*corev1.PersistentVolumeClaim)
	claim, _ := e.New.(*corev1.PersistentVolumeClaim)
	switch {
	case isPod && !apiequality.Semantic.DeepEqual(old.Spec, pod.Spec), isClaim && !apiequality.Semantic.DeepEqual(oldClaim.Spec, claim.Spec):
		return alters
	case isPod && (!apiequality.Semantic.DeepEqual(old.Labels, pod.Labels) || !apiequality.Semantic.DeepEqual(old.Annotations, pod.Annotations)):
		return relabels
	default:
		return keeps
	}
}

// Lane is the life of the pods with one name.
type Lane struct {
	// Name is the name.
	Name string
	// Spans are its states, one after another. Between them the pod does not exist.
	Spans []Span
}

// Span is a time in which the state of a pod stays the same.
type Span struct {
	// From and To are its ends, counted from now.
	From, To time.Duration
	// State is the state of the pod.
	State State
	// Revision is the name of its revision.
	Revision string

	order int
	open  bool
	ready time.Time
}

// Point is the number of pods from a moment on.
type Point struct {
	// At is the moment, counted from now.
	At time.Duration
	// Available is how many pods are available, and Pods how many exist, without terminating ones.
	Available, Pods int
}

// record records what happens in a cluster.
type record struct {
	start    time.Time
	minReady time.Duration
	actor    string
	// owner is the UID of the set. Pods that it does not control are not recorded.
	owner types.UID
	// domainKey is the label with the failure domain of pods; empty if the set has none.
	domainKey string
	writes    []Write
	// since is the index of the first write of the current reconcile.
	since int
	lanes []*Lane
	named map[string]*Lane
	order int
}

func newRecord(start time.Time, minReady time.Duration, owner types.UID, pods []*corev1.Pod) *record {
	r := &record{start: start, minReady: minReady, owner: owner, named: map[string]*Lane{}}
	for _, pod := range pods {
		if isOf(pod, owner) {
			r.see(start, pod)
		}
	}
	return r
}

// observe records a write.
func (r *record) observe(e *apiserver.Entry) {
	if e.Actor == r.actor && resourceOf(e) != "" {
		r.writes = append(r.writes, Write{
			At: e.At.Sub(r.start), Verb: string(e.Verb), Resource: resourceOf(e), Name: e.Key.Name, Domain: r.domainOf(e), effect: effectOf(e),
		})
	}
	if e.Key.Kind != apiserver.Pods {
		return
	}
	r.order++
	old, _ := e.Old.(*corev1.Pod)
	pod, _ := e.New.(*corev1.Pod)
	switch {
	case isOf(pod, r.owner):
		r.see(e.At, pod)
	case isOf(old, r.owner): // deleted, or released
		r.end(r.named[e.Key.Name], e.At)
	}
}

// domainOf returns the failure domain of the pod that is written.
func (r *record) domainOf(e *apiserver.Entry) string {
	if pod, ok := e.Old.(*corev1.Pod); ok && r.domainKey != "" {
		return snapshot.DomainOf(pod, r.domainKey).In(r.domainKey)
	}
	return ""
}

// resourceOf returns the name of the resource that is written; empty for one that is not reported. The status of a set
// follows the other writes, and how often it is written depends on the time.
func resourceOf(e *apiserver.Entry) string {
	var resource string
	switch e.Key.Kind {
	case apiserver.Pods:
		resource = "pods"
	case apiserver.Claims:
		resource = "persistentvolumeclaims"
	case apiserver.Revisions:
		resource = "controllerrevisions"
	case apiserver.Budgets:
		resource = "poddisruptionbudgets"
	default:
		return ""
	}
	if e.Subresource != "" {
		resource += "/" + e.Subresource
	}
	return resource
}

// see records the state of a pod.
func (r *record) see(at time.Time, pod *corev1.Pod) {
	lane, ok := r.named[pod.Name]
	if !ok {
		lane = &Lane{Name: pod.Name}
		r.named[pod.Name] = lane
		r.lanes = append(r.lanes, lane)
	}
	span := Span{From: at.Sub(r.start), State: stateOf(pod), Revision: pod.Labels[v1beta1.RevisionLabel], open: true, order: r.order}
	if span.State == Ready {
		span.ready, _ = podstate.ReadySince(pod)
	}
	if n := len(lane.Spans); n > 0 && lane.Spans[n-1].open {
		if last := &lane.Spans[n-1]; last.State == span.State && last.Revision == span.Revision {
			return
		}
		r.end(lane, at)
	}
	lane.Spans = append(lane.Spans, span)
}

func (r *record) end(lane *Lane, at time.Time) {
	if lane == nil || len(lane.Spans) == 0 {
		return
	}
	last := &lane.Spans[len(lane.Spans)-1]
	last.To, last.open = at.Sub(r.start), false
}

// stateOf returns the state of a pod. It is Ready for a pod that may also be available.
func stateOf(pod *corev1.Pod) State {
	_, ready := podstate.ReadySince(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return Terminating
	case apiserver.HasEnded(pod):
		return Failed
	case inplace.GateOf(pod).Closed():
		return Updating
	case ready:
		return Ready
	default:
		return Starting
	}
}

// finish closes the open spans at the end, and distinguishes ready pods from available ones.
func (r *record) finish(end time.Time) []Lane {
	lanes := make([]Lane, 0, len(r.lanes))
	for _, lane := range r.lanes {
		done := Lane{Name: lane.Name}
		for _, span := range lane.Spans {
			if span.open {
				span.To = end.Sub(r.start)
			}
			done.Spans = append(done.Spans, r.split(span)...)
		}
		lanes = append(lanes, done)
	}
	return lanes
}

// split splits a span at the moment at which a ready pod becomes available.
func (r *record) split(span Span) (spans []Span) {
	if span.State != Ready {
		return []Span{span}
	}
	available := span.From
	if r.minReady > 0 { // otherwise it is available at once, also if the clock of its node is ahead
		available = max(span.From, span.ready.Add(r.minReady).Sub(r.start))
	}
	if available > span.From {
		early := span
		early.To = min(available, span.To)
		spans = append(spans, early)
		if available > span.To || available == span.To && !span.open {
			return spans
		}
		span.From, span.order = available, 0
	}
	span.State = Available // perhaps for an instant only, which counts
	return append(spans, span)
}

// curve returns how many pods exist and are available, from each moment to the next, with the lowest and the highest number
// at any moment.
func curve(lanes []Lane) (points []Point, lowest, most int) {
	var changes []change
	for _, lane := range lanes {
		changes = append(changes, lane.changes()...)
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	available, pods := 0, 0
	for i, c := range changes {
		available, pods = available+c.available, pods+c.pods
		if i+1 < len(changes) && c.order == 0 && changes[i+1].at == c.at && changes[i+1].order == 0 {
			continue // it exists at the start, or comes with time
		}
		if len(points) == 0 {
			lowest, most = available, pods
		}
		lowest, most = min(lowest, available), max(most, pods)
		p := Point{At: c.at, Available: available, Pods: pods}
		if n := len(points); n > 1 && points[n-1].At == c.at { // the first point is the present
			points[n-1] = p
			continue
		}
		points = append(points, p)
	}
	return points, lowest, most
}

// change is a change of the counts of pods at a moment.
type change struct {
	at              time.Duration
	order           int
	available, pods int
}

// changes returns how a pod changes the counts.
func (l Lane) changes() (changes []change) {
	for i, span := range l.Spans {
		d := change{at: span.From, order: span.order}
		d.available, d.pods = weigh(span.State)
		if i > 0 && l.Spans[i-1].To == span.From {
			available, pods := weigh(l.Spans[i-1].State)
			d.available, d.pods = d.available-available, d.pods-pods
		}
		if d.available != 0 || d.pods != 0 {
			changes = append(changes, d)
		}
		if last := i+1 == len(l.Spans) || l.Spans[i+1].From != span.To; last && !span.open {
			available, pods := weigh(span.State)
			changes = append(changes, change{at: span.To, available: -available, pods: -pods})
		}
	}
	return changes
}

// weigh returns how much a pod in a state counts towards available and existing pods.
func weigh(s State) (available, pods int) {
	switch s {
	case Available:
		return 1, 1
	case Terminating, Failed:
		return 0, 0
	default:
		return 0, 1
	}
}

// reasons returns a logger that adds the reasons in the controller's log to the writes of a reconcile.
func (r *record) reasons() logr.Logger {
	return funcr.New(func(string, string) {}, funcr.Options{Verbosity: 1, RenderArgsHook: func(values []any) []any {
		r.explain(values)
		return nil
	}})
}

// explain reads the values of a line of the log.
func (r *record) explain(values []any) {
	name, why := "", ""
	for i := 0; i+1 < len(values); i += 2 {
		value, _ := values[i+1].(string)
		switch values[i] {
		case "pod", "claim", "budget":
			name = value
		case "reason", "change":
			why = value
		}
	}
	writes := r.writes[r.since:]
	for i := range writes {
		if writes[i].Name == name && writes[i].Reason == "" {
			writes[i].Reason = why
		}
	}
}
