// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim"
)

// inSteps rolls out a set in steps: one pod for an hour, 40% until it is judged and promoted, and 80%.
func inSteps(s *v1beta1.RollSetSpec) {
	s.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{
		{Updated: intstr.FromInt32(1), SoakSeconds: 3600},
		{Updated: intstr.FromString("40%"), Pause: true, Gates: []v1beta1.StepGate{{ConditionType: "Errors"}}},
		{Updated: intstr.FromString("80%"), SoakSeconds: 60, Gates: []v1beta1.StepGate{{ConditionType: "Errors", TimeoutSeconds: new(int32(10))}}},
	}
}

const wantSteps = `
STEP  AFTER    WRITES                                     REASON
1     0s       create controllerrevisions web-d28nvdzbdg  the history of the template
               delete pods web-4                          recreate at web-d28nvdzbdg
2     2s       create pods web-4                          missing
      7s                                                  step 1 of 3: 1 of 5 pods updated; soaking until 13:00:07Z
3     1h0m7s   delete pods web-3                          recreate at web-d28nvdzbdg
4     1h0m9s   create pods web-3                          missing
      1h0m14s                                             step 2 of 3: 2 of 5 pods updated; waiting for gate Errors
      1h0m14s                                             step 2 of 3: 2 of 5 pods updated; waiting for annotation apps.rollset.dev/promote=web-d28nvdzbdg/2
5     1h0m14s  delete pods web-2                          recreate at web-d28nvdzbdg
6     1h0m16s  create pods web-2                          missing
7     1h0m21s  delete pods web-1                          recreate at web-d28nvdzbdg
8     1h0m23s  create pods web-1                          missing
      1h0m28s                                             step 3 of 3: 4 of 5 pods updated; soaking until 13:01:28Z; waiting for gate Errors
9     1h1m28s  delete pods web-0                          recreate at web-d28nvdzbdg
10    1h1m30s  create pods web-0                          missing
11    1h1m35s  patch controllerrevisions web-d28nvdzbdg   the history of the template
`

// TestPlanOfSteps plans a rollout in steps: the plan shows when it waits for time, a gate and a person, and continues after
// that.
func TestPlanOfSteps(t *testing.T) {
	t.Parallel()
	f := forecastOf(t, web(inSteps), web(inSteps, image("web:2")))
	var text, picture, object bytes.Buffer
	if err := f.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(text.String(), "\n")
	table, rest, _ := strings.Cut(table, "\nLowest")
	if diff := gocmp.Diff(wantSteps, table); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	for _, want := range []string{"1h1m35s, and what gates and people take", "steps: each gate is assumed", "no progress for 600 seconds; step 1 of 3"} {
		if !strings.Contains(rest, want) {
			t.Errorf("it does not say %q:\n%s", want, rest)
		}
	}
	if f.WaitsFor != "" {
		t.Errorf("in the end it waits for %s", f.WaitsFor)
	}
	if err := f.SVG(&picture); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(picture.String(), `class="wait"`); n != 4 {
		t.Errorf("the picture marks %d waits, want 4", n)
	}
	if err := f.JSON(&object); err != nil {
		t.Fatal(err)
	}
	var got struct{ Waits []waitJSON }
	if err := json.Unmarshal(object.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	first := waitJSON{AfterSeconds: 7, AfterWrites: 3, WaitsFor: "step 1 of 3: 1 of 5 pods updated; soaking until 13:00:07Z"}
	if len(got.Waits) != 4 || got.Waits[0] != first || !got.Waits[2].Others {
		t.Errorf("waits are %+v", got.Waits)
	}
}

// midway returns the input of a forecast without an edit, in the middle of what a script began.
func midway(t *testing.T, lines string) Input {
	t.Helper()
	script, err := sim.ParseScript(lines)
	if err != nil {
		t.Fatal(err)
	}
	w := sim.NewWorld(t.Context(), 0)
	if err := w.Play(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	in := Input{Now: w.Now()}
	for _, obj := range w.Store.StateAt(w.Store.Version()) {
		if set, ok := obj.(*v1beta1.RollSet); ok {
			in.Before, in.After = set, set
			continue
		}
		in.Objects = append(in.Objects, obj)
	}
	return in
}

// TestPlanOfTheRestOfSteps plans from within a step. The plan continues if only an approval is missing; otherwise it shows
// where it stops.
func TestPlanOfTheRestOfSteps(t *testing.T) {
	t.Parallel()
	const begin = "replicas 4\nidentity Ordinal\nsettle\n"
	for name, tt := range map[string]struct {
		script string
		first  string
		waits  int
		stops  string
	}{
		"at a gate":                      {"steps 1,gate=A 50%,pause\nimage app:v2\nsettle\n", "step 1 of 2: 1 of 4 pods updated; waiting for gate A", 2, ""},
		"at a pause":                     {"steps 1 50%,pause\nimage app:v2\nsettle\n", "step 2 of 2: 2 of 4 pods updated; waiting for annotation", 1, ""},
		"promoted before it began":       {"steps 1,gate=A 2,pause\nimage app:v2\nsettle\npromote 2\ngate A True\nsettle\n", "step 2 of 2: 2 of 4 pods updated; waiting for annotation", 1, ""},
		"in a soak":                      {"steps 1,soak=40\nimage app:v2\nrun 10s\n", "step 1 of 1: 1 of 4 pods updated; soaking until", 1, ""},
		"at a gate that is False":        {"steps 1,gate=A\nimage app:v2\nsettle\ngate A False\nsettle\n", "", 0, "step 1 of 1: 1 of 4 pods updated; gate A is False"},
		"at a gate, and the set paused":  {"steps 1,gate=A\nimage app:v2\nsettle\npaused true\nsettle\n", "", 0, "paused"},
		"after an abort":                 {"steps 1,gate=A\nimage app:v2\nsettle\nabort\nsettle\n", "", 0, "was aborted and is rolled back"},
		"a partition beside a last step": {"partition 1\nsteps 50%,pause\nimage app:v2\nsettle\n", "step 1 of 1: 2 of 4 pods updated; waiting for annotation", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Run(t.Context(), midway(t, begin+tt.script))
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Waits) != tt.waits || len(f.Waits) > 0 && !strings.HasPrefix(f.Waits[0].Says, tt.first) {
				t.Errorf("it waits for %+v, want %d, first %q", f.Waits, tt.waits, tt.first)
			}
			if (f.WaitsFor == "") != (tt.stops == "") || !strings.Contains(f.WaitsFor, tt.stops) {
				t.Errorf("it stops at %q, want %q", f.WaitsFor, tt.stops)
			}
			if done := slices.ContainsFunc(f.Writes, func(w Write) bool { return w.Name == "web-1" }); done != (tt.stops == "") {
				t.Errorf("it goes on: %t; writes %+v", done, f.Writes)
			}
		})
	}
}

