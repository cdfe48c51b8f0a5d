// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// act is one thing that can happen to a container.
type act int

const (
	nothing     act = iota
	start           // a new container runs; the old one, if it still ran, was killed first
	failPull        // an image turned out to be missing; the old container, if it still ran, was killed first
	exit            // the container ended by itself
	passProbe       // the readiness probe passed
	complete        // an ordinary init container did its work
	backOff         // a crashed container is held back
	applyResize     // the container has its new resources
	makeSandbox     // the pod's sandbox and network stand
)

// transition is the next event of a container if nothing changes.
type transition struct {
	act   act
	after time.Duration
	// byWorker: the pod's worker does it, and is busy until it is done. Otherwise it just happens, and any change of
	// the pod forestalls it.
	byWorker bool
}

// crashReportDelay is the time that a status shows an exit before it shows the back-off that follows.
const crashReportDelay = time.Second

// pullReportDelay is the time that a status shows a failed pull before it shows the back-off that follows.
const pullReportDelay = time.Second

// transitions lets the states of containers follow each other.
type transitions struct{ *visit }

// next returns the next transition of a container by its state. It is the table of the model.
func (v transitions) next(c member) transition {
	switch {
	case c.status.State.Running != nil:
		return v.nextWhileRunning(c)
	case c.status.State.Terminated != nil:
		return v.nextAfterExit(c)
	default:
		return v.nextWhileWaiting(c)
	}
}

func (v transitions) nextWhileRunning(c member) transition {
	if c.role == initOnce {
		if parseImage(c.status.Image).has("crash") {
			return transition{act: exit, after: v.model.CrashDelay}
		}
		return transition{act: complete, after: v.model.StartDelay}
	}
	wanted := parseImage(c.spec.Image)
	switch {
	case !StartedFrom(v.pod, c.status, c.spec.Image):
		return v.beginAfter(wanted, containers(v).killDelay()+v.model.StartDelay)
	case resizing(v).isResizing(c) && restartsForResize(c):
		return v.beginAfter(wanted, containers(v).killDelay()+v.model.StartDelay)
	case resizing(v).isResizing(c):
		return transition{act: applyResize, after: v.model.ResizeDelay, byWorker: true}
	case wanted.exits():
		return transition{act: exit, after: v.model.CrashDelay}
	case c.status.Ready || wanted.isBroken() || v.isWithheld():
		return transition{}
	case wanted.isSlow():
		return transition{act: passProbe, after: v.model.slowDelay()}
	default:
		return transition{act: passProbe, after: v.model.ReadyDelay}
	}
}

// beginAfter returns the worker's attempt to start a container of the image.
func (v transitions) beginAfter(i image, after time.Duration) transition {
	if i.isMissing() || i.isInvalid() {
		return transition{act: failPull, after: after, byWorker: true}
	}
	return transition{act: start, after: after, byWorker: true}
}

func (v transitions) nextAfterExit(c member) transition {
	if !c.restartsAfter(c.status.State.Terminated.ExitCode, v.pod.Spec.RestartPolicy) {
		return transition{}
	}
	if containers(v).crashDelay(c) == 0 {
		return v.beginAfter(parseImage(c.spec.Image), v.model.StartDelay)
	}
	return transition{act: backOff, after: crashReportDelay}
}

func (v transitions) nextWhileWaiting(c member) transition {
	wanted, reason := parseImage(c.spec.Image), c.waitingReason()
	if !v.mayStart(c) {
		return transition{}
	}
	if reason == reasonInvalidImageName && wanted.isInvalid() {
		return transition{}
	}
	if wanted.isMissing() {
		switch reason {
		case reasonErrImagePull:
			return transition{act: failPull, after: pullReportDelay}
		case reasonImagePullBackOff, reasonCrashLoopBackOff:
			return transition{act: failPull, after: v.model.backOff()}
		}
	} else if delay := containers(v).crashDelay(c); reason == reasonCrashLoopBackOff && delay > 0 {
		return transition{act: start, after: max(0, delay-crashReportDelay)}
	}
	return v.beginAfter(wanted, v.model.StartDelay)
}

