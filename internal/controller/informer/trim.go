// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
)

// Trim removes the fields of pods that this program does not read, before the pods enter the cache: its method Pod is the transform of
// a cache. Most pods of a cluster belong to other controllers. Of these it keeps the name, the owner and the labels. Pods of one
// revision share the equal parts of their specs, even before they have a node, because thousands may wait for one.
type Trim struct {
	// Whole is true if pods of other controllers stay pods, because the cache is read by lists, which need objects of one type.
	// Otherwise only their metadata is kept, which takes a fifth of the memory.
	Whole bool

	mu sync.Mutex
	// known holds the spec of the first pod of each revision.
	known map[revisionOf]*seenSpec
	// foreign holds the metadata that the pods of another controller share, by the UID of the controller.
	foreign map[types.UID]foreignPods
	// labels holds the labels of the last pod without a controller.
	labels map[string]string
	// buffer is for encoded specs that are compared.
	buffer []byte
}

// foreignPods is the metadata that the pods of another controller share: the controller as their only owner, and their labels.
type foreignPods struct {
	owners []metav1.OwnerReference
	labels map[string]string
}

type revisionOf struct {
	owner    types.UID
	revision string
}

// seenSpec is the spec that pods of one revision share. It is also kept encoded, because encoded specs are compared several times as
// fast.
type seenSpec struct {
	common, volumes               corev1.PodSpec
	encodedCommon, encodedVolumes []byte
	owners                        []metav1.OwnerReference
	labels                        map[string]string
}

// maxKnown is the maximum number of specs, and of owners, that are kept to be shared. Only those that outlive their pods take memory
// of their own.
const maxKnown = 5_000

// Pod trims a pod. It changes the pod that it is given.
func (t *Trim) Pod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // the tombstone of a deleted pod
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case owner == nil:
		return t.orphan(pod), nil
	case !isSet(owner):
		return t.foreignPod(pod, owner), nil
	default:
		trim(pod)
		t.share(pod, owner.UID)
		return pod, nil
	}
}

// foreignPod returns the name, the owner and the labels of a pod of another controller. Owner and labels are shared by all pods of the
// controller.
func (t *Trim) foreignPod(pod *corev1.Pod, owner *metav1.OwnerReference) client.Object {
	shared := t.shared(owner, pod.Labels)
	bare := bareOf(pod)
	bare.OwnerReferences, bare.Labels = shared.owners, shared.labels
	if t.Whole {
		return &corev1.Pod{ObjectMeta: bare}
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: bare}
}

// bareOf returns the metadata that is kept of every pod.
func bareOf(pod *corev1.Pod) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: pod.Name, Namespace: unique.Make(pod.Namespace).Value(), UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, Generation: pod.Generation, DeletionTimestamp: pod.DeletionTimestamp,
	}
}

