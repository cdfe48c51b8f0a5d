// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
)

// never is when the containers of a broken pod become ready.
const never = 100 * 365 * 24 * time.Hour

// Times are how long pods of a set take to start and to stop.
type Times struct {
	// Start is the time from the creation of a pod until its containers run, Ready the time from then until it is ready.
	Start, Ready time.Duration
	// Stop is the time from a pod's deletion until it is gone.
	Stop time.Duration
	// Pods is how many pods Start and Ready were measured on; zero if they are assumed.
	Pods int
}

// These are the times that are assumed if nothing could be measured.
const (
	assumedStart = 2 * time.Second
	assumedReady = 3 * time.Second
	assumedStop  = 2 * time.Second
	// lately is how many of the newest pods are measured.
	lately = 20
)

// measure returns how long recent pods took: the median of the newest ones that have run undisturbed since they were
// created.
func measure(pods []*corev1.Pod, spec *corev1.PodSpec) Times {
	times := Times{Start: assumedStart, Ready: assumedReady, Stop: assumedStop}
	if grace := spec.TerminationGracePeriodSeconds; grace != nil {
		times.Stop = min(times.Stop, time.Duration(*grace)*time.Second)
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !undisturbed(pod) })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	pods = pods[:min(len(pods), lately)]
	if len(pods) == 0 {
		return times
	}
	var starts, readies []time.Duration
	for _, pod := range pods {
		ready, _ := podstate.ReadySince(pod)
		running := runningSince(pod)
		starts = append(starts, max(0, running.Sub(pod.CreationTimestamp.Time)))
		readies = append(readies, max(0, ready.Sub(running)))
	}
	times.Start, times.Ready, times.Pods = median(starts), median(readies), len(pods)
	return times
}

// undisturbed reports whether a pod became ready once, and nothing happened to it since.
func undisturbed(pod *corev1.Pod) bool {
	since, ready := podstate.ReadySince(pod)
	if !ready || pod.DeletionTimestamp != nil || pod.Annotations[inplace.StateAnnotation] != "" || since.Before(pod.CreationTimestamp.Time) {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.RestartCount > 0 || c.State.Running == nil
	})
}

// runningSince returns when the last container of a pod was started.
func runningSince(pod *corev1.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	for i := range pod.Status.ContainerStatuses {
		if running := pod.Status.ContainerStatuses[i].State.Running; running != nil && running.StartedAt.After(last) {
			last = running.StartedAt.Time
		}
	}
	return last
}

func median(values []time.Duration) time.Duration {
	slices.Sort(values)
	return values[len(values)/2]
}

// podKubelet is the kubelet of pods in a real cluster: the model, with the times that these pods take. It assumes that new
// images work, unless pods of the revision show otherwise.
type podKubelet struct {
	model kubelet.Model
	// broken are the revisions whose pods never become ready. well are the pods that were ready before, with their
	// generation then.
	broken map[string]bool
	well   map[types.UID]int64
	// stuck are the pods that stay as they are until another client changes them, with the generation that is stuck.
	stuck map[types.UID]int64
	// images maps the names that the model is given to names of images.
	images map[string]string
}

var _ kubelet.Stepper = (*podKubelet)(nil)

// newPodKubelet returns the kubelets of a cluster with the given pods. The pods of the revision bad never become ready.
func newPodKubelet(pods []*corev1.Pod, times Times, bad string, now time.Time) *podKubelet {
	k := &podKubelet{
		model:  kubelet.Model{StartDelay: times.Start, ReadyDelay: times.Ready, TermDelay: times.Stop},
		broken: map[string]bool{},
		well:   map[types.UID]int64{},
		stuck:  map[types.UID]int64{},
		images: map[string]string{},
	}
	working := map[string]bool{}
	patience := max(time.Minute, 3*(times.Start+times.Ready))
	for _, pod := range pods {
		revision := pod.Labels[v1beta1.RevisionLabel]
		switch _, ready := podstate.ReadySince(pod); {
		case ready:
			working[revision] = true
			k.well[pod.UID] = pod.Generation
		case isStuck(pod, patience, now):
			k.stuck[pod.UID] = pod.Generation
			k.broken[revision] = true
		}
	}
	maps.DeleteFunc(k.broken, func(revision string, _ bool) bool { return working[revision] })
	if bad != "" {
		k.broken[bad] = true
	}
	return k
}

// isStuck reports whether a pod has a node and does not become ready by itself.
func isStuck(pod *corev1.Pod, patience time.Duration, now time.Time) bool {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || apiserver.HasEnded(pod) || inplace.GateOf(pod).Closed() {
		return false
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if w := statuses[i].State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return true
			}
		}
	}
	return now.Sub(runningSince(pod)) > patience
}

