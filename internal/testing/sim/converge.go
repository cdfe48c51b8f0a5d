// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// resyncs is the number of times that a settled set is reconciled again.
const resyncs = 5

// CheckConverged ends all faults and checks I9: the set reaches the wanted state if it can. After that nothing is
// written, however often the set is reconciled, and not after a restart either.
func (w *World) CheckConverged(ctx context.Context) error {
	for _, m := range w.Managers {
		m.Client.Faults = nil
	}
	if err := w.Settle(ctx); err != nil {
		return err
	}
	j := judge{w}
	if err := cmp.Or(j.checkWanted(), j.checkBudgets()); err != nil {
		return fmt.Errorf("I9 convergence broken: %w", err)
	}
	if err := j.checkStill(ctx); err != nil {
		return fmt.Errorf("I9 rest broken: %w", err)
	}
	return nil
}

// judge checks what the rules for single writes cannot see: a set at rest, and what keeps it from its wanted state.
type judge struct{ *World }

// checkStill reconciles the set over and over, restarts the managers, and expects no write.
func (j judge) checkStill(ctx context.Context) error {
	before := j.managerWrites()
	for range resyncs {
		j.Resync()
		if err := j.Run(ctx, 4*time.Second); err != nil {
			return err
		}
	}
	for _, m := range j.Managers {
		if n := m.Expectations.Unmet() - j.neighbors.hanging; n > 0 && j.satisfiable() {
			return fmt.Errorf("%s still expects something of %d sets", m.Name, n)
		}
		j.Restart(ctx, m, j.Store.Version())
	}
	if err := j.Settle(ctx); err != nil {
		return err
	}
	if after := j.managerWrites(); len(after) > len(before) {
		first := after[len(before)]
		return fmt.Errorf("%d more writes, the first: %s %s %s", len(after)-len(before), j.Film.time(first.At), first.Actor, first.Write)
	}
	return nil
}

// managerWrites returns the writes of managers in the set's namespace so far. Creates that hang elsewhere go on. Writes of status do not count while pods come and go by
// themselves, as crashing ones do.
func (j judge) managerWrites() []*apiserver.Entry {
	satisfiable := j.satisfiable()
	var writes []*apiserver.Entry
	log := j.Store.Log()
	for i := range log {
		e := &log[i]
		if strings.HasPrefix(e.Actor, managerActor) && e.Key.Namespace == Namespace && (e.Subresource != "status" || satisfiable) {
			writes = append(writes, e)
		}
	}
	return writes
}

// checkWanted compares the pods and the status with the spec, unless this cluster cannot give the set what it wants.
func (j judge) checkWanted() error {
	set := j.Set()
	if set == nil || set.DeletionTimestamp != nil || !j.satisfiable() {
		return nil
	}
	return j.CheckWanted(set, j.gates.open)
}

// satisfiable reports whether the set can reach its wanted state in this cluster.
func (j judge) satisfiable() bool {
	set := j.Set()
	if set == nil {
		return true
	}
	return len(j.obstacles()) == 0 && j.isHopeful(set)
}

// isHopeful reports whether all pods of the set can become available by themselves once nothing in the cluster keeps them from it.
func (j judge) isHopeful(set *v1beta1.RollSet) bool {
	templates := j.templatesIn(set)
	limited := set.Spec.ScaleStrategy != nil && set.Spec.ScaleStrategy.MaxUnavailable != nil
	if limited || set.Spec.PodIdentity == v1beta1.OrdinalIdentity && set.Spec.PodManagementPolicy != v1beta1.ParallelPodManagement {
		for _, t := range templates {
			if isMember(&corev1.Pod{Spec: t.Spec}) {
				return false // pods that are created one by one become ready one by one
			}
		}
	}
	return !slices.ContainsFunc(templates, neverAvailable)
}

// templatesIn returns the templates that pods of a set have, or will have when they are created again.
func (j judge) templatesIn(set *v1beta1.RollSet) (templates []*corev1.PodTemplateSpec) {
	if !j.Rejected(set) {
		templates = append(templates, &set.Spec.Template)
	}
	frozen := set.Spec.UpdateStrategy.RollingUpdate.Paused || set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategy
	for _, pod := range j.Pods() {
		switch t := j.TemplateOf(pod.Labels[v1beta1.RevisionLabel]); {
		case !invariants.IsActive(pod):
		case t != nil:
			templates = append(templates, t)
		case frozen: // a pod without a known revision stays as it is
			templates = append(templates, &corev1.PodTemplateSpec{Spec: pod.Spec})
		}
	}
	if j.Limits(set).Partition > 0 {
		if t := j.TemplateNamed(j.VersionNamed(set.Status.CurrentRevision)); t != nil { // the revision may have been deleted
			templates = append(templates, t)
		}
	}
	return templates
}

// neverAvailable reports whether pods of a template can never be available by themselves.
func neverAvailable(template *corev1.PodTemplateSpec) bool {
	c := &template.Spec.Containers[0]
	_, tag, _ := strings.Cut(c.Image, ":")
	for _, word := range []string{"broken", "missing", "crash", "exit"} {
		if strings.Contains(tag, word) {
			return true
		}
	}
	return c.Image == "" || len(template.Spec.SchedulingGates) > 0 || c.Resources.Requests.Cpu().Cmp(resource.MustParse(nodeCPU)) > 0
}

// Ending returns the state of all pods without their names. Two runs of one script must end with the same one.
func (w *World) Ending() string {
	var states []string
	for _, pod := range w.Pods() {
		state := w.Version(pod) + w.Mark(pod)
		if set := w.Set(); set == nil || invariants.OwnerOf(pod) != set.UID {
			if w.Misfits[pod.UID] {
				continue
			}
			state = "(" + state + ")"
		}
		states = append(states, state)
	}
	slices.Sort(states)
	return strings.Join(states, " ")
}
