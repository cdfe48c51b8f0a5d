// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// hookCommands returns the commands about lifecycle hooks.
func hookCommands() []command {
	return []command{
		{"hook", 1, setHook},
		{"mark", 1, labelEach("mark", hookLabel, "true")},
		{"unmark", 1, editEach("unmark", func(p *corev1.Pod) { delete(p.Labels, hookLabel) })},
		{"misdate", 1, eachPod("misdate the state of", misdatePod)},
		// as if an earlier version of the manager had written the state
		{"undate", 1, editEach("take the date of the state off", func(p *corev1.Pod) { delete(p.Annotations, v1beta1.LifecycleSinceAnnotation) })},
	}
}

// setHook uses one lifecycle hook and no other; "none" uses none. A "!" at the end marks pods not ready. The hook may have a
// limit in seconds, with what happens then, and another key than [hookLabel] for its label: "hook preDelete! 5 Proceed",
// "hook preDelete 60 Proceed role=leader".
func setHook(_ context.Context, w *World, args []string) error {
	name, withdraws := strings.CutSuffix(args[0], "!")
	hook := &v1beta1.LifecycleHook{LabelsHandler: map[string]string{hookLabel: "true"}, MarkPodNotReady: withdraws}
	if len(args) > 1 {
		n, err := strconv.ParseInt(args[1], 10, 32)
		if err != nil {
			return err
		}
		hook.TimeoutSeconds = new(int32(n))
	}
	if len(args) > 2 {
		hook.OnTimeout = v1beta1.HookTimeoutPolicy(args[2])
	}
	if len(args) > 3 {
		key, value, ok := strings.Cut(args[3], "=")
		if !ok {
			return fmt.Errorf("%q is not key=value", args[3])
		}
		hook.LabelsHandler = map[string]string{key: value}
	}
	return w.Edit("hook "+strings.Join(args, " "), func(spec *v1beta1.RollSetSpec) {
		switch name {
		case "preNormal":
			spec.Lifecycle = &v1beta1.Lifecycle{PreNormal: hook}
		case "inPlaceUpdate":
			spec.Lifecycle = &v1beta1.Lifecycle{InPlaceUpdate: hook}
		case "preDelete":
			spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: hook}
		default:
			spec.Lifecycle = nil
		}
	})
}

// hookLabel is the label that marks pods as hooked.
const hookLabel = "example.com/hook"

// misdatePod writes that a pod entered its lifecycle state in a year from now.
func misdatePod(w *World, pod *corev1.Pod) error {
	return edit(w, pod, func(p *corev1.Pod) {
		value := p.Labels[v1beta1.LifecycleStateLabel] + " " + w.Now().AddDate(1, 0, 0).Format(time.RFC3339)
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1beta1.LifecycleSinceAnnotation, value)
	})
}

// hookSlack is how much longer than its limit a pod may wait for a hook: as long as attempts that fail are paced, and sets wait for their
// turn.
const hookSlack = 5*time.Minute + 30*time.Second

// waitsAtAll finds every wait wrong, which is right for a settled set.
func waitsAtAll(*corev1.Pod, *v1beta1.LifecycleHook) bool { return true }

// waitsForLong finds a wait wrong that is much longer than the limit of the hook, since the script last did something, and since a
// fault of chance last met a write to the pod.
func (j judge) waitsForLong(pod *corev1.Pod, hook *v1beta1.LifecycleHook) bool {
	since := slices.MaxFunc([]time.Time{j.checker.Entered(pod.UID), j.checker.FailedByChance(apiserver.KeyOf(pod)), j.acted}, time.Time.Compare)
	return j.Now().Sub(since) > time.Duration(*hook.TimeoutSeconds)*time.Second+hookSlack
}

// checkHooks checks that no pod waits wrongly for a hook that ends by itself. Where other things may keep a pod in its state as
// well, it checks nothing: in sets that cannot have what they want, or whose pods are lost, and during a pause.
func (j judge) checkHooks(isWrong func(*corev1.Pod, *v1beta1.LifecycleHook) bool) error {
	set := j.Set()
	if set == nil || set.Spec.Lifecycle == nil || set.DeletionTimestamp != nil || set.Spec.UpdateStrategy.RollingUpdate.Paused {
		return nil
	}
	own, live := j.OwnPods(set)
	if slices.ContainsFunc(own, func(pod *corev1.Pod) bool { return !j.kubelets.run(pod.UID) }) {
		return nil
	}
	for _, pod := range live {
		hook := invariants.WaitsFor(set, pod)
		proceeds := hook != nil && hook.OnTimeout == v1beta1.ProceedOnTimeout
		if proceeds && isWrong(pod, hook) && j.satisfiable() {
			return fmt.Errorf("%s is still %s, and the limit of its hook is %d seconds",
				j.Name(pod), pod.Labels[v1beta1.LifecycleStateLabel], *hook.TimeoutSeconds)
		}
	}
	return nil
}
