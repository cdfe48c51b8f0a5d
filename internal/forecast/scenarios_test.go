// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim"
)

// unforeseen matches words whose effect cannot be predicted: pods that become ready only with others, late kubelets and
// caches, managers that overlap, zones that go down, policies against single objects, policies that change what is written, neighbors,
// because only the manager that wrote it remembers what they changed, and pods of a failure domain that were killed or not ready for a
// moment, because only the manager that saw them remembers where they were and that they served.
var unforeseen = regexp.MustCompile(`quorum|(?m:^(busy|late|managers|neighbors|refuse|rewrite|zone-down) )|(?m:^domains (?:.*\n)*(?:kill|blip) )`)

// scripts returns the golden rollouts of the simulator that can be predicted.
func scripts(t *testing.T) map[string]sim.Script {
	t.Helper()
	paths, err := filepath.Glob("../testing/sim/testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	all := make(map[string]sim.Script)
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			if file.Name != "script" || unforeseen.Match(file.Data) {
				continue
			}
			script, err := sim.ParseScript(string(file.Data))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all[strings.TrimSuffix(filepath.Base(path), ".txtar")] = script
		}
	}
	return all
}

// asIn returns the surroundings that pods have in a world.
func asIn(w *sim.World) Surroundings {
	return Surroundings{
		Kubelet: w.Kubelet(), Nodes: w.Nodes(), Labels: w.NodeLabels(),
		Refuses: func(pod *corev1.Pod) string {
			bare := pod.DeepCopy()
			bare.Spec.Volumes = nil // the claims of the world are not those of the forecast
			return w.Refuses(bare)
		},
		Prepare: func(store *apiserver.Store) {
			store.MaxPods, store.MaxCPU = w.Store.MaxPods, w.Store.MaxCPU
			for _, admission := range w.Store.Admission {
				store.Admission = append(store.Admission, func(verb apiserver.Verb, obj client.Object) error {
					if there := w.Store.Get(apiserver.KeyOf(obj)); verb != apiserver.Create && (there == nil || there.GetUID() != obj.GetUID()) {
						return nil // the world's policies compare pods with those of the world
					}
					return admission(verb, obj)
				})
			}
		},
	}
}

// film returns the writes of managers to pods and claims after a version, one a line.
func film(store *apiserver.Store, after int64) []string {
	var lines []string
	for i := range store.Log() {
		e := &store.Log()[i]
		if e.Version > after && e.Actor == simulator.ManagerActor && resourceOf(e) != "" {
			lines = append(lines, fmt.Sprintf("%s %s %s", e.Verb, resourceOf(e), e.Key.Name))
		}
	}
	return lines
}

// plan returns the writes that are forecast for the state of a store at a version, one a line.
func plan(ctx context.Context, w *sim.World, version int64, at time.Time) ([]string, error) {
	in := Input{Now: at}
	for _, obj := range w.Store.StateAt(version) {
		if set, ok := obj.(*v1beta1.RollSet); ok && set.Name == sim.SetName {
			in.Before, in.After = set, set
			continue
		}
		in.Objects = append(in.Objects, obj)
	}
	if in.Before == nil {
		return nil, nil
	}
	r, err := simulate(ctx, in, asIn(w))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, w := range r.record.writes {
		lines = append(lines, fmt.Sprintf("%s %s %s", w.Verb, w.Resource, w.Name))
	}
	return lines, nil
}

// settle lets time pass until the manager writes nothing more, and no soak of a step is left that is longer than a settled
// state is awaited.
func settle(ctx context.Context, w *sim.World) error {
	for {
		if err := w.Settle(ctx); err != nil {
			return err
		}
		from, soak := w.Store.Version(), longestSoak(w)
		if soak == 0 {
			return nil
		}
		if err := w.Run(ctx, soak); err != nil || len(film(w.Store, from)) == 0 {
			return err
		}
	}
}

// longestSoak returns the longest soak of the steps of the set; 0 if it has none.
func longestSoak(w *sim.World) time.Duration {
	soak := int32(0)
	for _, obj := range w.Store.StateAt(w.Store.Version()) {
		if set, ok := obj.(*v1beta1.RollSet); ok && set.Name == sim.SetName {
			for _, step := range set.Spec.UpdateStrategy.RollingUpdate.Steps {
				soak = max(soak, step.SoakSeconds)
			}
		}
	}
	return time.Duration(soak) * time.Second
}

// TestPlanIsTheRestOfTheFilm stops every golden rollout after each of its lines, and in the middle of what follows.
func TestPlanIsTheRestOfTheFilm(t *testing.T) {
	t.Parallel()
	for name, script := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, last := 1, len(script)
			if testing.Short() {
				first, last = max(1, len(script)-1), max(1, len(script)-1) // the last edit, before its effects
			}
			for n := first; n <= last; n++ {
				if script[n-1].Line == "deny" {
					continue // a manager that knows that the template is accepted does not ask again
				}
				if d := differs(t.Context(), t, script[:n]); d != "" {
					t.Fatalf("after line %q:\n%s", script[n-1].Line, d)
				}
			}
		})
	}
}

// differs plays a script, and compares what follows with the forecast, at its end and half-way to the settled state.
func differs(ctx context.Context, t *testing.T, script sim.Script) string {
	t.Helper()
	rest, d := differsAfter(ctx, t, script, 0)
	if d == "" && rest > 0 {
		_, d = differsAfter(ctx, t, script, rest/2)
	}
	return d
}

// differsAfter advances the time after a script, and then compares what follows with the forecast. It also returns how long
// the manager kept writing after the script.
func differsAfter(ctx context.Context, t *testing.T, script sim.Script, pass time.Duration) (rest time.Duration, diff string) {
	t.Helper()
	w := sim.NewWorld(ctx, 0)
	if err := w.Play(ctx, script); err != nil {
		t.Fatal(err)
	}
	start := w.Now()
	if err := w.Run(ctx, pass); err != nil {
		t.Fatal(err)
	}
	from := w.Store.Version()
	got, err := plan(ctx, w, from, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := settle(ctx, w); err != nil {
		t.Fatal(err)
	}
	log := w.Store.Log()
	for i := range log {
		if log[i].Actor == simulator.ManagerActor && resourceOf(&log[i]) != "" {
			rest = log[i].At.Sub(start)
		}
	}
	if diff = gocmp.Diff(film(w.Store, from), got); diff != "" {
		diff = fmt.Sprintf("at version %d, %s later (-film +plan):\n%s", from, pass, diff)
	}
	return rest, diff
}
