// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Memory holds what a kubelet knows about a pod and does not report: what it waits for since when, and how often
// containers crashed. Callers keep it from one Step to the next and do not look inside.
//
// The zero value is the memory of a kubelet that has just started: it takes the containers as the pod's status has
// them, forgets that readiness probes have passed until they pass again, and starts every back-off over. Memory is
// immutable, so that copies of it may be kept and gone back to.
type Memory struct {
	awake bool
	// tasks are the tasks of the pod's worker. It is busy with them until busyUntil, and reads no change of the pod
	// before.
	tasks     []task
	busyUntil time.Time
	alarms    []alarm
	crashes   []crash
	// terminatingSince is when the deletion was seen, removedAt when the object of a pod that has ended may go.
	terminatingSince, removedAt time.Time
}

// task is the worker's task for one container. It carries the spec from the time when the worker began: a later change
// must wait.
type task struct {
	container string
	act       act
	image     string
	resources corev1.ResourceRequirements
}

// alarm is the time at which a container leaves its situation by itself.
type alarm struct {
	situation situation
	at        time.Time
}

// situation identifies a state of waiting. When any part of it changes, the waiting begins again.
type situation struct {
	container, id, state, image string
	act                         act
}

// crash counts how often a container has exited in a row with the same image and resources: its back-off's key.
type crash struct {
	container, key string
	count          int
}

// alarmAt returns when the alarm for a situation rings.
func (m Memory) alarmAt(s situation) (time.Time, bool) {
	i := slices.IndexFunc(m.alarms, func(a alarm) bool { return a.situation == s })
	if i < 0 {
		return time.Time{}, false
	}
	return m.alarms[i].at, true
}

// crashCount returns how often the container has crashed in a row under this key.
func (m Memory) crashCount(container, key string) int {
	i := slices.IndexFunc(m.crashes, func(c crash) bool { return c.container == container && c.key == key })
	if i < 0 {
		return 0
	}
	return m.crashes[i].count
}

// countCrash returns the memory with one more crash of the container. Another key than before starts a new count.
func (m Memory) countCrash(container, key string) Memory {
	others := slices.DeleteFunc(slices.Clone(m.crashes), func(c crash) bool { return c.container == container })
	m.crashes = append(others, crash{container: container, key: key, count: m.crashCount(container, key) + 1})
	return m
}

// Crash returns the memory of a kubelet whose pod's containers have just ended by themselves. The pod's worker starts
// them again, from the spec that it knows, and reports it when that is done: with the newest generation, even if the
// pod was written meanwhile.
func (m Memory) Crash(pod *corev1.Pod, done time.Time) Memory {
	m.tasks, m.busyUntil = nil, done
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if status := statusOf(pod.Status.ContainerStatuses, c.Name); status == nil || status.State.Running == nil {
			continue
		}
		for _, act := range []act{exit, start} {
			m.tasks = append(m.tasks, task{container: c.Name, act: act, image: c.Image, resources: c.Resources})
		}
	}
	return m
}