// shared returns the metadata that the pods of a controller share. It removes the labels that differ from pod to pod.
func (t *Trim) shared(controller *metav1.OwnerReference, labels map[string]string) foreignPods {
	for _, key := range []string{
		v1beta1.PodNameLabel, v1beta1.PodIndexLabel, v1beta1.InstanceIDLabel, "apps.kruise.io/cloneset-instance-id",
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion, // copied from nodes since Kubernetes 1.35
	} {
		delete(labels, key)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	shared, known := t.foreign[controller.UID]
	if known && reflect.DeepEqual(&shared.owners[0], controller) && maps.Equal(shared.labels, labels) {
		return shared
	}
	if t.foreign == nil || len(t.foreign) >= maxKnown {
		t.foreign = map[types.UID]foreignPods{}
	}
	shared = foreignPods{owners: []metav1.OwnerReference{*controller}, labels: labels}
	t.foreign[controller.UID] = shared
	return shared
}

// orphan returns a pod without a controller with the fields that adoption reads. The other fields come with the event of the adoption.
func (t *Trim) orphan(pod *corev1.Pod) *corev1.Pod {
	bare := &corev1.Pod{ObjectMeta: bareOf(pod)}
	bare.OwnerReferences = pod.OwnerReferences
	bare.Labels = t.labeled(pod.Labels)
	bare.Status.Phase = unique.Make(pod.Status.Phase).Value()
	return bare
}

// labeled returns labels for a pod without a controller: the map of the previous pod, if it is equal. Many such pods usually come
// from one source, one after the other, and a map for each would take a sixth of their memory.
func (t *Trim) labeled(labels map[string]string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !maps.Equal(t.labels, labels) {
		t.labels = labels
	}
	return t.labels
}

// trim removes the fields of a pod of a set that no decision reads. The spec stays whole, because adopted pods are compared with the
// template by it.
func trim(pod *corev1.Pod) {
	pod.ManagedFields = nil
	status := pod.Status
	pod.Status = corev1.PodStatus{
		ObservedGeneration:    status.ObservedGeneration,
		Phase:                 status.Phase,
		Conditions:            slices.DeleteFunc(status.Conditions, saysNothing),
		Message:               status.Message,
		Reason:                status.Reason,
		InitContainerStatuses: status.InitContainerStatuses,
		ContainerStatuses:     status.ContainerStatuses,
	}
	if _, ready := podstate.ReadySince(pod); !ready { // the controller reads the time only of a pod that is not ready
		pod.Status.StartTime = status.StartTime
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			c := &containers[i]
			c.AllocatedResources, c.AllocatedResourcesStatus, c.VolumeMounts, c.User, c.StopSignal = nil, nil, nil, nil, nil
		}
	}
}

// saysNothing reports whether no decision depends on a condition, because other conditions imply it.
func saysNothing(c corev1.PodCondition) bool {
	return c.Type == corev1.PodInitialized || c.Type == corev1.PodReadyToStartContainers
}

// followsFromReady reports whether a condition of a ready pod follows from its condition Ready.
func followsFromReady(c corev1.PodCondition) bool {
	return (c.Type == corev1.PodScheduled || c.Type == corev1.ContainersReady) && c.Status == corev1.ConditionTrue
}

// share replaces the spec of a pod by that of the first pod of its revision, or its parts where only parts are equal.
func (t *Trim) share(pod *corev1.Pod, owner types.UID) {
	podstate.PlainToken(&pod.Spec)
	common, volumes := split(&pod.Spec)
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.seen(revisionOf{owner: owner, revision: pod.Labels[v1beta1.RevisionLabel]}, pod, &common, &volumes)
	share(&pod.OwnerReferences, known.owners)
	shareLabels(pod.Labels, known.labels)
	if t.equal(&common, known.encodedCommon) {
		nodeName, hostname := pod.Spec.NodeName, pod.Spec.Hostname
		pod.Spec = known.common
		pod.Spec.NodeName, pod.Spec.Hostname, pod.Spec.Volumes = nodeName, hostname, volumes.Volumes
	} else {
		shareSpec(&pod.Spec, &known.common)
	}
	if t.equal(&volumes, known.encodedVolumes) {
		pod.Spec.Volumes = known.volumes.Volumes
	} else {
		shareVolumes(volumes.Volumes, known.volumes.Volumes)
	}
	shareStatus(pod.Spec.Containers, pod.Status.ContainerStatuses)
	if _, ready := podstate.ReadySince(pod); ready {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, followsFromReady)
	}
	pod.Status.Conditions = slices.Clone(pod.Status.Conditions) // decoding allocates up to twice the length
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		c.Type, c.Status = unique.Make(c.Type).Value(), unique.Make(c.Status).Value()
	}
}

// split splits a spec into the part that pods of a revision should share, and the volumes, which may differ from pod to pod.
func split(spec *corev1.PodSpec) (common, volumes corev1.PodSpec) {
	common = *spec
	common.NodeName, common.Hostname, common.Volumes = "", "", nil
	return common, corev1.PodSpec{Volumes: spec.Volumes}
}

