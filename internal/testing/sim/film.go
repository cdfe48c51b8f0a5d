// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// Legend explains the states on a film strip.
const Legend = "# state is identity:revision, then + available, r ready, . not ready, ~ updating in place, x terminating, ! failed; in brackets if not the set's own"

// Film is the film strip: a line for every write that changes what the user wants or the state of a pod.
type Film struct {
	world *World
	lines []line
	byPod map[string]int // the last line about a pod, by its name
	state string
}

type line struct {
	at                       time.Time
	actor, what, why, result string
}

func newFilm(w *World) *Film {
	return &Film{world: w, byPod: make(map[string]int)}
}

// String returns the whole strip.
func (f *Film) String() string { return f.last(len(f.lines)) }

// last returns the newest n lines.
func (f *Film) last(n int) string {
	var b strings.Builder
	b.WriteString(Legend + "\n")
	for _, l := range f.lines[max(0, len(f.lines)-n):] {
		what := l.what
		if l.why != "" {
			what += " (" + l.why + ")"
		}
		text := fmt.Sprintf("%-8s %-10s %-46s %s", f.time(l.at), l.actor, what, l.result)
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}

// time formats a time as the time since the world began.
func (f *Film) time(at time.Time) string {
	return at.Sub(epoch()).Round(time.Millisecond).String()
}

// note adds a line for an event that is not a write.
func (f *Film) note(actor, what string) {
	f.state = f.snapshot()
	f.lines = append(f.lines, line{at: f.world.Now(), actor: actor, what: what, result: f.state})
}

// observe adds a line for a write, unless it changes nothing that the strip shows.
func (f *Film) observe(e *apiserver.Entry) {
	if e.Key.Kind == apiserver.RollSets {
		f.observeStep(e)
	}
	if e.Key.Kind == apiserver.Budgets {
		f.observeBudget(e)
	}
	if e.Key.Kind != apiserver.Pods {
		return
	}
	before := f.state
	f.state = f.snapshot()
	pod, ok := e.New.(*corev1.Pod)
	if !ok {
		pod = apiserver.MustBe[*corev1.Pod](e.Old)
	}
	if f.state == before && !entersState(e, pod) {
		delete(f.byPod, pod.Name) // the next reason in the log does not belong to an earlier line
		return
	}
	f.byPod[pod.Name] = len(f.lines)
	f.lines = append(f.lines, line{at: e.At, actor: e.Actor, what: f.describe(e, pod), result: f.state})
}

// observeStep adds a line for a status with another step of a rollout, or another phase.
func (f *Film) observeStep(e *apiserver.Entry) {
	was, existed := e.Old.(*v1beta1.RollSet)
	is, exists := e.New.(*v1beta1.RollSet)
	if !existed || !exists || is.Status.Rollout == nil || e.Subresource != "status" {
		return
	}
	before, after := was.Status.Rollout, is.Status.Rollout
	if before != nil && before.Step == after.Step && before.Phase == after.Phase && before.Revision == after.Revision {
		return
	}
	f.note(e.Actor, fmt.Sprintf("step %d of %d: %s", after.Step, after.Steps, after.Phase))
}

// describe returns what a write did to a pod.
func (f *Film) describe(e *apiserver.Entry, pod *corev1.Pod) string {
	name := f.world.Name(pod)
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case e.Old == nil:
		return fmt.Sprintf("create %s at %s", name, f.world.Version(pod))
	case e.Verb == apiserver.Delete && e.Actor != kubeletActor:
		return "delete " + name
	case e.Gone():
		return name + " is gone"
	case e.Actor == kubeletActor:
		return name + " is " + f.world.Condition(pod)
	case invariants.OwnerOf(old) == "" && invariants.OwnerOf(pod) != "":
		return "adopt " + name
	case invariants.OwnerOf(old) != "" && invariants.OwnerOf(pod) == "":
		return "release " + name
	case invariants.IsUpdating(old) != invariants.IsUpdating(pod):
		return map[bool]string{true: "close", false: "open"}[invariants.IsUpdating(pod)] + " gate of " + name
	case f.world.Version(old) != f.world.Version(pod):
		return fmt.Sprintf("update %s in place to %s", name, f.world.Version(pod))
	case entersState(e, pod):
		return name + " is " + pod.Labels[v1beta1.LifecycleStateLabel]
	default:
		return strings.TrimSpace(string(e.Verb)+" "+e.Subresource) + " " + name
	}
}

// entersState reports whether a write changes the lifecycle state of a pod.
func entersState(e *apiserver.Entry, pod *corev1.Pod) bool {
	old, ok := e.Old.(*corev1.Pod)
	return ok && old.Labels[v1beta1.LifecycleStateLabel] != pod.Labels[v1beta1.LifecycleStateLabel]
}

// snapshot returns the state of all pods in one line.
func (f *Film) snapshot() string {
	w := f.world
	pods := w.Pods()
	set := w.Set()
	states := make([]string, len(pods))
	for i, pod := range pods {
		states[i] = f.domainOf(set, pod) + f.world.Name(pod) + ":" + w.Version(pod) + w.Mark(pod)
		if set == nil || invariants.OwnerOf(pod) != set.UID {
			states[i] = "(" + states[i] + ")"
		}
	}
	return strings.Join(states, " ")
}

// domainOf returns the failure domain of a pod with a slash, if its set has any and the pod is in one.
func (*Film) domainOf(set *v1beta1.RollSet, pod *corev1.Pod) string {
	if set == nil || set.Spec.UpdateStrategy.RollingUpdate.Domains == nil {
		return ""
	}
	if domain, ok := pod.Labels[set.Spec.UpdateStrategy.RollingUpdate.Domains.LabelKey]; ok {
		return domain + "/"
	}
	return ""
}

// withLog adds a logger that puts the reasons in the controller's log into the strip.
func (f *Film) withLog(ctx context.Context) context.Context {
	log := funcr.NewJSON(func(string) {}, funcr.Options{Verbosity: 1, RenderArgsHook: func(kvs []any) []any {
		values := make(map[string]string, len(kvs)/2)
		for i := 0; i+1 < len(kvs); i += 2 {
			values[fmt.Sprint(kvs[i])] = fmt.Sprint(kvs[i+1])
		}
		if n, ok := f.byPod[values["pod"]]; ok && values["reason"] != "" {
			f.lines[n].why = f.world.Readable(values["reason"])
		}
		return kvs
	}})
	return logr.NewContext(ctx, log)
}

// Transcript returns every write with the stored object.
func (w *World) Transcript() string {
	var b strings.Builder
	log := w.Store.Log()
	for i := range log {
		e := &log[i]
		fmt.Fprintf(&b, "%d %s %s %s %s\n", e.Version, w.Film.time(e.At), e.Actor, e.Write, inJSON(e.New))
	}
	return b.String()
}

// inJSON returns an object as the API server stores it.
func inJSON(obj any) string {
	text, err := json.Marshal(obj)
	if err != nil {
		apiserver.Unmodeled("%T as JSON: %v", obj, err)
	}
	return string(text)
}
