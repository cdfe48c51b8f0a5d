// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// These are reasons of a waiting or terminated container. They are strings of the kubelet, not constants of the API.
const (
	containerCreating   = "ContainerCreating"
	podInitializing     = "PodInitializing"
	imagePullBackOff    = "ImagePullBackOff"
	errImagePull        = "ErrImagePull"
	registryUnavailable = "RegistryUnavailable"
	signatureFailed     = "SignatureValidationFailed"
	crashLoopBackOff    = "CrashLoopBackOff"
	runContainerError   = "RunContainerError"
	startError          = "StartError"
	oomKilled           = "OOMKilled"
)

// These are the exit codes of a program that was killed by a signal.
const (
	exitSIGKILL = 137
	exitSIGTERM = 143
)

// backOff is the shortest time between a crash and a delayed restart: ten seconds, less what is lost because times in a
// status are truncated to seconds.
const backOff = 8 * time.Second

// container is a container of a pod, with its status.
type container struct {
	pod    *corev1.Pod
	status *corev1.ContainerStatus
	init   bool
}

// String returns the name of the container for messages.
func (c container) String() string {
	if c.init {
		return "init container " + c.status.Name
	}
	return "container " + c.status.Name
}

// containers returns all containers that have a status: init containers first, each kind in the kubelet's order.
func containers(pod *corev1.Pod) []container {
	all := make([]container, 0, len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses))
	for i := range pod.Status.InitContainerStatuses {
		all = append(all, container{pod: pod, status: &pod.Status.InitContainerStatuses[i], init: true})
	}
	for i := range pod.Status.ContainerStatuses {
		all = append(all, container{pod: pod, status: &pod.Status.ContainerStatuses[i]})
	}
	return all
}

// blame orders causes. Of several unready containers, one that fails explains more than one that starts.
type blame int

const (
	fine blame = iota
	notReady
	starting
	failing
)

// whyContainers explains a pod by the first init container that holds back the others, or else by the container that is most
// to blame; empty if none is.
func whyContainers(pod *corev1.Pod) string {
	worst, sentence := fine, ""
	for _, c := range containers(pod) {
		if c.holdsBack() {
			return c.why()
		}
		if b := c.blame(); b > worst {
			worst, sentence = b, c.why()
		}
	}
	return sentence
}

// AllRun reports whether all containers of a pod run. Nothing about such a pod says why it is not ready.
func AllRun(pod *corev1.Pod) bool {
	all := containers(pod)
	return len(all) > 0 && !slices.ContainsFunc(all, func(c container) bool { return c.holdsBack() || c.blame() > notReady })
}

// holdsBack reports whether this is an init container that the containers after it wait for. An ordinary one must have
// succeeded, a sidecar must have started.
func (c container) holdsBack() bool {
	if !c.init {
		return false
	}
	if restartable(c.pod, c.status.Name) {
		return c.status.Started == nil || !*c.status.Started
	}
	return c.status.State.Terminated == nil || c.status.State.Terminated.ExitCode != 0
}

func (c container) blame() blame {
	waiting, terminated := c.status.State.Waiting, c.status.State.Terminated
	switch {
	case c.status.Ready, c.init && terminated != nil && terminated.ExitCode == 0:
		return fine
	case waiting != nil && !begins(waiting.Reason), terminated != nil, c.crashLoops():
		return failing
	case c.status.State.Running != nil:
		return notReady
	default:
		return starting
	}
}

// begins reports whether a container waits for this reason before it first starts.
func begins(reason string) bool {
	return reason == "" || reason == containerCreating || reason == podInitializing
}

func (c container) why() string {
	waiting, terminated := c.status.State.Waiting, c.status.State.Terminated
	switch {
	case c.crashLoops():
		return join(c.String(), crashLoopBackOff, c.lastExit())
	case terminated != nil:
		return join(c.String(), exit(terminated))
	case c.status.State.Running != nil && c.init && !restartable(c.pod, c.status.Name):
		return c.String() + " is running"
	case c.status.State.Running != nil:
		return c.String() + " is running but not ready"
	case waiting == nil || waiting.Reason == "":
		return c.String() + " has not started"
	case pullFails(waiting.Reason):
		image := c.image()
		return join(c.String(), imagePullBackOff, fmt.Sprintf("Back-off pulling image %q", image),
			pullFailure(strings.ReplaceAll(waiting.Message, image, "")))
	default:
		return join(c.String(), waiting.Reason, withoutIDs(waiting.Message))
	}
}

