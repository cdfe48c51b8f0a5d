// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// stepCommands returns the commands about rollouts in steps.
func stepCommands() []command {
	return []command{
		{"steps", 1, setSteps},
		specWord("onStepFailed", func(s *v1beta1.RollSetSpec, v string) {
			s.UpdateStrategy.RollingUpdate.OnStepFailed = v1beta1.StepFailurePolicy(v)
		}),
		{"gate", 2, gate},
		{"promote", 1, promote},
		{"abort", 0, verdictOf(v1beta1.AbortAnnotation, v1beta1.RetryAnnotation)},
		{"retry", 0, verdictOf(v1beta1.RetryAnnotation, v1beta1.AbortAnnotation)},
		{"let-pass", 0, func(_ context.Context, w *World, _ []string) error {
			w.note("all gates open, and whoever is waited for promotes")
			w.gates.open = true
			return nil
		}},
	}
}

// setSteps describes steps: "steps 1,soak=10 25%,gate=Errors:60 50%,pause", or "steps none".
func setSteps(_ context.Context, w *World, args []string) error {
	var steps []v1beta1.RolloutStep
	for _, arg := range args {
		words := strings.Split(arg, ",")
		if words[0] == "none" {
			break
		}
		step := v1beta1.RolloutStep{Updated: intstr.Parse(words[0])}
		for _, word := range words[1:] {
			if err := addToStep(&step, word); err != nil {
				return err
			}
		}
		steps = append(steps, step)
	}
	return w.Edit("steps "+strings.Join(args, " "), func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.RollingUpdate.Steps = steps })
}

func addToStep(step *v1beta1.RolloutStep, word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "pause":
		step.Pause = true
		return nil
	case "soak":
		seconds, err := strconv.ParseInt(value, 10, 32)
		step.SoakSeconds = int32(seconds)
		return err
	case "gate":
		name, limit, limited := strings.Cut(value, ":")
		g := v1beta1.StepGate{ConditionType: name}
		if limited {
			seconds, err := strconv.ParseInt(limit, 10, 32)
			if err != nil {
				return err
			}
			g.TimeoutSeconds = new(int32(seconds))
		}
		step.Gates = append(step.Gates, g)
		return nil
	default:
		return fmt.Errorf("%q says nothing of a step", word)
	}
}

// gate writes the condition of a gate into the status, as the judge of a step does: "gate Errors True".
func gate(_ context.Context, w *World, args []string) error {
	set := w.Set()
	if set == nil {
		return nil
	}
	w.Film.note(gateActor, strings.Join(args, " is "))
	return w.gates.write(set, args[0], metav1.ConditionStatus(args[1]))
}

// gates are the people and programs that judge the steps of a rollout.
type gates struct {
	*World

	// open is true once every step is promoted and every gate becomes True.
	open bool
}

func (g *gates) write(set *v1beta1.RollSet, name string, status metav1.ConditionStatus) error {
	judged := apiserver.Clone(set)
	meta.SetStatusCondition(&judged.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: "Judged", Message: "so it is", LastTransitionTime: metav1.NewTime(g.Now().Truncate(time.Second)),
	})
	_, err := g.Store.Update(apiserver.Write{Actor: gateActor, Subresource: "status"}, judged)
	return err
}

// promote promotes a step of the rollout in the status, or all steps. "old" and "junk" name steps that do not exist.
func promote(_ context.Context, w *World, args []string) error {
	set := w.Set()
	if set == nil {
		return nil
	}
	value := set.Status.UpdateRevision + "/" + args[0]
	switch args[0] {
	case "old":
		value = set.Status.CurrentRevision + "/1"
	case "junk":
		value = strings.Repeat("/", 1000)
	}
	return w.annotate("promote "+args[0], v1beta1.PromoteAnnotation, value, "")
}

// verdictOf returns a command that requests a verdict on the update revision and withdraws the opposite request.
func verdictOf(key, opposite string) func(context.Context, *World, []string) error {
	return func(_ context.Context, w *World, _ []string) error {
		set := w.Set()
		if set == nil {
			return nil
		}
		_, word, _ := strings.Cut(key, "/")
		return w.annotate(word, key, set.Status.UpdateRevision, opposite)
	}
}

// turns adds the turns that let every step of a rollout pass.
func (g *gates) turns(add func(turn)) {
	set := g.Set()
	if !g.open || set == nil || set.Status.Rollout == nil || set.DeletionTimestamp != nil {
		return
	}
	r, steps := set.Status.Rollout, set.Spec.UpdateStrategy.RollingUpdate.Steps
	if r.Step < 1 || int(r.Step) > len(steps) || r.Phase == v1beta1.RolloutRolling {
		return
	}
	act := func(do func() error) {
		add(turn{who: gateActor, at: g.Now(), take: func(context.Context) error { return do() }})
	}
	for _, gate := range steps[r.Step-1].Gates {
		if c := meta.FindStatusCondition(set.Status.Conditions, gate.ConditionType); c != nil && c.Status != metav1.ConditionTrue {
			act(func() error { return g.write(g.Set(), gate.ConditionType, metav1.ConditionTrue) })
			return
		}
	}
	value := fmt.Sprintf("%s/%d", r.Revision, r.Step)
	switch {
	case r.Phase != v1beta1.RolloutPaused:
	case r.IgnoredPromotion != "" && r.IgnoredPromotion == set.Annotations[v1beta1.PromoteAnnotation]: // it must be removed first
		act(func() error { return g.annotate("promote no more", v1beta1.PromoteAnnotation, "", "") })
	case set.Annotations[v1beta1.PromoteAnnotation] != value && r.IgnoredPromotion != value: // the manager has seen that it was removed
		act(func() error {
			return g.annotate("promote "+strconv.Itoa(int(r.Step)), v1beta1.PromoteAnnotation, value, "")
		})
	}
}