// Step implements kubelet.Stepper.
func (k *podKubelet) Step(pod *corev1.Pod, memory kubelet.Memory, now time.Time) kubelet.Outcome {
	if generation, ok := k.stuck[pod.UID]; ok && pod.DeletionTimestamp == nil && pod.Generation == generation {
		return kubelet.Outcome{Memory: memory}
	}
	model := k.model
	if !isProbed(pod) { // then it is ready as soon as it runs
		model.StartDelay += model.ReadyDelay
	}
	generation, wasReady := k.well[pod.UID]
	broken := k.broken[pod.Labels[v1beta1.RevisionLabel]] && (!wasReady || pod.Generation != generation)
	if broken {
		model.ReadyDelay = never
	}
	out := model.Step(k.forModel(pod, broken), memory, now)
	if out.Status != nil {
		k.restore(out.Status.InitContainerStatuses)
		k.restore(out.Status.ContainerStatuses)
	}
	return out
}

func isProbed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.ReadinessProbe != nil || c.StartupProbe != nil })
}

// forModel returns a pod as it is shown to the model: with meaningless names of images, with foreign readiness gates open, and,
// if it is broken, with a probe that its containers must pass.
func (k *podKubelet) forModel(pod *corev1.Pod, broken bool) *corev1.Pod {
	shown := *pod
	shown.Spec.InitContainers = k.containers(pod.Spec.InitContainers, broken)
	shown.Spec.Containers = k.containers(pod.Spec.Containers, broken)
	shown.Status.InitContainerStatuses = k.statuses(pod, pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	shown.Status.ContainerStatuses = k.statuses(pod, pod.Spec.Containers, pod.Status.ContainerStatuses)
	for _, gate := range pod.Spec.ReadinessGates {
		if gate.ConditionType != v1beta1.InPlaceUpdateReady && podstate.Condition(&shown, gate.ConditionType) == nil {
			shown.Status.Conditions = append(slices.Clone(shown.Status.Conditions), corev1.PodCondition{Type: gate.ConditionType, Status: corev1.ConditionTrue})
		}
	}
	return &shown
}

func (k *podKubelet) containers(containers []corev1.Container, broken bool) []corev1.Container {
	shown := slices.Clone(containers)
	for i := range shown {
		shown[i].Image = k.alias(shown[i].Image)
		if broken {
			shown[i].ReadinessProbe = &corev1.Probe{}
		}
	}
	return shown
}

// statuses returns statuses of containers with aliases of images. A container that runs the image of its spec may report it
// under another name. One that a model started, on simulated nodes, has an ID that contains the name it was started from.
func (k *podKubelet) statuses(pod *corev1.Pod, containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	shown := slices.Clone(statuses)
	for i := range shown {
		own := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == shown[i].Name })
		if own >= 0 && kubelet.StartedFrom(pod, &shown[i], containers[own].Image) {
			shown[i].ContainerID = foreign(shown[i].ContainerID)
		}
		if own >= 0 && sameImage(containers[own].Image, shown[i].Image) {
			shown[i].Image = containers[own].Image
		}
		shown[i].Image = k.alias(shown[i].Image)
	}
	return shown
}

// sameImage reports whether two names refer to one image. One of them is as a runtime reports it.
func sameImage(a, b string) bool {
	left, err := reference.ParseDockerRef(a)
	if err != nil {
		return a == b
	}
	right, err := reference.ParseDockerRef(b)
	return err == nil && left.String() == right.String()
}

func (k *podKubelet) restore(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		statuses[i].ContainerID = strings.TrimPrefix(statuses[i].ContainerID, foreignPrefix)
		if ended := statuses[i].LastTerminationState.Terminated; ended != nil {
			ended.ContainerID = strings.TrimPrefix(ended.ContainerID, foreignPrefix)
		}
		if name, ok := k.images[statuses[i].Image]; ok {
			statuses[i].Image = name
		}
	}
}

// foreignPrefix precedes the ID of a container that the model is to judge by its image.
const foreignPrefix = "foreign-"

func foreign(id string) string {
	if id == "" {
		return ""
	}
	return foreignPrefix + id
}

// aliasPrefix precedes the digits that stand for an image.
const aliasPrefix = "docker.io/library/image:"

// alias returns the name that the model is given for an image: digits that mean nothing to it.
func (k *podKubelet) alias(image string) string {
	if image == "" || strings.HasPrefix(image, aliasPrefix) {
		return image
	}
	sum := sha256.Sum256([]byte(image))
	alias := aliasPrefix + hex.EncodeToString(sum[:8])
	k.images[alias] = image
	return alias
}

// schedulerOf refuses pods of revisions without any scheduled pod, and the very pods that wait for a node.
func schedulerOf(pods []*corev1.Pod) func(*corev1.Pod) string {
	refused, bound := map[string]string{}, map[string]bool{}
	waiting := map[types.UID]string{}
	for _, pod := range pods {
		revision := pod.Labels[v1beta1.RevisionLabel]
		switch {
		case pod.Spec.NodeName != "":
			bound[revision] = true
		case isUnschedulable(pod):
			waiting[pod.UID] = podstate.Condition(pod, corev1.PodScheduled).Message
			refused[revision] = waiting[pod.UID]
		}
	}
	return func(pod *corev1.Pod) string {
		if why, ok := waiting[pod.UID]; ok {
			return why
		}
		if revision := pod.Labels[v1beta1.RevisionLabel]; !bound[revision] {
			return refused[revision]
		}
		return ""
	}
}