// TestPlanSpeaksOfStepsOnlyInSteps compares the plans of a set without steps, and of one whose steps wait for no gate or
// person.
func TestPlanSpeaksOfStepsOnlyInSteps(t *testing.T) {
	t.Parallel()
	alone := func(s *v1beta1.RollSetSpec) {
		s.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{{Updated: intstr.FromInt32(1), SoakSeconds: 5}}
	}
	for _, f := range []*Forecast{forecastOf(t, web(), web(image("web:2"))), forecastOf(t, web(alone), web(alone, image("web:2")))} {
		if f.asksOthers() || strings.Contains(strings.Join(f.CannotKnow, "\n"), "steps:") {
			t.Errorf("it speaks of gates and people: %v", f.CannotKnow)
		}
	}
}

// TestStepsCostNoWritesOfPods rolls out many pods in twenty steps, and without steps: each pod costs the same writes, and
// each step a few of the set's status.
func TestStepsCostNoWritesOfPods(t *testing.T) {
	t.Parallel()
	pods := int32(1000)
	if testing.Short() {
		pods = 200
	}
	plain := func(s *v1beta1.RollSetSpec) {
		s.Replicas = &pods
		s.PodIdentity = v1beta1.RandomIdentity
		s.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("5%"))
	}
	stepped := func(s *v1beta1.RollSetSpec) {
		plain(s)
		for i := range 20 {
			s.UpdateStrategy.RollingUpdate.Steps = append(s.UpdateStrategy.RollingUpdate.Steps, v1beta1.RolloutStep{
				Updated: intstr.FromString(fmt.Sprintf("%d%%", 5*(i+1))), SoakSeconds: 30, Pause: i%2 == 0,
			})
		}
	}
	cost := func(spec func(*v1beta1.RollSetSpec)) (ofPods, ofStatus int) {
		in, err := Offline(t.Context(), web(spec), web(spec, image("web:2")), now())
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate(t.Context(), in, Surroundings{
			Kubelet: newPodKubelet(nil, measure(nil, &in.After.Spec.Template.Spec), "", in.Now), Nodes: []string{"a"}, Refuses: schedulerOf(nil), Judged: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if why := r.waitsFor(); why != "" {
			t.Fatalf("it waits: %s", why)
		}
		log := r.store.Log()
		for i := range log {
			switch e := &log[i]; {
			case e.Actor != simulator.ManagerActor:
			case e.Key.Kind == apiserver.RollSets:
				ofStatus++
			case e.Key.Kind == apiserver.Pods:
				ofPods++
			}
		}
		return ofPods, ofStatus
	}
	wantPods, without := cost(plain)
	gotPods, with := cost(stepped)
	t.Logf("%d pods: %d writes of pods without steps and %d with; %d of the status and %d", pods, wantPods, gotPods, without, with)
	if gotPods != wantPods || wantPods != 2*int(pods) {
		t.Errorf("%d writes of pods with steps, %d without", gotPods, wantPods)
	}
	if more := with - without; more > 20*5 {
		t.Errorf("twenty steps cost %d writes of the status more", more)
	}
}
