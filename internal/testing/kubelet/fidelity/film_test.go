// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// frame returns a status as text, without times, addresses and messages. Digests and container IDs are numbered in the
// order in which they appear on the film.
func (f *Film) frame(p *corev1.Pod) string {
	parts := []string{fmt.Sprintf("%d/%d", p.Generation, p.Status.ObservedGeneration)}
	if p.DeletionTimestamp != nil {
		parts = append(parts, "terminating")
	}
	parts = append(parts, string(p.Status.Phase))
	parts = append(parts, conditions(p)...)
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			parts = append(parts, f.container(&list[i]))
		}
	}
	return strings.Join(parts, " ")
}

// conditions lists those that are not True, and those of resizes. Gates are their owners' business.
func conditions(p *corev1.Pod) []string {
	var lines []string
	for _, c := range p.Status.Conditions {
		line := string(c.Type)
		switch c.Type {
		case corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled, corev1.PodReadyToStartContainers:
			if c.Status == corev1.ConditionTrue && c.ObservedGeneration == p.Status.ObservedGeneration {
				continue
			}
		case corev1.PodResizePending, corev1.PodResizeInProgress:
		default:
			continue
		}
		if c.Status != corev1.ConditionTrue {
			line = "no" + line
		}
		if c.Reason != "" {
			line += "(" + c.Reason + ")"
		}
		if c.ObservedGeneration != p.Status.ObservedGeneration {
			line += fmt.Sprintf("@%d", c.ObservedGeneration)
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b string) int {
		return strings.Compare(strings.TrimPrefix(a, "no"), strings.TrimPrefix(b, "no"))
	})
	return lines
}

// container renders one container: image, content, incarnation, restarts, state, and how the one before ended.
func (f *Film) container(c *corev1.ContainerStatus) string {
	parts := []string{c.Image, f.imageID(c.ImageID), f.number("c", c.ContainerID), fmt.Sprintf("#%d", c.RestartCount), state(c.State)}
	if c.Ready {
		parts = append(parts, "ready")
	}
	if c.Started != nil && *c.Started {
		parts = append(parts, "started")
	}
	if end := c.LastTerminationState.Terminated; end != nil {
		parts = append(parts, "after "+terminated(end))
	}
	if size := resources(c.Resources); size != "" {
		parts = append(parts, "has "+size)
	}
	if size := amounts(c.AllocatedResources); size != "" {
		parts = append(parts, "allocated "+size)
	}
	return fmt.Sprintf("%s{%s}", c.Name, strings.Join(parts, " "))
}

// imageID keeps the form of the ID, and numbers the digest in it.
func (f *Film) imageID(id string) string {
	before, digest, found := strings.Cut(id, "sha256:")
	if !found {
		return "-"
	}
	return before + f.number("d", digest)
}

// number names a value by when it was first seen; "-" if there is none.
func (f *Film) number(kind, value string) string {
	if value == "" {
		return "-"
	}
	if f.numbers == nil {
		f.numbers = map[string][]string{}
	}
	at := slices.Index(f.numbers[kind], value)
	if at < 0 {
		at = len(f.numbers[kind])
		f.numbers[kind] = append(f.numbers[kind], value)
	}
	return fmt.Sprintf("%s%d", kind, at+1)
}

// HeldBack stands for ErrImagePull, ImagePullBackOff and CrashLoopBackOff. Of a container that has to wait a kubelet
// shows now one and now another of them: how often it has looked decides, and that is a matter of milliseconds.
const HeldBack = "held-back"

func state(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return terminated(s.Terminated)
	case s.Waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"}, s.Waiting.Reason):
		return HeldBack
	case s.Waiting != nil:
		return s.Waiting.Reason
	default:
		return "stateless"
	}
}

// terminated is reason and code of an end. A container that is asked to end before it has learned to take signals ends
// by the signal, or is killed: which of these a restart meets is a matter of milliseconds, too.
func terminated(t *corev1.ContainerStateTerminated) string {
	if t.Reason == "Error" && (t.ExitCode == 2 || t.ExitCode == 137) {
		return "Completed(0)"
	}
	return fmt.Sprintf("%s(%d)", t.Reason, t.ExitCode)
}

func resources(r *corev1.ResourceRequirements) string {
	if r == nil {
		return ""
	}
	requests, limits := amounts(r.Requests), amounts(r.Limits)
	if requests == "" && limits == "" {
		return ""
	}
	return requests + ".." + limits
}

func amounts(l corev1.ResourceList) string {
	if len(l) == 0 {
		return ""
	}
	return l.Cpu().String() + "/" + l.Memory().String()
}

// Film records what a kubelet reports of one pod.
type Film struct {
	// Lines are frames, and between them what was done, marked by "> ".
	Lines []string

	numbers map[string][]string
	last    string
}

// Show adds a pod's frame if it differs from the last one. Statuses that no kubelet has written yet are left out.
func (f *Film) Show(p *corev1.Pod) {
	if p.Status.StartTime == nil {
		return
	}
	f.add(f.frame(p))
}

// ShowGone adds that the pod is gone.
func (f *Film) ShowGone() { f.add("gone") }

func (f *Film) add(frame string) {
	if frame == f.last {
		return
	}
	f.last = frame
	f.Lines = append(f.Lines, frame)
}

// Say adds what is done next.
func (f *Film) Say(what string) { f.Lines = append(f.Lines, "> "+what) }

// Has reports whether the last frame shows all that is wanted.
func (f *Film) Has(wanted ...string) bool {
	for _, w := range wanted {
		if !strings.Contains(f.last, w) {
			return false
		}
	}
	return f.last != ""
}