// crashLoops reports whether the kubelet restarts the container repeatedly, or is about to. Between two restarts the status
// shows it terminated or waiting, depending on when the kubelet looked. During each restart it runs for a moment.
func (c container) crashLoops() bool {
	s := c.status
	switch {
	case s.State.Waiting != nil:
		reason := s.State.Waiting.Reason
		return reason == crashLoopBackOff || reason == runContainerError && s.LastTerminationState.Terminated != nil
	case s.State.Terminated != nil:
		return c.restarts(s.State.Terminated.ExitCode)
	default:
		return c.runsBetweenCrashes()
	}
}

// restarts reports whether the kubelet restarts the container after it ended with this code.
func (c container) restarts(code int32) bool {
	if c.init && !restartable(c.pod, c.status.Name) {
		return code != 0 && c.pod.Spec.RestartPolicy != corev1.RestartPolicyNever
	}
	switch c.pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return c.init
	case corev1.RestartPolicyOnFailure:
		return c.init || code != 0
	default:
		return true
	}
}

// runsBetweenCrashes recognizes a crash loop while the container runs: it failed, the kubelet delayed this start, and the
// pod has not been ready since. A container that was killed, for example for an update, has not failed: its delay may have
// been for an image.
func (c container) runsBetweenCrashes() bool {
	running, last := c.status.State.Running, c.status.LastTerminationState.Terminated
	if running == nil || last == nil || last.ExitCode == 0 || c.status.RestartCount == 0 {
		return false
	}
	if (last.ExitCode == exitSIGKILL || last.ExitCode == exitSIGTERM) && last.Reason != oomKilled {
		return false
	}
	if running.StartedAt.Sub(last.FinishedAt.Time) < backOff {
		return false
	}
	ready := Condition(c.pod, corev1.PodReady)
	return ready != nil && !ready.LastTransitionTime.After(running.StartedAt.Time)
}

// lastExit describes how the container last ended.
func (c container) lastExit() string {
	t := c.status.State.Terminated
	if t == nil {
		t = c.status.LastTerminationState.Terminated
	}
	if t == nil {
		return ""
	}
	if t.Reason == startError { // the message is the runtime's; otherwise it is the program's, and may contain times
		return join("last "+exit(t), withoutIDs(t.Message))
	}
	return "last " + exit(t)
}

func exit(t *corev1.ContainerStateTerminated) string {
	if t.Reason == "" {
		return fmt.Sprintf("exit code %d", t.ExitCode)
	}
	return fmt.Sprintf("exit code %d (%s)", t.ExitCode, t.Reason)
}

// image returns the image that the spec wants: the status may show another name for it, or the one before.
func (c container) image() string {
	list := c.pod.Spec.Containers
	if c.init {
		list = c.pod.Spec.InitContainers
	}
	for i := range list {
		if list[i].Name == c.status.Name {
			return list[i].Image
		}
	}
	return c.status.Image
}

// pullFails reports whether a container waits for this reason because its image cannot be pulled. The kubelet shows the
// failure when it has tried, and the back-off while it waits to retry.
func pullFails(reason string) bool {
	switch reason {
	case imagePullBackOff, errImagePull, registryUnavailable, signatureFailed:
		return true
	}
	return false
}

// pullFailure returns, in one of a few words, what registries and runtimes report about a failed pull; empty if it is none
// of them. Their own texts differ from try to try, because they contain ports of connections and ids of requests.
func pullFailure(message string) string {
	message = strings.ToLower(message)
	for _, known := range []struct {
		cause string
		signs []string
	}{
		{"access denied", []string{"access denied", "unauthorized", "forbidden", "authorization failed", "no basic auth"}},
		{"not found", []string{"not found", "manifest unknown", "name unknown"}},
		{"too many requests", []string{"too many requests", "toomanyrequests"}},
		{"no such host", []string{"no such host"}},
		{"connection refused", []string{"connection refused"}},
		{"certificate not trusted", []string{"x509:"}},
		{"no space left on device", []string{"no space left on device"}},
		{"timeout", []string{"timeout", "deadline exceeded"}},
	} {
		for _, sign := range known.signs {
			if strings.Contains(message, sign) {
				return known.cause
			}
		}
	}
	return ""
}

// id matches the ids of containers and sandboxes, which differ in every try.
var id = regexp.MustCompile(`\b[0-9a-f]{32,}\b`)

// withoutIDs removes what differs from try to try from a runtime's message.
func withoutIDs(message string) string {
	if len(message) > 4*WhyLimit { // the rest is cut later anyway, and matching is slow
		message = message[:4*WhyLimit]
	}
	return id.ReplaceAllString(message, ellipsis)
}
