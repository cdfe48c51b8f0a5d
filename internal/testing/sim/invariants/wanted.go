// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// comparison compares what there is with the spec of a set.
type comparison struct {
	*Cluster
	set *v1beta1.RollSet
	// active are the active pods that count.
	active []*corev1.Pod
	// check adds an error if something is not so.
	check func(ok bool, format string, args ...any)
}

// CheckWanted compares the pods and the status with the spec.
func (c *Cluster) CheckWanted(set *v1beta1.RollSet, letsPass bool) error {
	own, active := c.OwnPods(set)
	errs := []error{c.Lacks(set)}
	d := comparison{c, set, active, collect(&errs)}
	l := c.Limits(set)
	d.checkDrained()
	if rolls(set) {
		_, atWork := c.stepAtWork(set)
		if l.Replicas > 0 && l.Partition == 0 && !c.Rejected(set) && !atWork {
			d.check(set.Status.CurrentRevision == set.Status.UpdateRevision, "the rollout is over, and the current revision is still %s", set.Status.CurrentRevision)
		}
	}
	s := &set.Status
	d.check(s.ObservedGeneration == set.Generation, "generation %d is observed, %d is there", s.ObservedGeneration, set.Generation)
	d.check(int(s.Replicas) == len(own) || int(s.Replicas) == len(active), "status says %d replicas, there are %d", s.Replicas, len(active))
	d.check(int(s.ReadyReplicas) == len(active) && int(s.AvailableReplicas) == len(active), "status says %d ready, %d available", s.ReadyReplicas, s.AvailableReplicas)
	d.checkStep(letsPass)
	d.check(l.Replicas > 0 || s.Rollout == nil, "a set without replicas is at a step")
	for _, is := range s.Conditions {
		d.check(is.Reason == "Judged" || is.Reason == "StepStarted" || is.ObservedGeneration == set.Generation, "condition %s is about generation %d", is.Type, is.ObservedGeneration)
	}
	d.check(d.unusedRevisions() <= int(*set.Spec.RevisionHistoryLimit), "%d unused revisions", d.unusedRevisions())
	return errors.Join(errs...)
}

// Lacks compares the pods with the spec.
func (c *Cluster) Lacks(set *v1beta1.RollSet) error {
	_, active := c.OwnPods(set)
	active = slices.DeleteFunc(active, func(pod *corev1.Pod) bool { return !matches(set, pod) }) // one that is to be released does not count
	var errs []error
	d := comparison{c, set, active, collect(&errs)}
	replicas := c.Limits(set).Replicas
	d.check(len(active) == replicas, "%d active pods, %d wanted", len(active), replicas)
	for _, pod := range active {
		d.check(IsAvailable(pod, set.Spec.MinReadySeconds, c.now()), "%s is not available", c.Name(pod))
	}
	if rolls(set) {
		d.checkMix()
	}
	return errors.Join(errs...)
}

// collect returns a function that adds an error if something is not so.
func collect(errs *[]error) func(ok bool, format string, args ...any) {
	return func(ok bool, format string, args ...any) {
		if !ok {
			*errs = append(*errs, fmt.Errorf(format, args...))
		}
	}
}

// checkStep compares condition Ready with the step at work. A set that was rolled back does not run the template in its spec, and
// one in a step not yet.
func (d comparison) checkStep(letsPass bool) {
	l := d.Limits(d.set)
	ready := meta.IsStatusConditionTrue(d.set.Status.Conditions, "Ready")
	step, atWork := d.stepAtWork(d.set)
	waits := atWork && (d.set.Spec.UpdateStrategy.RollingUpdate.Paused || limitsOf(&d.set.Spec).Partition > l.Replicas-sizesOf(&d.set.Spec)[step])
	d.check(ready == (l.Replicas == 0 || !d.Rejected(d.set) && (!atWork || waits)), "condition Ready is True: %t", ready)
	d.check(!letsPass || !atWork || waits, "a step is at work that everybody lets pass")
}

