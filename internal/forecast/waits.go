// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// judgeActor is the name under which steps are judged and promoted.
const judgeActor = "judge"

// Wait is a moment from which on a rollout in steps waits for time, a gate or a person.
type Wait struct {
	// At is when it begins, and Until when it ends, both counted from now. Gates and people are assumed to need no time.
	At, Until time.Duration
	// Writes is how many of the writes come before it.
	Writes int
	// Says is the message of the set about it.
	Says string
	// Others is true if the rollout waits for a user or another program.
	Others bool
}

// judge approves each step at once: it sets gates to True and promotes pauses. It records what was waited for.
type judge struct {
	cluster *cluster
	record  *record
	key     apiserver.Key
	told    string
	waits   []Wait
}

// act looks at the step at work, and reports whether it did something. It is called when nothing else is left to do now.
func (j *judge) act() (acted bool, err error) {
	set, ok := j.cluster.store.Get(j.key).(*v1beta1.RollSet)
	if !ok || set.Status.ObservedGeneration < set.Generation || !waits(set) {
		return false, nil
	}
	gates, promotion := closed(set), ""
	if set.Status.Rollout.Phase == v1beta1.RolloutPaused {
		promotion = fmt.Sprintf("%s/%d", set.Status.Rollout.Revision, set.Status.Rollout.Step)
	}
	j.tell(set, gates, promotion != "")
	switch {
	case len(gates) > 0:
		judged := set.DeepCopy()
		for _, gate := range gates {
			meta.SetStatusCondition(&judged.Status.Conditions, metav1.Condition{
				Type: gate, Status: metav1.ConditionTrue, Reason: "Assumed", Message: "assumed", LastTransitionTime: metav1.NewTime(j.cluster.clock.Now()),
			})
		}
		_, err = j.cluster.store.Update(apiserver.Write{Actor: judgeActor, Subresource: "status"}, judged)
	case promotion != "":
		promoted := set.DeepCopy()
		if set.Annotations[v1beta1.PromoteAnnotation] == promotion { // set before the step began, it does not count
			promotion = ""
		}
		metav1.SetMetaDataAnnotation(&promoted.ObjectMeta, v1beta1.PromoteAnnotation, promotion)
		_, err = j.cluster.store.Update(apiserver.Write{Actor: judgeActor}, promoted)
	default:
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("let the step go on: %w", err)
	}
	return true, nil
}

// waits reports whether all pods of the step at work are there, and the step waits for something else. A paused set waits
// for its user in any case.
func waits(set *v1beta1.RollSet) bool {
	r := set.Status.Rollout
	if r == nil || r.Step < 1 || int(r.Step) > len(set.Spec.UpdateStrategy.RollingUpdate.Steps) {
		return false
	}
	switch r.Phase {
	case v1beta1.RolloutSoaking, v1beta1.RolloutGated:
		return true
	case v1beta1.RolloutPaused:
		return !set.Spec.UpdateStrategy.RollingUpdate.Paused
	case v1beta1.RolloutRolling, v1beta1.RolloutFailed:
		return false
	default:
		return false
	}
}

// closed returns the gates of the step at work that are not True.
func closed(set *v1beta1.RollSet) []string {
	var names []string
	for _, gate := range set.Spec.UpdateStrategy.RollingUpdate.Steps[set.Status.Rollout.Step-1].Gates {
		if !meta.IsStatusConditionTrue(set.Status.Conditions, gate.ConditionType) {
			names = append(names, gate.ConditionType)
		}
	}
	return names
}

// tell records what a step waits for, once.
func (j *judge) tell(set *v1beta1.RollSet, gates []string, promotion bool) {
	r := set.Status.Rollout
	key := fmt.Sprint(r.Revision, r.Step, r.Phase)
	if j.told == key {
		return
	}
	j.told = key
	now := j.cluster.clock.Now()
	w := Wait{At: now.Sub(j.record.start), Writes: len(j.record.writes), Others: promotion || len(gates) > 0}
	w.Until = w.At
	if c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing); c != nil {
		w.Says = c.Message
	}
	if r.Phase == v1beta1.RolloutSoaking {
		if r.Until != nil {
			w.Until = r.Until.Sub(j.record.start)
		}
		if len(gates) > 0 {
			w.Says += "; waiting for gate " + strings.Join(gates, ", ")
		}
	}
	j.waits = append(j.waits, w)
	j.cluster.wrote = now // the wait is not the end of the run
}
