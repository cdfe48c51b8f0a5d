// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// resyncs is how often the set is looked at again once it has settled.
const resyncs = 20

// CheckConverged lets faults cease and checks I9: the wanted state is reached if it can be, and then nothing is written
// any more, however often the set is looked at, and not after a restart either.
func (w *World) CheckConverged(ctx context.Context) error {
	for _, m := range w.Managers {
		m.Client.Faults = nil
	}
	if err := w.Settle(ctx); err != nil {
		return err
	}
	if err := w.checkWanted(); err != nil {
		return fmt.Errorf("I9 convergence broken: %w", err)
	}
	if err := w.checkStill(ctx); err != nil {
		return fmt.Errorf("I9 rest broken: %w", err)
	}
	return nil
}

// checkStill looks again and again, restarts, and expects no write.
func (w *World) checkStill(ctx context.Context) error {
	before := w.managerWrites()
	for range resyncs {
		w.Resync()
		if err := w.Run(ctx, time.Second); err != nil {
			return err
		}
	}
	for _, m := range w.Managers {
		if n := m.expectations.Unmet(); n > 0 && w.satisfiable() {
			return fmt.Errorf("%s still expects something of %d sets", m.Name, n)
		}
		w.Restart(ctx, m, w.Store.Version())
	}
	if err := w.Settle(ctx); err != nil {
		return err
	}
	if after := w.managerWrites(); len(after) > len(before) {
		first := after[len(before)]
		return fmt.Errorf("%d more writes, the first: %s %s %s", len(after)-len(before), w.Film.time(first.At), first.Actor, first.Write)
	}
	return nil
}

// managerWrites are the writes of managers so far. While pods come and go by themselves, as crashing ones do, the status
// has to follow; then it does not count.
func (w *World) managerWrites() []*apiserver.Entry {
	satisfiable := w.satisfiable()
	var writes []*apiserver.Entry
	log := w.Store.Log()
	for i := range log {
		e := &log[i]
		if strings.HasPrefix(e.Actor, managerActor) && (e.Subresource != "status" || satisfiable) {
			writes = append(writes, e)
		}
	}
	return writes
}

// checkWanted compares the pods and the status with the spec.
func (w *World) checkWanted() error {
	set := w.Set()
	if set == nil || set.DeletionTimestamp != nil || !w.satisfiable() {
		return nil
	}
	own, live := w.ownPods(set)
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	l := w.limits(set)
	check(len(live) == l.replicas, "%d live pods, %d wanted", len(live), l.replicas)
	for _, pod := range live {
		check(isAvailable(pod, set.Spec.MinReadySeconds, w.Now()), "%s is not available", w.Film.name(pod))
	}
	if w.rolls(set) {
		w.checkMix(set, live, check)
		_, atWork := w.stepAtWork(set)
		if l.partition == 0 && len(own) == len(live) && !w.rejected(set) && !atWork {
			check(set.Status.CurrentRevision == set.Status.UpdateRevision, "the rollout is over, and the current revision is still %s", set.Status.CurrentRevision)
		}
	}
	s := &set.Status
	check(s.ObservedGeneration == set.Generation, "generation %d is observed, %d is there", s.ObservedGeneration, set.Generation)
	check(int(s.Replicas) == len(own) || int(s.Replicas) == len(live), "status says %d replicas, there are %d", s.Replicas, len(live))
	check(int(s.ReadyReplicas) == len(live) && int(s.AvailableReplicas) == len(live), "status says %d ready, %d available", s.ReadyReplicas, s.AvailableReplicas)
	// A pod that never finishes terminating is left over, and the rollout waits for it. A set that was rolled back does not
	// run what its spec asks for.
	ready := meta.IsStatusConditionTrue(s.Conditions, "Ready")
	_, atWork := w.stepAtWork(set)
	check(len(own) > len(live) || ready != (w.rejected(set) || atWork), "condition Ready is True: %t", ready)
	check(!w.willing || !atWork || !w.rolls(set), "a step is at work that everybody lets pass")
	for _, c := range s.Conditions {
		check(c.Reason == "Judged" || c.Reason == "StepStarted" || c.ObservedGeneration == set.Generation, "condition %s is about generation %d", c.Type, c.ObservedGeneration)
	}
	check(w.unusedRevisions(set) <= int(*set.Spec.RevisionHistoryLimit), "%d unused revisions", w.unusedRevisions(set))
	return errors.Join(errs...)
}

// rolls says whether the set moves pods by itself to where it wants them.
func (*World) rolls(set *v1alpha1.RollSet) bool {
	return set.Spec.UpdateStrategy.Type != v1alpha1.OnDeleteStrategy && !set.Spec.UpdateStrategy.RollingUpdate.Paused
}