// rolls reports whether the set moves pods by itself to where it wants them.
func rolls(set *v1beta1.RollSet) bool {
	return set.Spec.UpdateStrategy.Type != v1beta1.OnDeleteStrategy && !set.Spec.UpdateStrategy.RollingUpdate.Paused
}

// checkDrained checks that no pod is on a node that leaves, if the set replaces such pods.
func (d comparison) checkDrained() {
	if !d.set.Spec.ReplacesOnDrain() || !rolls(d.set) {
		return
	}
	for _, pod := range d.active {
		d.check(!Leaves(d.nodeOf(pod), pod, d.set), "%s is still on a node that leaves", d.Name(pod))
	}
}

// checkMix checks that p pods are at the current revision and the others at the update revision.
func (d comparison) checkMix() {
	update := d.VersionOf(&d.set.Spec.Template)
	partition := 0
	if d.set.Spec.UpdateStrategy.Type == v1beta1.RollingUpdateStrategy {
		partition = d.Limits(d.set).Partition
	}
	current := d.VersionNamed(d.set.Status.CurrentRevision)
	updated := 0
	for _, pod := range d.active {
		switch named := pod.Labels[v1beta1.RevisionLabel]; {
		case d.Version(pod) == update, named == d.set.Status.UpdateRevision && d.TemplateOf(named) == nil: // it could not be recorded
			updated++
		case d.Version(pod) == current:
		default:
			d.check(false, "%s is a stray at %s", d.Name(pod), d.Version(pod))
		}
	}
	want := len(d.active) - partition
	switch {
	case current == update:
		want = len(d.active)
	case d.Rejected(d.set):
		want = 0
	}
	lost := d.currentTemplate(d.set) == nil // no pod can be created from it
	step, atWork := d.stepAtWork(d.set)
	fewer := atWork && updated < want && updated >= sizesOf(&d.set.Spec)[step] // some of those that exceed the last step were lost
	d.check(updated == want || fewer || lost && updated > want, "%d pods at the update revision %s, %d wanted", updated, update, want)
}

// CheckHeld checks what a template with which no pod becomes available leaves of a set that rests, and that nothing else keeps from
// anything: no broken stray, no more broken pods than replicas, and all but maxUnavailable pods at the revision that served. Once no pod is
// available, nothing is left to protect. A set with hooks, steps or a partition keeps pods in other ways, and so does one whose pods may not
// be recreated, or not be created at once. In order, a broken pod may keep those above it from coming.
func (c *Cluster) CheckHeld(set *v1beta1.RollSet) error {
	update, current := c.VersionOf(&set.Spec.Template), c.VersionNamed(set.Status.CurrentRevision)
	if c.keepsOtherwise(set) || c.unproven(set) || current == update || c.VersionNamed(set.Status.UpdateRevision) != update {
		return nil
	}
	replicas, broken, others, available := int(*set.Spec.Replicas), 0, 0, 0
	own, _ := c.OwnPods(set)
	for _, pod := range own {
		if IsAvailable(pod, set.Spec.MinReadySeconds, c.now()) {
			available++
		}
		switch version := c.Version(pod); {
		case !IsActive(pod), !matches(set, pod), pod.Labels[v1beta1.SpecifiedDeleteLabel] != "", Leaves(c.nodeOf(pod), pod, set):
			return nil
		case mayServe(pod) || version == current:
			others++
		case version == update && pod.Annotations[inPlaceState] != "" && !hasGate(pod):
			others++ // nothing shows whether it was ready since its update
		case version == update:
			broken++
		default:
			return fmt.Errorf("%s stays broken at %s, beside %s and %s", c.Name(pod), version, current, update)
		}
	}
	if broken > replicas {
		return fmt.Errorf("%d pods stay broken at %s, and %d are wanted", broken, update, replicas)
	}
	most := c.Limits(set).maxUnavailable
	if c.marksSurge(set) { // surge is no stand-in there, and one broken pod may move in any case
		most = max(1, most)
	}
	members := slices.DeleteFunc(own, isSurge)
	if least := replicas - most; available > 0 && others < least && !mayBlock(set, len(members)) {
		return fmt.Errorf("%d pods stay beside the broken ones at %s, at least %d must", others, update, least)
	}
	return nil
}

