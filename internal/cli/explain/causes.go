// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// cause is one thing that a set waits for.
type cause struct {
	Kind string `json:"kind"`
	// Pods are the pods that wait for it; empty if the whole set does.
	Pods   []string `json:"pods"`
	Reason string   `json:"reason"`
	// LiftedBy says how to end it, if possible a command.
	LiftedBy string `json:"liftedBy"`
}

// unobserved is the cause that comes before all others: the controller has not seen the spec.
func unobserved(set *v1beta1.RollSet) cause {
	return cause{
		Kind: "unobserved", Pods: []string{},
		Reason:   fmt.Sprintf("the spec is at generation %d, and the controller has observed generation %d", set.Generation, set.Status.ObservedGeneration),
		LiftedBy: "the manager; if this stays, see whether it runs: kubectl get pods -A -l app.kubernetes.io/name=rollset",
	}
}

// causesOf returns what a set waits for: the causes in its status, then what the plan holds back, then its pods that are not
// available.
func causesOf(o *snapshot.Objects, holds []hold) []cause {
	causes := slices.Concat(ofVerdicts(o.Set), ofStep(o.Set), ofFailure(o.Set, holds), grouped(o.Set, holds))
	causes = append(causes, ofPause(o.Set, holds)...)
	if !meta.IsStatusConditionTrue(o.Set.Status.Conditions, v1beta1.ConditionReady) {
		causes = append(causes, ofPods(o)...)
	}
	return causes
}

// whole returns a cause that concerns the whole set.
func whole(kind, reason, liftedBy string) []cause {
	return []cause{{Kind: kind, Pods: []string{}, Reason: podstate.Printable(reason, textLimit), LiftedBy: liftedBy}}
}

// anotherTemplate returns the command that gives a set another template: the one that was proven last, if it is not the one at work.
func anotherTemplate(set *v1beta1.RollSet) string {
	if set.Status.CurrentRevision == set.Status.UpdateRevision {
		return "kubectl edit rollset " + set.Name
	}
	return "kubectl rollset undo " + set.Name
}

// refused reports whether the status says that the API server refused the creation of a pod. The controller tries again, but that is
// not what comes next.
func refused(set *v1beta1.RollSet, create action.Create) bool {
	c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionReplicaFailure)
	if c == nil || c.Status != metav1.ConditionTrue {
		return false
	}
	names := strings.FieldsFunc(c.Message, func(r rune) bool { return r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.Contains(names, podName(set, create)) || c.Reason == v1beta1.ReasonInvalidTemplate && slices.Contains(names, create.Revision)
}

// podName returns the name of a pod that is created.
func podName(set *v1beta1.RollSet, create action.Create) string { return set.Name + "-" + create.ID }

// nextWrites returns the writes of a plan that nothing holds and the API server has not refused.
func nextWrites(set *v1beta1.RollSet, p *action.Plan) []string {
	next := []string{}
	for _, a := range p.Actions {
		text := a.String()
		if create, ok := a.(action.Create); ok {
			if refused(set, create) {
				continue
			}
			text = fmt.Sprintf("create %s at %s (%s)", podName(set, create), create.Revision, create.Reason)
		}
		next = append(next, podstate.Printable(text, textLimit))
	}
	return next
}

// ofVerdicts returns the judgements on the spec and on the rollout.
func ofVerdicts(set *v1beta1.RollSet) []cause {
	c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing)
	if c == nil {
		return nil
	}
	switch c.Reason {
	case v1beta1.ReasonInvalidSpec:
		return whole("spec", c.Message, "kubectl edit rollset "+set.Name)
	case v1beta1.ReasonRolledBack:
		return whole("verdict", c.Message, "kubectl rollset retry "+set.Name+", or another template")
	case v1beta1.ReasonProgressDeadlineExceeded:
		return whole("deadline", c.Message, anotherTemplate(set)+", or what the causes below name")
	case v1beta1.ReasonPartitionReached:
		return whole("partition", c.Message, "kubectl rollset set partition "+set.Name+" 0")
	default:
		return nil
	}
}

// ofStep returns what the step at work waits for, besides its pods.
func ofStep(set *v1beta1.RollSet) []cause {
	r, steps := set.Status.Rollout, set.Spec.UpdateStrategy.RollingUpdate.Steps
	if r == nil || r.Step < 1 || int(r.Step) > len(steps) {
		return nil
	}
	at := fmt.Sprintf("step %d of %d", r.Step, r.Steps)
	promote := "kubectl rollset promote " + set.Name
	switch r.Phase {
	case v1beta1.RolloutSoaking:
		until := ""
		if r.Until != nil {
			until = " until " + r.Until.UTC().Format("2006-01-02 15:04:05Z")
		}
		return whole("soak", at+" soaks"+until, "time, or "+promote+" --full")
	case v1beta1.RolloutGated, v1beta1.RolloutFailed:
		return ofGates(set, at)
	case v1beta1.RolloutPaused:
		if set.Spec.UpdateStrategy.RollingUpdate.Paused {
			return nil // resumed first
		}
		return whole("promotion", at+" waits until somebody promotes it", promote)
	case v1beta1.RolloutRolling:
		return nil
	default:
		return nil
	}
}