// checkMix checks that p pods are at the current revision and the others at the update revision.
func (w *World) checkMix(set *v1alpha1.RollSet, live []*corev1.Pod, check func(bool, string, ...any)) {
	update := w.versionOf(&set.Spec.Template)
	partition := 0
	if set.Spec.UpdateStrategy.Type == v1alpha1.RollingUpdateStrategy {
		partition = w.limits(set).partition
	}
	current := w.versionNamed(set.Status.CurrentRevision)
	updated := 0
	for _, pod := range live {
		switch w.version(pod) {
		case update:
			updated++
		case current:
		default:
			check(false, "%s is a stray at %s", w.Film.name(pod), w.version(pod))
		}
	}
	want := len(live) - partition
	switch {
	case current == update:
		want = len(live)
	case w.rejected(set):
		want = 0
	}
	lost := w.templateOf(set.Status.CurrentRevision) == nil // nobody can make a pod of it any more
	check(updated == want || lost && updated > want, "%d pods at the update revision %s, %d wanted", updated, update, want)
}

// ownPods are the pods of the set, and those of them that are live.
func (w *World) ownPods(set *v1alpha1.RollSet) (own, live []*corev1.Pod) {
	for _, pod := range w.pods() {
		if ownerOf(pod) != set.UID {
			continue
		}
		own = append(own, pod)
		if isLive(pod) {
			live = append(live, pod)
		}
	}
	return own, live
}

func (w *World) unusedRevisions(set *v1alpha1.RollSet) int {
	used := []string{set.Status.CurrentRevision, set.Status.UpdateRevision}
	for _, pod := range w.pods() {
		used = append(used, pod.Labels[v1alpha1.RevisionLabel])
	}
	n := 0
	for r := range apiserver.Each[*appsv1.ControllerRevision](w.Store) {
		if metav1.IsControlledBy(r, set) && !slices.Contains(used, r.Name) {
			n++
		}
	}
	return n
}

// satisfiable says whether a cluster like this one can give the set all that it wants.
func (w *World) satisfiable() bool {
	set := w.Set()
	if set == nil {
		return true
	}
	if w.scheduler.cordoned || w.Store.MaxPods >= 0 || w.Store.MaxCPU != nil || len(w.Store.Admission)+len(w.policies) > 0 || w.occupied {
		return false
	}
	templates := w.templatesIn(set)
	limited := set.Spec.ScaleStrategy != nil && set.Spec.ScaleStrategy.MaxUnavailable != nil
	if limited || set.Spec.PodIdentity == v1alpha1.OrdinalIdentity && set.Spec.PodManagementPolicy != v1alpha1.ParallelPodManagement {
		for _, t := range templates {
			if isMember(&corev1.Pod{Spec: t.Spec}) {
				return false // pods that are created one after the other become ready one after the other
			}
		}
	}
	return !slices.ContainsFunc(templates, hopeless)
}

// templatesIn are the templates that pods of a set have or come back with.
func (w *World) templatesIn(set *v1alpha1.RollSet) (templates []*corev1.PodTemplateSpec) {
	if !w.rejected(set) {
		templates = append(templates, &set.Spec.Template)
	}
	frozen := set.Spec.UpdateStrategy.RollingUpdate.Paused || set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteStrategy
	for _, pod := range w.pods() {
		switch t := w.templateOf(pod.Labels[v1alpha1.RevisionLabel]); {
		case !isLive(pod):
		case t != nil:
			templates = append(templates, t)
		case frozen: // nothing is made of a pod of unknown origin
			templates = append(templates, &corev1.PodTemplateSpec{Spec: pod.Spec})
		}
	}
	if w.limits(set).partition > 0 {
		for i := range w.templates { // the revision may have been deleted
			if w.versionNamed(set.Status.CurrentRevision) == "v"+strconv.Itoa(i+1) {
				templates = append(templates, &w.templates[i])
			}
		}
	}
	return templates
}

// hopeless says whether pods of a template can never be available.
func hopeless(template *corev1.PodTemplateSpec) bool {
	c := &template.Spec.Containers[0]
	_, tag, _ := strings.Cut(c.Image, ":")
	for _, word := range []string{"broken", "missing", "crash", "exit"} {
		if strings.Contains(tag, word) {
			return true
		}
	}
	return c.Image == "" || c.Resources.Requests.Cpu().Cmp(resource.MustParse(nodeCPU)) > 0
}

// Ending is the state of all pods without their names, in which two runs of one script must agree.
func (w *World) Ending() string {
	var states []string
	for _, pod := range w.pods() {
		state := w.version(pod) + w.mark(pod)
		if set := w.Set(); set == nil || ownerOf(pod) != set.UID {
			state = "(" + state + ")"
		}
		states = append(states, state)
	}
	slices.Sort(states)
	return strings.Join(states, " ")
}
