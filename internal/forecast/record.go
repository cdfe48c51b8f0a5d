// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// State is what a pod is, as far as a picture of a rollout shows it.
type State string

// The states.
const (
	// Starting pods are not ready.
	Starting State = "starting"
	// Ready pods have not been ready for minReadySeconds.
	Ready State = "ready"
	// Available pods have been.
	Available State = "available"
	// Updating pods are out of service while they are changed in place.
	Updating State = "updating"
	// Terminating pods are on their way out.
	Terminating State = "terminating"
	// Failed pods have ended.
	Failed State = "failed"
)

// Write is one request that the controller will send.
type Write struct {
	// At is when, counted from now.
	At time.Duration
	// Step numbers the steps, from 1: what the controller writes before it waits for something.
	Step int
	// Verb is create, patch, update or delete.
	Verb string
	// Resource is pods, persistentvolumeclaims or controllerrevisions, or a subresource as in pods/resize.
	Resource string
	// Name is the name of the object.
	Name string
	// Reason is why, in the words of the controller's log.
	Reason string
}

// Lane is what becomes of one name of a pod.
type Lane struct {
	// Name is the name.
	Name string
	// Spans are what it is, one after another. Between them the pod does not exist.
	Spans []Span
}

// Span is a time in which a pod stays as it is.
type Span struct {
	// From and To are its ends, counted from now.
	From, To time.Duration
	// State is what the pod is.
	State State
	// Revision is the name of its revision.
	Revision string

	order int
	open  bool
	ready time.Time
}

// Point is how things are from a moment on.
type Point struct {
	// At is the moment, counted from now.
	At time.Duration
	// Available is how many pods are, and Pods how many exist that are not on their way out.
	Available, Pods int
}

// record keeps what happens in a cluster.
type record struct {
	start    time.Time
	minReady time.Duration
	actor    string
	writes   []Write
	// since is where the writes of the reconcile that goes on begin.
	since int
	lanes []*Lane
	named map[string]*Lane
	order int
}

func newRecord(start time.Time, minReady time.Duration, pods []*corev1.Pod) *record {
	r := &record{start: start, minReady: minReady, named: map[string]*Lane{}}
	for _, pod := range pods {
		r.see(start, pod)
	}
	return r
}

// observe notes a write.
func (r *record) observe(e *apiserver.Entry) {
	if e.Actor == r.actor && resourceOf(e) != "" {
		r.writes = append(r.writes, Write{
			At: e.At.Sub(r.start), Verb: string(e.Verb), Resource: resourceOf(e), Name: e.Key.Name,
		})
	}
	if e.Key.Kind != apiserver.Pods {
		return
	}
	r.order++
	if pod, ok := e.New.(*corev1.Pod); ok {
		r.see(e.At, pod)
		return
	}
	r.end(r.named[e.Key.Name], e.At)
}

// resourceOf returns the name of the resource that a write is sent to; empty for one that is not told of: the status of a
// set follows the others, and how often depends on the time.
func resourceOf(e *apiserver.Entry) string {
	var resource string
	switch e.Key.Kind {
	case apiserver.Pods:
		resource = "pods"
	case apiserver.Claims:
		resource = "persistentvolumeclaims"
	case apiserver.Revisions:
		resource = "controllerrevisions"
	default:
		return ""
	}
	if e.Subresource != "" {
		resource += "/" + e.Subresource
	}
	return resource
}

// see notes what a pod is now.
func (r *record) see(at time.Time, pod *corev1.Pod) {
	lane, ok := r.named[pod.Name]
	if !ok {
		lane = &Lane{Name: pod.Name}
		r.named[pod.Name] = lane
		r.lanes = append(r.lanes, lane)
	}
	span := Span{From: at.Sub(r.start), State: stateOf(pod), Revision: pod.Labels[v1alpha1.RevisionLabel], open: true, order: r.order}
	if span.State == Ready {
		span.ready, _ = readySince(pod)
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

// stateOf returns the state of a pod, Ready for one that may be available as well.
func stateOf(pod *corev1.Pod) State {
	_, ready := readySince(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return Terminating
	case hasEnded(pod):
		return Failed
	case gateClosed(pod):
		return Updating
	case ready:
		return Ready
	default:
		return Starting
	}
}

// finish closes what is open at the end, and tells ready pods from available ones.
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

// split returns the part of a span in which a ready pod is not available yet, and that in which it is.
func (r *record) split(span Span) (spans []Span) {
	if span.State != Ready {
		return []Span{span}
	}
	available := max(span.From, span.ready.Add(r.minReady).Sub(r.start))
	if available > span.From {
		early := span
		early.To = min(available, span.To)
		spans = append(spans, early)
		if available > span.To || available == span.To && !span.open {
			return spans
		}
		span.From, span.order = available, 0
	}
	if span.From < span.To || span.open {
		span.State = Available
		spans = append(spans, span)
	}
	return spans
}

// curve returns how many pods there are and are available, from each moment to the next, and the least and the most of them
// at any instant between.
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
			continue // what is there at the start, or comes with the time
		}
		if len(points) == 0 {
			lowest, most = available, pods
		}
		lowest, most = min(lowest, available), max(most, pods)
		p := Point{At: c.at, Available: available, Pods: pods}
		if n := len(points); n > 0 && points[n-1].At == c.at {
			points[n-1] = p
			continue
		}
		points = append(points, p)
	}
	return points, lowest, most
}

// change is how the counts of pods change at a moment.
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

// weigh returns what a pod in a state counts towards those available and those that exist.
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

// reasons is a logger that gives the writes of a reconcile the reasons that the controller logs.
type reasons struct{ record *record }

// Init implements logr.LogSink.
func (reasons) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (reasons) Enabled(level int) bool { return level <= 1 }

// Info implements logr.LogSink.
func (r reasons) Info(_ int, _ string, values ...any) {
	name, why := "", ""
	for i := 0; i+1 < len(values); i += 2 {
		value, _ := values[i+1].(string)
		switch values[i] {
		case "pod", "claim":
			name = value
		case "reason":
			why = value
		}
	}
	if name == "" || why == "" {
		return
	}
	writes := r.record.writes[r.record.since:]
	for i := range writes {
		if writes[i].Name == name && writes[i].Reason == "" {
			writes[i].Reason = why
		}
	}
}

// Error implements logr.LogSink.
func (reasons) Error(error, string, ...any) {}

// WithValues implements logr.LogSink.
func (r reasons) WithValues(...any) logr.LogSink { return r }

// WithName implements logr.LogSink.
func (r reasons) WithName(string) logr.LogSink { return r }