// seen returns the spec of the first pod of a revision. If there is none, it keeps that of this pod.
func (t *Trim) seen(key revisionOf, pod *corev1.Pod, common, volumes *corev1.PodSpec) *seenSpec {
	known, ok := t.known[key]
	if !ok {
		if t.known == nil || len(t.known) >= maxKnown {
			t.known = map[revisionOf]*seenSpec{}
		}
		known = &seenSpec{common: *common.DeepCopy(), volumes: *volumes.DeepCopy(), labels: maps.Clone(pod.Labels)}
		known.owners = slices.Clone(pod.OwnerReferences)
		known.encodedCommon = slices.Clone(t.encode(&known.common))
		known.encodedVolumes = slices.Clone(t.encode(&known.volumes))
		t.known[key] = known
	}
	return known
}

func (t *Trim) equal(spec *corev1.PodSpec, encoded []byte) bool {
	return encoded != nil && bytes.Equal(t.encode(spec), encoded)
}

// encode encodes a spec into the buffer; nil if it cannot be.
func (t *Trim) encode(spec *corev1.PodSpec) []byte {
	size := spec.Size()
	t.buffer = slices.Grow(t.buffer[:0], size)[:size]
	if _, err := spec.MarshalToSizedBuffer(t.buffer); err != nil {
		return nil
	}
	return t.buffer
}

// shareLabels replaces the strings of labels by equal known ones. Each pod keeps its own map, because one label names the pod.
func shareLabels(labels, known map[string]string) {
	for key, value := range known {
		if labels[key] == value {
			labels[key] = value
		}
	}
}

func shareSpec(spec, known *corev1.PodSpec) {
	share(&spec.Tolerations, known.Tolerations)
	share(&spec.SecurityContext, known.SecurityContext)
	share(&spec.Affinity, known.Affinity)
	share(&spec.NodeSelector, known.NodeSelector)
	share(&spec.TopologySpreadConstraints, known.TopologySpreadConstraints)
	shareContainers(spec.InitContainers, known.InitContainers)
	shareContainers(spec.Containers, known.Containers)
}

func shareVolumes(volumes, known []corev1.Volume) {
	for i := range min(len(volumes), len(known)) {
		share(&volumes[i].VolumeSource, known[i].VolumeSource)
	}
}

func shareContainers(containers, known []corev1.Container) {
	for i := range min(len(containers), len(known)) {
		c, k := &containers[i], &known[i]
		share(&c.Image, k.Image)
		share(&c.Command, k.Command)
		share(&c.Args, k.Args)
		share(&c.Env, k.Env)
		share(&c.EnvFrom, k.EnvFrom)
		share(&c.Ports, k.Ports)
		share(&c.Resources, k.Resources)
		share(&c.LivenessProbe, k.LivenessProbe)
		share(&c.ReadinessProbe, k.ReadinessProbe)
		share(&c.StartupProbe, k.StartupProbe)
		share(&c.SecurityContext, k.SecurityContext)
	}
}

// shareStatus replaces the fields of container statuses by equal fields of the specs.
func shareStatus(containers []corev1.Container, statuses []corev1.ContainerStatus) {
	for i := range min(len(containers), len(statuses)) {
		c, s := &containers[i], &statuses[i]
		share(&s.Name, c.Name)
		share(&s.Image, c.Image)
		s.ImageID = unique.Make(s.ImageID).Value()
		if s.Resources != nil && reflect.DeepEqual(s.Resources, &c.Resources) {
			s.Resources = &c.Resources
		} else if s.Resources != nil {
			share(&s.Resources.Requests, c.Resources.Requests)
			share(&s.Resources.Limits, c.Resources.Limits)
		}
	}
}

// share replaces a value by a known one if both are equal.
func share[T any](mine *T, known T) {
	if reflect.DeepEqual(*mine, known) {
		*mine = known
	}
}
