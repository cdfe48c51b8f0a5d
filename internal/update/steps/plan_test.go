// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/update/steps"
)

// step parses a step: "25%,soak=10,pause,gate=A,gate=B:60".
func step(text string) v1beta1.RolloutStep {
	words := strings.Split(text, ",")
	s := v1beta1.RolloutStep{Updated: intstr.Parse(words[0])}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		name, limit, limited := strings.Cut(value, ":")
		n, _ := strconv.ParseInt(limit, 10, 32)
		switch {
		case key == "pause":
			s.Pause = true
		case key == "soak":
			seconds, _ := strconv.ParseInt(value, 10, 32)
			s.SoakSeconds = int32(seconds)
		case limited:
			s.Gates = append(s.Gates, v1beta1.StepGate{ConditionType: name, TimeoutSeconds: new(int32(n))})
		default:
			s.Gates = append(s.Gates, v1beta1.StepGate{ConditionType: name})
		}
	}
	return s
}

// observed returns an observation of a set with steps.
func observed(t *testing.T, config, state, plan string) *snapshot.Set {
	t.Helper()
	snap := snapshottest.Parse(config, state)
	for text := range strings.FieldsSeq(plan) {
		snap.Spec.UpdateStrategy.RollingUpdate.Steps = append(snap.Spec.UpdateStrategy.RollingUpdate.Steps, step(text))
	}
	var err error
	if snap.Limits.Steps, err = snapshot.ResolveSteps(snap.Spec, snap.Limits.Replicas); err != nil {
		t.Fatal(err)
	}
	return snap
}

// at returns a status of a rollout that was at a step for so long: "2 Soaking 10s"; nil for an empty text.
func at(snap *snapshot.Set, text string) *v1beta1.RolloutStatus {
	if text == "" {
		return nil
	}
	r := &v1beta1.RolloutStatus{Revision: snap.Update.Name, Steps: int32(len(snap.Limits.Steps))}
	var age string
	if _, err := fmt.Sscan(text, &r.Step, &r.Phase, &age); err != nil {
		panic(err)
	}
	if age == "-" {
		age = "0s"
		defer func() { r.Since = nil }()
	}
	d, err := time.ParseDuration(age)
	if err != nil {
		panic(err)
	}
	r.Since = &metav1.Time{Time: snap.Now.Add(-d)}
	if n := int(r.Step); n >= 1 && n <= len(snap.Limits.Steps) {
		r.Updated = &snap.Spec.UpdateStrategy.RollingUpdate.Steps[n-1].Updated
	}
	return r
}

// conditions reads gates: "A=True B=False".
func conditions(text string) []metav1.Condition {
	var all []metav1.Condition
	for word := range strings.FieldsSeq(text) {
		name, status, _ := strings.Cut(word, "=")
		all = append(all, metav1.Condition{Type: name, Status: metav1.ConditionStatus(status), Message: "m"})
	}
	return all
}