// mayStart reports whether the sandbox exists and every init container before this one lets it start.
func (v transitions) mayStart(c member) bool {
	if !v.hasSandbox() {
		return false
	}
	for _, before := range v.members() {
		if before.status == c.status {
			return true
		}
		if !before.isInitialized() {
			return false
		}
	}
	return true
}

// situationOf returns the situation in which the container waits for an act.
func (v transitions) situationOf(c member, a act) situation {
	return situation{
		container: c.spec.Name, id: c.status.ContainerID, state: c.stateName(), image: c.spec.Image, act: a,
	}
}

// plan sets the alarms for the next transitions of all containers. If there is work for the worker, it begins with all of it, and
// the work ends when the last part is due: containers that change together are replaced in one event.
func (v transitions) plan() {
	var tasks []task
	var alarms []alarm
	var work time.Duration
	if !v.hasSandbox() {
		alarms = append(alarms, v.alarmFor(situation{act: makeSandbox}, v.model.SandboxDelay))
	}
	for _, c := range v.members() {
		switch t := v.next(c); {
		case t.byWorker:
			tasks = append(tasks, task{container: c.spec.Name, act: t.act, image: c.spec.Image, resources: resizing(v).resourcesFor(c)})
			work = max(work, t.after)
		case t.act != nothing:
			alarms = append(alarms, v.alarmFor(v.situationOf(c, t.act), t.after))
		}
	}
	v.memory.tasks, v.memory.alarms = tasks, alarms
	if len(tasks) > 0 {
		v.memory.busyUntil = v.now.Add(work)
		v.waitUntil(v.memory.busyUntil)
	}
	v.waitForAlarms()
}

// alarmFor keeps the alarm that is set for a situation, or sets one.
func (v transitions) alarmFor(s situation, after time.Duration) alarm {
	at, ok := v.memory.alarmAt(s)
	if !ok {
		at = v.now.Add(after)
	}
	return alarm{situation: s, at: at}
}

// waitForAlarms requests a Step when the next alarm rings. An alarm that rang while the worker was busy waits for the
// worker.
func (v transitions) waitForAlarms() {
	for _, a := range v.memory.alarms {
		if !v.isBusy() || a.at.After(v.now) {
			v.waitUntil(a.at)
		}
	}
}

func (v transitions) isBusy() bool {
	return len(v.memory.tasks) > 0 && v.now.Before(v.memory.busyUntil)
}

// perform finishes the worker's tasks.
func (v transitions) perform() {
	members := v.members()
	for _, t := range v.memory.tasks {
		i := slices.IndexFunc(members, func(c member) bool { return c.spec.Name == t.container })
		if i >= 0 {
			containers(v).apply(members[i], t)
		}
	}
	v.memory.tasks = nil
}

// ring carries out the transitions of the alarms that are due, unless the worker is too busy to notice.
func (v transitions) ring(heard func(act) bool) {
	if !v.hasSandbox() && v.isDue(situation{act: makeSandbox}) {
		v.setCondition(corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue})
		return
	}
	for _, c := range v.members() {
		t := v.next(c)
		if t.byWorker || !heard(t.act) || !v.isDue(v.situationOf(c, t.act)) {
			continue
		}
		containers(v).apply(c, task{act: t.act, image: c.spec.Image, resources: resizing(v).resourcesFor(c)})
	}
}

// isDue reports whether an alarm is set for the situation and rings.
func (v transitions) isDue(s situation) bool {
	at, ok := v.memory.alarmAt(s)
	return ok && !at.After(v.now)
}

// isWithheld reports whether an annotation keeps the pod's containers from becoming ready.
func (v transitions) isWithheld() bool {
	_, withheld := v.pod.Annotations[WithholdReadyAnnotation]
	return withheld
}
