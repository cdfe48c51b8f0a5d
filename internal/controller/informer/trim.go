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

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/podstate"
)

// Trim takes out of pods what this program does not read, before they come into the cache: its Pod is the transform of a cache. Of
// the pods of others, which are most of what a cluster has, little more is left than whose they are. Pods of one revision have in
// common what is equal in their specs. That matters most while they start, because thousands may wait for a node.
type Trim struct {
	// Whole reports that strangers stay pods, because the cache is read by lists, which want all objects to be of one type.
	// Otherwise their metadata is kept, in a fifth of the memory.
	Whole bool

	mu sync.Mutex
	// known are the specs of the pods that were seen first.
	known map[revisionOf]*seenSpec
	// kin are what strangers have in common, by the UIDs of their controllers.
	kin map[types.UID]kin
	// labels are those of the orphan that was seen last.
	labels map[string]string
	// buffer is for specs that are compared.
	buffer []byte
}

// kin is what the pods of a controller have in common, who is none of ours: the controller, as their only owner, and their
// labels.
type kin struct {
	owners []metav1.OwnerReference
	labels map[string]string
}

type revisionOf struct {
	owner    types.UID
	revision string
}

// seenSpec is what a pod has in common with others of its revision, and its spec also in the form of the API, which is compared
// several times as fast.
type seenSpec struct {
	common, volumes               corev1.PodSpec
	encodedCommon, encodedVolumes []byte
	owners                        []metav1.OwnerReference
	labels                        map[string]string
}

// maxKnown is how many specs, and how many owners, are kept to be shared. They are a part of pods, and only what outlives
// these takes memory.
const maxKnown = 5_000

// Pod trims a pod. It changes the pod that it is given.
func (t *Trim) Pod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // what is known of a pod that is gone
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case owner == nil:
		return t.orphanOf(pod), nil
	case !isSet(owner):
		return t.strangerOf(pod, owner), nil
	default:
		trim(pod)
		t.share(pod, owner.UID)
		return pod, nil
	}
}

// strangerOf keeps of a pod that another object controls only its name, its owner and its labels. What it has in common with its
// siblings is kept once.
func (t *Trim) strangerOf(pod *corev1.Pod, owner *metav1.OwnerReference) client.Object {
	shared := t.kinOf(owner, pod.Labels)
	bare := bareOf(pod)
	bare.OwnerReferences, bare.Labels = shared.owners, shared.labels
	if t.Whole {
		return &corev1.Pod{ObjectMeta: bare}
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: bare}
}

// bareOf is the metadata that is kept of any pod.
func bareOf(pod *corev1.Pod) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: pod.Name, Namespace: unique.Make(pod.Namespace).Value(), UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, Generation: pod.Generation, DeletionTimestamp: pod.DeletionTimestamp,
	}
}

// kinOf is what a pod of a controller has in common with its siblings. The labels that tell them apart are left out.
func (t *Trim) kinOf(controller *metav1.OwnerReference, labels map[string]string) kin {
	for _, key := range []string{
		v1alpha1.PodNameLabel, v1alpha1.PodIndexLabel, v1alpha1.InstanceIDLabel, "apps.kruise.io/cloneset-instance-id",
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion, // copied from nodes since Kubernetes 1.35
	} {
		delete(labels, key)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	shared, known := t.kin[controller.UID]
	if known && reflect.DeepEqual(&shared.owners[0], controller) && maps.Equal(shared.labels, labels) {
		return shared
	}
	if t.kin == nil || len(t.kin) >= maxKnown {
		t.kin = map[types.UID]kin{}
	}
	shared = kin{owners: []metav1.OwnerReference{*controller}, labels: labels}
	t.kin[controller.UID] = shared
	return shared
}

// orphanOf keeps of a pod without a controller also what a set judges it by before an adoption. The rest comes with the event of
// the adoption.
func (t *Trim) orphanOf(pod *corev1.Pod) *corev1.Pod {
	bare := &corev1.Pod{ObjectMeta: bareOf(pod)}
	bare.OwnerReferences = pod.OwnerReferences
	bare.Labels = t.labeled(pod.Labels)
	bare.Status.Phase = unique.Make(pod.Status.Phase).Value()
	return bare
}

// labeled are the labels of an orphan. Where there are many they come from one hand, and in turn: a map for each would be a
// sixth of what is kept.
func (t *Trim) labeled(labels map[string]string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !maps.Equal(t.labels, labels) {
		t.labels = labels
	}
	return t.labels
}

// trim takes out of a pod of a set what says nothing about whether it is where it should be. The spec stays: pods that were
// adopted are recognized by it.
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
	if _, ready := podstate.ReadySince(pod); !ready { // whether it ever was ready, and how long it served, is asked of no other
		pod.Status.StartTime = status.StartTime
	}
	for _, containers := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range containers {
			c := &containers[i]
			c.AllocatedResources, c.AllocatedResourcesStatus, c.VolumeMounts, c.User, c.StopSignal = nil, nil, nil, nil, nil
		}
	}
}

// saysNothing reports whether nothing depends on a condition: what it says, others say as well.
func saysNothing(c corev1.PodCondition) bool {
	return c.Type == corev1.PodInitialized || c.Type == corev1.PodReadyToStartContainers
}

// followsFromReady reports whether a condition of a ready pod says nothing more than Ready does.
func followsFromReady(c corev1.PodCondition) bool {
	return (c.Type == corev1.PodScheduled || c.Type == corev1.ContainersReady) && c.Status == corev1.ConditionTrue
}

// share lets a pod have its spec in common with the first pod of its revision that was seen, or the parts that are equal.
func (t *Trim) share(pod *corev1.Pod, owner types.UID) {
	podstate.PlainToken(&pod.Spec)
	common, volumes := split(&pod.Spec)
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.seen(revisionOf{owner: owner, revision: pod.Labels[v1alpha1.RevisionLabel]}, pod, &common, &volumes)
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
	pod.Status.Conditions = slices.Clone(pod.Status.Conditions) // decoding leaves room for up to as many again
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		c.Type, c.Status = unique.Make(c.Type).Value(), unique.Make(c.Status).Value()
	}
}

// split separates a spec into the part that pods of a revision should share, and the volumes. Some volumes may be each pod's
// own.
func split(spec *corev1.PodSpec) (common, volumes corev1.PodSpec) {
	common = *spec
	common.NodeName, common.Hostname, common.Volumes = "", "", nil
	return common, corev1.PodSpec{Volumes: spec.Volumes}
}

// seen is what was seen first of the pods of a revision.
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

// shareLabels lets labels have their texts in common with known ones. Each pod has a map of its own, because one label names it.
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

// shareStatus lets statuses of containers have in common with their specs what came true.
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

// share replaces a value by an equal one.
func share[T any](mine *T, known T) {
	if reflect.DeepEqual(*mine, known) {
		*mine = known
	}
}