// show formats a rollout in one line.
func show(snap *snapshot.Set, r snapshot.Rollout) string {
	if r.Next == nil {
		return "none"
	}
	text := fmt.Sprintf("keeps %d, step %d %s", r.Keeps, r.Next.Step, r.Next.Phase)
	if r.Next.Until != nil {
		text += " for " + r.Next.Until.Sub(snap.Now).String()
	}
	if r.Waits {
		text += ", waits"
	}
	if r.Next.Since == nil {
		text += ", no clock"
	}
	if len(r.Begins) > 0 {
		text += ", begins " + strings.Join(r.Begins, " ")
	}
	if r.Failure != "" {
		text += ": " + r.Failure
	}
	if r.Wake > 0 {
		text += ", wakes in " + r.Wake.String()
	}
	if r.Next.IgnoredPromotion != "" {
		text += ", ignores " + r.Next.IgnoredPromotion
	}
	return text
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const four = "random R=4 v1>v2"
	tests := map[string]struct {
		config, state, steps, was, gates, promotion string
		before                                      bool
		want                                        string
	}{
		"begins at the first":                     {config: four, state: "a:v1+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A 2", want: "keeps 3, step 1 Rolling, begins A"},
		"no steps":                                {config: four, state: "a:v1+", want: "none"},
		"nothing is rolled out":                   {config: "random R=1 v1", state: "a:v1+", steps: "1", want: "none"},
		"OnDelete takes none":                     {config: four + " ondelete", state: "a:v1+", steps: "1", want: "none"},
		"a revision that was complete takes none": {config: four, state: "a:v1+", steps: "1", before: true, want: "none"},
		"given up":                                {config: four + " rejected", state: "a:v1+", steps: "1", was: "1 Failed 1m", want: "keeps 0, step 0 Failed"},
		"tried again, with pods of the first try": {config: four, state: "a:v2+ b:v2+ c:v1+ d:v1+", steps: "1 2 3", was: "0 Failed 1m", want: "keeps 3, step 1 Rolling"},

		"tried again in one step": {config: four, state: "a:v2+ b:v2+ c:v1+ d:v1+", steps: "1", was: "0 Failed 1m", want: "keeps 3, step 1 Rolling"},

		"percentages round down":   {config: "random R=10 v1>v2", steps: "19% 20%", want: "keeps 9, step 1 Rolling"},
		"but to one":               {config: "random R=3 v1>v2", steps: "1%", want: "keeps 2, step 1 Rolling"},
		"more pods than there are": {config: "random R=3 v1>v2", steps: "7", want: "keeps 0, step 1 Rolling"},
		"a mixture never falls":    {config: "random R=3 v1>v2", state: "a:v2+ b:v2+ c:v1+", steps: "2 50%", was: "2 Rolling 1s", want: "keeps 1, step 3 Rolling"},
		"no pods at all":           {config: "random R=0 v1>v2", steps: "1,soak=5", was: "1 Soaking 2s", want: "none"},

		"still rolling":                       {config: four, state: "a:v2. b:v1+ c:v1+ d:v1+", steps: "1", was: "1 Rolling 5s", want: "keeps 3, step 1 Rolling"},
		"soaks":                               {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,soak=30", was: "1 Rolling 10s", want: "keeps 3, step 1 Soaking for 20s, wakes in 20s"},
		"soaked":                              {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,soak=30 2,gate=A", was: "1 Soaking 30s", want: "keeps 3, step 2 Rolling, begins A"},
		"a pod is lost in a soak":             {config: four, state: "a:v1+ b:v1+ c:v1+", steps: "1,soak=30", was: "1 Soaking 10s", want: "keeps 3, step 1 Rolling"},
		"the last ends":                       {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1", was: "1 Rolling 1s", want: "keeps 3, step 2 Rolling"},
		"all are done":                        {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1", was: "2 Rolling 1s", want: "keeps 0, step 2 Rolling"},
		"a pause of the set":                  {config: four + " paused", state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1 2", was: "1 Rolling 1s", want: "keeps 3, step 1 Paused, waits, no clock"},
		"a larger partition":                  {config: four + " p=4", state: "a:v1+ b:v1+ c:v1+ d:v1+", steps: "1,pause", was: "1 Rolling 1s", want: "keeps 3, step 1 Rolling, waits"},
		"a partition that lets it be":         {config: four + " p=3", state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,pause", was: "1 Rolling 1s", want: "keeps 3, step 1 Paused"},
		"a partition that stops it midway":    {config: four + " p=3", state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1 2,gate=A:1", was: "2 Rolling 1h", gates: "A=Unknown", want: "keeps 2, step 2 Rolling, waits"},
		"False while nothing was tried":       {config: four + " p=4", state: "a:v1+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A:1", was: "1 Rolling 1h", gates: "A=False", want: "keeps 3, step 1 Rolling, waits, begins A"},
		"True while nothing was tried":        {config: four + " p=4", state: "a:v1+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A:1", was: "1 Rolling 1h", gates: "A=True", want: "keeps 3, step 1 Rolling, waits"},
		"no soak in a pause":                  {config: four + " paused", state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,soak=30", was: "1 Soaking 20s", want: "keeps 3, step 1 Paused, waits, no clock"},
		"no time runs out in a pause":         {config: four + " paused", state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A:5", was: "1 Gated 4h", gates: "A=Unknown", want: "keeps 3, step 1 Paused, waits, no clock"},
		"a pause while a person is awaited":   {config: four + " paused", state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,soak=30,pause", was: "1 Paused 4h", want: "keeps 3, step 1 Paused, waits"},
		"a pod is lost in a pause":            {config: four + " paused", state: "a:v2. b:v1+ c:v1+ d:v1+", steps: "1,soak=30,pause", was: "1 Paused 4h", want: "keeps 3, step 1 Paused, waits, no clock"},
		"the pause ends, and the soak begins": {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,soak=30", was: "1 Paused -", want: "keeps 3, step 1 Soaking for 30s, wakes in 30s"},

		"two gates, the second runs out first": {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A:300,gate=B:60", was: "1 Rolling 10s", gates: "A=Unknown B=Unknown", want: "keeps 3, step 1 Gated for 50s, wakes in 50s"},
		"a gate runs out in the soak":          {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,soak=300,gate=A:60", was: "1 Soaking 10s", gates: "A=Unknown", want: "keeps 3, step 1 Soaking for 4m50s, wakes in 50s"},
		"gated":                                {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A:60,gate=B", was: "1 Rolling 10s", gates: "A=Unknown B=True", want: "keeps 3, step 1 Gated for 50s, wakes in 50s"},
		"True while rolling counts":            {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A 2", was: "1 Rolling 10s", gates: "A=True", want: "keeps 3, step 2 Rolling"},
		"False while rolling fails":            {config: four, state: "a:v2. b:v1+ c:v1+ d:v1+", steps: "1,gate=A", was: "1 Rolling 10s", gates: "A=False", want: "keeps 3, step 1 Failed: gate A is False: m"},
		"the first that is False counts":       {config: four, state: "a:v2. b:v1+ c:v1+ d:v1+", steps: "1,gate=A,gate=B", was: "1 Rolling 10s", gates: "A=False B=False", want: "keeps 3, step 1 Failed: gate A is False: m"},
		"no time runs out while rolling":       {config: four, state: "a:v2. b:v1+ c:v1+ d:v1+", steps: "1,gate=A:5", was: "1 Rolling 10s", gates: "A=Unknown", want: "keeps 3, step 1 Rolling"},
		"too late":                             {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A:5", was: "1 Gated 5s", gates: "A=Unknown", want: "keeps 3, step 1 Failed: gate A did not become True within 5 seconds"},
		"True after all":                       {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A:5 2", was: "1 Failed 50s", gates: "A=True", want: "keeps 3, step 2 Rolling"},
		"a gate that was taken away":           {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,gate=A", was: "1 Gated 5s", want: "keeps 3, step 1 Gated, begins A"},
		"times out while soaking":              {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,soak=60,gate=A:20", was: "1 Soaking 5s", gates: "A=Unknown", want: "keeps 3, step 1 Soaking for 55s, wakes in 15s"},

		"waits for a person":             {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,pause", was: "1 Rolling 1s", want: "keeps 3, step 1 Paused"},
		"promoted":                       {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,pause 2", was: "1 Paused 1s", promotion: "v2/1", want: "keeps 3, step 2 Rolling"},
		"a promotion opens no gate":      {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,pause,gate=A", was: "1 Gated 1s", gates: "A=Unknown", promotion: "v2/1", want: "keeps 3, step 1 Gated"},
		"a promotion of another step":    {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,pause 2", was: "1 Paused 1s", promotion: "v2/2", want: "keeps 3, step 1 Paused"},
		"of another revision":            {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,pause 2", was: "1 Paused 1s", promotion: "v1/1", want: "keeps 3, step 1 Paused"},
		"of nothing":                     {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1,pause 2", was: "1 Paused 1s", promotion: strings.Repeat("v2/1", 25000), want: "keeps 3, step 1 Paused"},
		"of a step that is yet to begin": {config: four, state: "a:v2+ b:v1+ c:v1+ d:v1+", steps: "1 2,pause", was: "1 Rolling 1s", promotion: "v2/2", want: "keeps 3, step 2 Rolling, ignores v2/2"},
		"all":                            {config: four, state: "a:v2. b:v1+ c:v1+ d:v1+", steps: "1,soak=60,gate=A,pause 2,gate=B", was: "1 Failed 1s", gates: "A=False", promotion: "v2/all", want: "keeps 3, step 3 Rolling"},
		"all of an earlier try":          {config: four, state: "a:v1+ b:v1+ c:v1+ d:v1+", steps: "1,pause", was: "0 Failed 1m", promotion: "v2/all", want: "keeps 3, step 1 Rolling, ignores v2/all"},
		"all of an earlier rollout":      {config: four, state: "a:v1+ b:v1+ c:v1+ d:v1+", steps: "1,pause", promotion: "v2/all", want: "keeps 3, step 1 Rolling, ignores v2/all"},

		"status lost":            {config: four, state: "a:v2+ b:v2+ c:v1+ d:v1+", steps: "1 2 3", want: "keeps 2, step 2 Rolling"},
		"lost between two steps": {config: "random R=6 v1>v2", state: "a:v2+ b:v2+ c:v2+ d:v1+", steps: "2 4 5", want: "keeps 2, step 2 Rolling"},
		"lost behind the last":   {config: four, state: "a:v2+ b:v2+ c:v2+ d:v1+", steps: "1 2", want: "keeps 0, step 3 Rolling"},
		"lost with a pod at U on its way out, and its successor": {config: four, state: "a:v2x b:v2. c:v1+ d:v1+ e:v1+", steps: "1 2 3", want: "keeps 3, step 1 Rolling"},
		"lost with an ordinal at U on its way out":               {config: "ordinal R=4 v1>v2", state: "0:v1+ 1:v1+ 2:v2+ 3:v2x", steps: "1 2 3", want: "keeps 2, step 2 Rolling"},
		"an ordinal on the other side does not count":            {config: "ordinal R=4 v1>v2", state: "0:v1+ 1:v2+ 2:v1+ 3:v2. ", steps: "1", was: "1 Soaking 1s", want: "keeps 3, step 1 Rolling"},
		"one that is not in use counts for nothing":              {config: "ordinal R=3 v1>v2", state: "0:v1+ 1:v2+ 2:v2+ 5:v1+", steps: "1 2 3", want: "keeps 1, step 2 Rolling"},
		"nor do claims without a pod":                            {config: "ordinal R=4 v1>v2", state: "0:v1+ 1:v2+ 2:- 3:v2+", steps: "1 2 3", want: "keeps 2, step 2 Rolling"},
		"nor does one below, broken as it is":                    {config: "ordinal R=4 v1>v2", state: "0:v2. 1:v1+ 2:v1+ 3:v2+ ", steps: "1,pause", was: "1 Paused 1s", want: "keeps 3, step 1 Paused"},
		"lost with an ordinal on the other side":                 {config: "ordinal R=4 v1>v2", state: "0:v2+ 1:v1+ 2:v1+ 3:v2+", steps: "1 2", want: "keeps 3, step 1 Rolling"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observed(t, tt.config, tt.state, tt.steps)
			status := &v1beta1.RollSetStatus{Rollout: at(snap, tt.was), Conditions: conditions(tt.gates)}
			in := steps.Input{Snap: snap, Status: status, Promotion: tt.promotion, WasProven: tt.before}
			if diff := cmp.Diff(tt.want, show(snap, steps.Plan(in))); diff != "" {
				t.Errorf("rollout (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlanWasEdited covers a rollout whose status was written for other steps than the spec has now.
func TestPlanWasEdited(t *testing.T) {
	t.Parallel()
	snap := observed(t, "random R=4 v1>v2", "a:v2+ b:v2+ c:v1+ d:v1+", "1 2 3")
	for name, edit := range map[string]func(*v1beta1.RolloutStatus){
		"one more step": func(r *v1beta1.RolloutStatus) { r.Steps = 2 },
		"another size":  func(r *v1beta1.RolloutStatus) { r.Updated = new(intstr.FromString("10%")) },
		"a lost size":   func(r *v1beta1.RolloutStatus) { r.Updated = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was := at(snap, "1 Rolling 1s")
			edit(was)
			got := show(snap, steps.Plan(steps.Input{Snap: snap, Status: &v1beta1.RollSetStatus{Rollout: was}}))
			if want := "keeps 2, step 2 Rolling"; got != want {
				t.Errorf("got %s, want %s: the smallest step with two pods at the revision", got, want)
			}
		})
	}
}

// TestPlanWithSmallerSteps covers steps that were edited so that more pods are at the revision than the last of them has: it is at
// work, and the pods stay, whatever happens to them.
func TestPlanWithSmallerSteps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, state, before, after string
		// then is the state after the edit was seen.
		then       string
		want, next string
	}{
		"random names": {
			"random R=8 v1>v2", "a:v2+ b:v2+ c:v2+ d:v2+ e:v1+ f:v1+ g:v1+ h:v1+", "1 50% 75%", "1,pause",
			"a:v2+ b:v2+ c:v2+ d:v2+ e:v1+ f:v1+ g:v1+ h:v1+",
			"keeps 4, step 1 Rolling", "keeps 4, step 1 Paused",
		},
		"one is lost": {
			"random R=8 v1>v2", "a:v2+ b:v2+ c:v2+ d:v2+ e:v1+ f:v1+ g:v1+ h:v1+", "1 50% 75%", "1,pause",
			"a:v2+ b:v2+ c:v2+ e:v1+ f:v1+ g:v1+ h:v1+",
			"keeps 4, step 1 Rolling", "keeps 5, step 1 Paused",
		},
		"one that is not the last": {
			"random R=4 v1>v2", "a:v2+ b:v2+ c:v2+ d:v1+", "1 3 4", "1 2 4",
			"a:v2+ b:v2+ c:v2+ d:v1+",
			"keeps 0, step 3 Rolling", "keeps 0, step 3 Rolling",
		},
		"ordinals": {
			"ordinal R=4 v1>v2", "0:v1+ 1:v2+ 2:v2+ 3:v2+", "1 3 4", "1,pause",
			"0:v1+ 1:v2+ 2:v2+ 3:v2+",
			"keeps 1, step 1 Rolling", "keeps 1, step 1 Paused",
		},
		"the highest is lost": {
			"ordinal R=4 v1>v2", "0:v1+ 1:v2+ 2:v2+ 3:v2+", "1 3 4", "1,soak=5",
			"0:v1+ 1:v2+ 2:v2+ 3:v2x",
			"keeps 1, step 1 Rolling", "keeps 1, step 1 Rolling",
		},
		"claims of one that is lost": {
			"ordinal R=4 v1>v2", "0:v1+ 1:- 2:v2+ 3:v2+", "1 3 4", "1,pause",
			"0:v1+ 1:- 2:v2+ 3:v2+",
			"keeps 2, step 1 Rolling", "keeps 2, step 1 Paused",
		},
		"one in the middle is lost": {
			"ordinal R=4 v1>v2", "0:v1+ 1:v2+ 3:v2+", "1 3 4", "1,pause",
			"0:v1+ 1:v2+ 3:v2+",
			"keeps 1, step 1 Rolling", "keeps 1, step 1 Rolling",
		},
		"an ordinal below those that were added": {
			"ordinal R=3 v1>v2", "0:v2+", "1 2 3", "1,pause 2",
			"0:v2+ 1:v1. 2:v2.",
			"keeps 2, step 1 Rolling", "keeps 2, step 1 Rolling",
		},
		"all are done, and stay so": {
			"random R=4 v1>v2", "a:v2+ b:v2+ c:v2+ d:v1+", "1 2!", "1",
			"a:v2+ b:v2+ c:v2+ d:v1+",
			"keeps 0, step 2 Rolling", "keeps 0, step 2 Rolling",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, done := strings.CutSuffix(tt.before, "!")
			snap := observed(t, tt.config, tt.state, before)
			was := at(snap, "2 Rolling 1s")
			if done {
				was = at(snap, "3 Rolling 1s")
			}
			snap = observed(t, tt.config, tt.state, tt.after)
			edited := steps.Plan(steps.Input{Snap: snap, Status: &v1beta1.RollSetStatus{Rollout: was}})
			if got := show(snap, edited); got != tt.want {
				t.Errorf("after the edit %s, want %s", got, tt.want)
			}
			snap = observed(t, tt.config, tt.then, tt.after)
			next := steps.Plan(steps.Input{Snap: snap, Status: &v1beta1.RollSetStatus{Rollout: edited.Next}})
			if got := show(snap, next); got != tt.next {
				t.Errorf("then %s, want %s", got, tt.next)
			}
		})
	}
}

// TestPlanSince measures the time of a step anew when a pod is lost in a soak, and not before the pods were there. It keeps the time at
// which a rollout was given up.
func TestPlanSince(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config, was string
		want        time.Duration
	}{
		{"random R=2 v1>v2", "1 Soaking 10s", 0},
		{"random R=2 v1>v2", "1 Rolling 10s", -10 * time.Second},
		{"random R=2 rejected v1>v2", "1 Failed 1m", 0},
		{"random R=2 rejected v1>v2", "0 Failed 1m", -time.Minute},
	} {
		snap := observed(t, tt.config, "a:v2. b:v1+", "1,soak=60 2")
		r := steps.Plan(steps.Input{Snap: snap, Status: &v1beta1.RollSetStatus{Rollout: at(snap, tt.was)}})
		if got := r.Next.Since.Sub(snap.Now).Truncate(time.Second); got != tt.want {
			t.Errorf("%s, %s: since %s, want %s", tt.config, tt.was, got, tt.want)
		}
	}
}

// TestPlanIgnoresAPromotion goes on to the next step under a promotion of all that was there before the rollout.
func TestPlanIgnoresAPromotion(t *testing.T) {
	t.Parallel()
	snap := observed(t, "random R=3 v1>v2", "a:v2+ b:v1+ c:v1+", "1 2,pause 3")
	was := at(snap, "1 Rolling 10s")
	was.IgnoredPromotion = "v2/all"
	got := show(snap, steps.Plan(steps.Input{Snap: snap, Status: &v1beta1.RollSetStatus{Rollout: was}, Promotion: "v2/all"}))
	if want := "keeps 2, step 2 Rolling, ignores v2/all"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPlanRestarts covers a soak in which a container restarted, and wrong clocks.
func TestPlanRestarts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		started time.Duration
		since   time.Duration
		want    string
	}{
		"before the soak":          {-time.Minute, -10 * time.Second, "keeps 1, step 1 Soaking for 20s, wakes in 20s"},
		"in the soak":              {-4 * time.Second, -10 * time.Second, "keeps 1, step 1 Soaking for 26s, wakes in 26s"},
		"in the future":            {time.Hour, -10 * time.Second, "keeps 1, step 1 Soaking for 20s, wakes in 20s"},
		"soaking since tomorrow":   {-time.Minute, 24 * time.Hour, "keeps 1, step 1 Soaking for 30s, wakes in 30s"},
		"fractions are rounded up": {-4*time.Second - 300*time.Millisecond, -10 * time.Second, "keeps 1, step 1 Soaking for 26s, wakes in 26s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observed(t, "random R=2 v1>v2", "a:v2+ b:v1+", "1,soak=30")
			snap.Replicas[0].Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(snap.Now.Add(tt.started))},
			}}}
			was := at(snap, "1 Soaking 0s")
			was.Since = &metav1.Time{Time: snap.Now.Add(tt.since)}
			got := show(snap, steps.Plan(steps.Input{Snap: snap, Status: &v1beta1.RollSetStatus{Rollout: was}}))
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
