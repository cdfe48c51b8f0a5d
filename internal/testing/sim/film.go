// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// Legend explains the states on a film strip.
const Legend = "# state is identity:revision, then + available, r ready, . not ready, ~ updating in place, x terminating, ! failed; in brackets if not the set's own"

// Film is what happened, a line for every write that changes what the user wants or how the pods are.
type Film struct {
	world *World
	lines []line
	names map[types.UID]string // of pods, by order of appearance
	byPod map[string]int       // the last line about a pod, by its name
	state string
}

type line struct {
	at                       time.Time
	actor, what, why, result string
}

func newFilm(w *World) *Film {
	return &Film{world: w, names: make(map[types.UID]string), byPod: make(map[string]int)}
}

// String is the whole strip.
func (f *Film) String() string { return f.last(len(f.lines)) }

// last are the newest n lines.
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

// time is printed as the time since the world began.
func (f *Film) time(at time.Time) string {
	return at.Sub(epoch()).Round(time.Millisecond).String()
}

// note adds a line that no write stands for.
func (f *Film) note(actor, what string) {
	f.state = f.snapshot()
	f.lines = append(f.lines, line{at: f.world.Now(), actor: actor, what: what, result: f.state})
}

// observe adds a line for a write, unless it changes nothing that the strip shows.
func (f *Film) observe(e *apiserver.Entry) {
	if e.Key.Kind == apiserver.RollSets {
		f.observeStep(e)
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
		delete(f.byPod, pod.Name) // the reason that is logged next is not that of an earlier line
		return
	}
	f.byPod[pod.Name] = len(f.lines)
	f.lines = append(f.lines, line{at: e.At, actor: e.Actor, what: f.describe(e, pod), result: f.state})
}

// observeStep adds a line for a status that tells of another step of a rollout, or of another phase.
func (f *Film) observeStep(e *apiserver.Entry) {
	was, existed := e.Old.(*v1alpha1.RollSet)
	is, exists := e.New.(*v1alpha1.RollSet)
	if !existed || !exists || is.Status.Rollout == nil || e.Subresource != "status" {
		return
	}
	before, after := was.Status.Rollout, is.Status.Rollout
	if before != nil && before.Step == after.Step && before.Phase == after.Phase && before.Revision == after.Revision {
		return
	}
	f.note(e.Actor, fmt.Sprintf("step %d of %d: %s", after.Step, after.Steps, after.Phase))
}

// describe says what became of a pod.
func (f *Film) describe(e *apiserver.Entry, pod *corev1.Pod) string {
	name := f.name(pod)
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case e.Old == nil:
		return fmt.Sprintf("create %s at %s", name, f.world.version(pod))
	case e.Verb == apiserver.Delete && e.Actor != kubeletActor:
		return "delete " + name
	case e.Gone():
		return name + " is gone"
	case e.Actor == kubeletActor:
		return name + " is " + f.world.condition(pod)
	case ownerOf(old) == "" && ownerOf(pod) != "":
		return "adopt " + name
	case ownerOf(old) != "" && ownerOf(pod) == "":
		return "release " + name
	case isUpdating(old) != isUpdating(pod):
		return map[bool]string{true: "close", false: "open"}[isUpdating(pod)] + " gate of " + name
	case f.world.version(old) != f.world.version(pod):
		return fmt.Sprintf("update %s in place to %s", name, f.world.version(pod))
	case entersState(e, pod):
		return name + " is " + pod.Labels[v1alpha1.LifecycleStateLabel]
	default:
		return strings.TrimSpace(string(e.Verb)+" "+e.Subresource) + " " + name
	}
}

// entersState says whether a write changes where a pod stands as to lifecycle hooks.
func entersState(e *apiserver.Entry, pod *corev1.Pod) bool {
	old, ok := e.Old.(*corev1.Pod)
	return ok && old.Labels[v1alpha1.LifecycleStateLabel] != pod.Labels[v1alpha1.LifecycleStateLabel]
}

// snapshot is the state of all pods in one line.
func (f *Film) snapshot() string {
	w := f.world
	pods := w.pods()
	set := w.Set()
	states := make([]string, len(pods))
	for i, pod := range pods {
		states[i] = f.name(pod) + ":" + w.version(pod) + w.mark(pod)
		if set == nil || ownerOf(pod) != set.UID {
			states[i] = "(" + states[i] + ")"
		}
	}
	return strings.Join(states, " ")
}

// name is a pod's ordinal, or a letter for a random identity: the first one that appears is a.
func (f *Film) name(pod *corev1.Pod) string {
	if pod.Labels[v1alpha1.PodIndexLabel] != "" {
		return pod.Labels[v1alpha1.PodIndexLabel]
	}
	if _, ok := f.names[pod.UID]; !ok {
		f.names[pod.UID] = letters(len(f.names))
	}
	return f.names[pod.UID]
}

// letters counts a, b, … z, aa, ab, ….
func letters(n int) string {
	text := string(rune('a' + n%26))
	if n >= 26 {
		text = letters(n/26-1) + text
	}
	return text
}

// withLog adds a logger that puts the reasons, which the controller logs for each pod, into the strip.
func (f *Film) withLog(ctx context.Context) context.Context {
	log := funcr.NewJSON(func(string) {}, funcr.Options{Verbosity: 1, RenderArgsHook: func(kvs []any) []any {
		values := make(map[string]string, len(kvs)/2)
		for i := 0; i+1 < len(kvs); i += 2 {
			values[fmt.Sprint(kvs[i])] = fmt.Sprint(kvs[i+1])
		}
		if n, ok := f.byPod[values["pod"]]; ok && values["reason"] != "" {
			f.lines[n].why = f.world.readable(values["reason"])
		}
		return kvs
	}})
	return logr.NewContext(ctx, log)
}

// Tally is what the managers have written in all but the status of sets, for that is bounded by time, not by pods.
func (w *World) Tally() string {
	var kinds []string
	for kind := range w.checker.writes {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", kind, w.checker.writes[kind])
	}
	return "# managers wrote: " + strings.Join(kinds, ", ") + "\n"
}

// Transcript is every write there was, with the object as it was stored.
func (w *World) Transcript() string {
	var b strings.Builder
	log := w.Store.Log()
	for i := range log {
		e := &log[i]
		stored, err := json.Marshal(e.New)
		if err != nil {
			apiserver.Unmodeled("%s as JSON: %v", e.Key, err)
		}
		fmt.Fprintf(&b, "%d %s %s %s %s\n", e.Version, w.Film.time(e.At), e.Actor, e.Write, stored)
	}
	return b.String()
}