// mayBlock reports whether an unready or missing pod may keep the next members of a set from coming.
func mayBlock(set *v1beta1.RollSet, members int) bool {
	return set.Spec.PodManagementPolicy != v1beta1.ParallelPodManagement && set.Spec.PodIdentity == v1beta1.OrdinalIdentity && members < int(*set.Spec.Replicas)
}

// keepsOtherwise reports whether the spec of a set keeps pods where they are, or places empty, whatever becomes of the template.
func (c *Cluster) keepsOtherwise(set *v1beta1.RollSet) bool {
	rolling := &set.Spec.UpdateStrategy.RollingUpdate
	return set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy || rolling.Paused || rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyPod ||
		set.Spec.Lifecycle != nil || limitsCreation(set) || c.Limits(set).Partition > 0 || len(rolling.Steps) > 0 || *set.Spec.Replicas == 0 ||
		c.Rejected(set) || set.Status.ObservedGeneration != set.Generation
}

// marksSurge reports whether a set marks the pods of its surge. It does with ordinals, with updates in place, and if it has claims, or a pod
// or a claim that is left shows that it had any.
func (c *Cluster) marksSurge(set *v1beta1.RollSet) bool {
	for range apiserver.Each[*corev1.PersistentVolumeClaim](c.Store) {
		return true
	}
	return set.Spec.PodIdentity == v1beta1.OrdinalIdentity || set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy != v1beta1.RecreatePod ||
		len(set.Spec.VolumeClaimTemplates) > 0 || slices.ContainsFunc(c.Pods(), func(pod *corev1.Pod) bool { return len(ClaimsOf(pod)) > 0 })
}

func (d comparison) unusedRevisions() int {
	used := []string{d.set.Status.CurrentRevision, d.set.Status.UpdateRevision}
	for _, pod := range d.Pods() {
		used = append(used, pod.Labels[v1beta1.RevisionLabel])
	}
	n := 0
	for r := range apiserver.Each[*appsv1.ControllerRevision](d.Store) {
		if metav1.IsControlledBy(r, d.set) && !slices.Contains(used, r.Name) {
			n++
		}
	}
	return n
}

// idleAfter is the time that a healthy pod may be out of service without an update in progress, after the deadline for
// its update.
const idleAfter = 15 * time.Minute

// CheckService checks I17: a healthy pod is out of service only while it is being updated. Sets with hooks are left
// out, because other programs decide there. Under InPlaceOnly a failed update may leave a pod out of service. The time
// before a check that found such a reason does not count.
func (c *Cluster) CheckService(hasKubelet func(pod types.UID) bool) error {
	set := c.Set()
	if set == nil || set.DeletionTimestamp != nil {
		return nil
	}
	only := set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy == v1beta1.InPlaceOnlyPod
	_, active := c.OwnPods(set)
	for _, pod := range active {
		closed, since := gateClosed(pod)
		if set.Spec.Lifecycle != nil || only && pod.Annotations[inPlaceState] != "" ||
			!closed || IsReady(pod) || !isTrue(pod, corev1.ContainersReady) || !hasKubelet(pod.UID) || runsOldImage(pod) != "" {
			c.excused[pod.UID] = c.now()
			continue
		}
		if excused := c.excused[pod.UID]; excused.After(since) {
			since = excused
		}
		if idle := c.now().Sub(since); idle > idleAfter+time.Duration(*set.Spec.ProgressDeadlineSeconds)*time.Second {
			return fmt.Errorf("I17: %s is healthy and has been out of service for %s", c.Name(pod), idle)
		}
	}
	return nil
}