// ofGates returns the gates of the step at work that are not True.
func ofGates(set *v1beta1.RollSet, at string) (causes []cause) {
	for _, gate := range set.Spec.UpdateStrategy.RollingUpdate.Steps[set.Status.Rollout.Step-1].Gates {
		c := meta.FindStatusCondition(set.Status.Conditions, gate.ConditionType)
		reason := at + " waits for gate " + gate.ConditionType
		switch {
		case c == nil || c.Status == metav1.ConditionUnknown:
		case c.Status == metav1.ConditionTrue:
			continue
		default:
			reason = fmt.Sprintf("%s: gate %s is False: %s", at, gate.ConditionType, c.Message)
		}
		causes = append(causes, whole("gate", reason, fmt.Sprintf("kubectl rollset gate %s %s -- COMMAND, or who else writes the condition", set.Name, gate.ConditionType))...)
	}
	if set.Status.Rollout.Phase == v1beta1.RolloutFailed {
		if c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing); c != nil && len(causes) == 0 {
			causes = whole("gate", c.Message, anotherTemplate(set))
		}
	}
	return causes
}

// quotaName finds the quota in the API server's refusal.
var quotaName = regexp.MustCompile(`exceeded quota: ([a-z0-9.-]+)`)

// ofFailure returns the write that the API server refused last, unless the plan holds pods back for it.
func ofFailure(set *v1beta1.RollSet, holds []hold) []cause {
	c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionReplicaFailure)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	held := func(kind action.HoldKind) bool {
		return slices.ContainsFunc(holds, func(h hold) bool { return h.Kind == string(kind) })
	}
	quota := quotaName.FindStringSubmatch(c.Message)
	switch {
	case quota != nil:
		return whole("quota", c.Message, fmt.Sprintf("a larger quota, or fewer pods that use it: kubectl describe resourcequota %s -n %s", quota[1], set.Namespace))
	case c.Reason == v1beta1.ReasonInvalidTemplate && held(action.HeldByPreflight),
		c.Reason == v1beta1.ReasonClaimConflict && held(action.HeldByClaim), c.Reason == v1beta1.ReasonNameConflict && held(action.HeldByName):
		return nil
	case c.Reason == v1beta1.ReasonInvalidTemplate:
		return whole("template", c.Message, "a template that the API server accepts: "+anotherTemplate(set))
	default:
		return whole("refusal", c.Reason+": "+c.Message, "what the message names; the write is tried again")
	}
}

// ofPause returns the pause of a set that holds no pod back, for example because it was updated before.
func ofPause(set *v1beta1.RollSet, holds []hold) []cause {
	paused := slices.ContainsFunc(holds, func(h hold) bool { return h.Kind == string(action.HeldByPause) })
	if !set.Spec.UpdateStrategy.RollingUpdate.Paused || paused {
		return nil
	}
	return whole(string(action.HeldByPause), "the rollout is paused: no pod moves to another revision", "kubectl rollset resume "+set.Name)
}

// grouped returns the holds, one cause for those that differ only in the pod.
func grouped(set *v1beta1.RollSet, holds []hold) (causes []cause) {
	const pod = "POD"
	said := map[string]int{} // how many holds have a reason
	for _, h := range holds {
		said[h.Reason]++
	}
	for _, h := range holds {
		reason, lifted := h.Reason, replaceName(h.LiftedBy, h.Subject, pod)
		if said[reason] == 1 { // otherwise the reason is about one pod for all
			reason = replaceName(reason, h.Subject, "the pod")
		}
		i := slices.IndexFunc(causes, func(c cause) bool { return c.Kind == h.Kind && c.Reason == reason && c.LiftedBy == lifted })
		if i < 0 {
			i = len(causes)
			causes = append(causes, cause{Kind: h.Kind, Pods: []string{}, Reason: reason, LiftedBy: lifted})
		}
		if h.Subject != "" && h.Subject != set.Name {
			causes[i].Pods = append(causes[i].Pods, h.Subject)
		}
	}
	for i := range causes {
		c := &causes[i]
		slices.Sort(c.Pods)
		if c.Pods = slices.Compact(c.Pods); len(c.Pods) == 1 {
			c.Reason = strings.ReplaceAll(c.Reason, "the pod", c.Pods[0])
		}
		c.LiftedBy = strings.ReplaceAll(c.LiftedBy, "delete-pod "+pod, "delete-pod "+some(c.Pods, " "))
	}
	return causes
}

// replaceName replaces a name in a text; an empty one is in none.
func replaceName(text, name, by string) string {
	if name == "" {
		return text
	}
	return strings.ReplaceAll(text, name, by)
}

// ofPods returns why pods are not available, one cause for those with the same reason.
func ofPods(o *snapshot.Objects) (causes []cause) {
	for _, pod := range o.Pods {
		reason := podstate.Why(pod)
		since, ready := podstate.ReadySince(pod)
		minReady := o.Set.Spec.MinReadySeconds
		if ready && reason == "" && o.Now.Before(since.Add(time.Duration(minReady)*time.Second)) {
			reason = fmt.Sprintf("ready for less than %ds", minReady)
		}
		if reason == "" {
			continue
		}
		i := slices.IndexFunc(causes, func(c cause) bool { return c.Reason == reason })
		if i < 0 {
			i = len(causes)
			causes = append(causes, cause{Kind: "pod", Reason: reason, LiftedBy: whatHelps(pod)})
		}
		causes[i].Pods = append(causes[i].Pods, pod.Name)
	}
	slices.SortStableFunc(causes, func(a, b cause) int { return cmp.Compare(len(b.Pods), len(a.Pods)) })
	return causes
}

// whatHelps returns what a user can do about a pod that is not available.
func whatHelps(pod *corev1.Pod) string {
	describe := fmt.Sprintf("kubectl describe pod %s -n %s", pod.Name, pod.Namespace)
	switch _, ready := podstate.ReadySince(pod); {
	case podstate.Terminating(pod):
		return "its end; " + describe
	case ready:
		return "time"
	default:
		return "the pod becoming ready; " + describe
	}
}
