// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/hack/bench/minimal"
)

const (
	// setLabel is on the pods of every set.
	setLabel = minimal.SetLabel
	// noteAnnotation is in every template. noopAnnotation is put on pods, and has no effect.
	noteAnnotation = "bench.example.com/note"
	noopAnnotation = "bench.example.com/noop"
	// disruption is how many pods of a set may be unavailable during an update.
	disruption = 10 // percent
)

// wish is the request for a set of any kind.
type wish struct {
	name     types.NamespacedName
	replicas int
	image    string
	note     string
	inPlace  bool
	// sidecar gives the pods a second container, and the fields that pods usually have.
	sidecar bool
}

func (w wish) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: w.name.Name, Namespace: w.name.Namespace}
}

func (w wish) labels() map[string]string { return map[string]string{setLabel: w.name.Name} }

func (w wish) selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: w.labels()} }

func (w wish) maxUnavailable() *intstr.IntOrString {
	return new(intstr.FromString(strconv.Itoa(disruption) + "%"))
}

func (w wish) template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: w.labels(), Annotations: map[string]string{noteAnnotation: w.note}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: w.image,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi"),
			}},
		}}},
	}
	if w.sidecar {
		large(&t)
	}
	return t
}

// large adds the fields to a template that pods usually have.
func large(t *corev1.PodTemplateSpec) {
	app := &t.Spec.Containers[0]
	app.Env = []corev1.EnvVar{
		{Name: "LOG_LEVEL", Value: "info"},
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
	}
	app.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http")},
	}}
	app.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/alive", Port: intstr.FromString("http")},
	}}
	app.VolumeMounts = []corev1.VolumeMount{{Name: "cache", MountPath: "/cache"}}
	t.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	sidecar := app.DeepCopy()
	sidecar.Name, sidecar.Ports[0].Name, sidecar.Ports[0].ContainerPort = "sidecar", "admin", 9090
	sidecar.LivenessProbe, sidecar.ReadinessProbe = nil, nil
	t.Spec.Containers = append(t.Spec.Containers, *sidecar)
}

func (w wish) configMap() (client.Object, error) { return w.minimal(false) }

// waitingConfigMap returns a set whose client patches a pod in place only once its node has reported that it is not ready.
func (w wish) waitingConfigMap() (client.Object, error) { return w.minimal(true) }

// minimal returns a set of the minimal client.
func (w wish) minimal(waits bool) (client.Object, error) {
	template := w.template()
	revision := strings.ReplaceAll(w.image, ":", "-") + "-" + w.note
	template.Labels[minimal.RevisionLabel] = revision
	if w.inPlace {
		template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: minimal.Gate}}
	}
	return minimal.ConfigMap(w.name.Name, w.name.Namespace, &minimal.Spec{
		Replicas: w.replicas, MaxUnavailable: w.replicas * disruption / 100, Revision: revision, Template: template, InPlace: w.inPlace,
		Waits: waits,
	})
}

func (w wish) replicaSet() (client.Object, error) {
	return &appsv1.ReplicaSet{
		ObjectMeta: w.meta(),
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(w.replicas)), Selector: w.selector(), Template: w.template()},
	}, nil
}

func (w wish) deployment() (client.Object, error) {
	return &appsv1.Deployment{
		ObjectMeta: w.meta(),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(w.replicas)), Selector: w.selector(), Template: w.template(),
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: w.maxUnavailable(), MaxSurge: new(intstr.FromInt32(0))},
			},
		},
	}, nil
}

func (w wish) statefulSet() (client.Object, error) {
	return &appsv1.StatefulSet{
		ObjectMeta: w.meta(),
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(w.replicas)), Selector: w.selector(), Template: w.template(),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: w.maxUnavailable()},
			},
		},
	}, nil
}

func (w wish) rollSet() (client.Object, error) { return w.newRollSet(), nil }

func (w wish) ordinalRollSet() (client.Object, error) {
	set := w.newRollSet()
	set.Spec.PodIdentity, set.Spec.PodManagementPolicy = v1beta1.OrdinalIdentity, v1beta1.ParallelPodManagement
	return set, nil
}

func (w wish) newRollSet() *v1beta1.RollSet {
	set := &v1beta1.RollSet{
		ObjectMeta: w.meta(),
		Spec: v1beta1.RollSetSpec{
			Replicas: new(int32(w.replicas)), Selector: w.selector(), Template: w.template(),
			UpdateStrategy: v1beta1.UpdateStrategy{RollingUpdate: v1beta1.RollingUpdate{MaxUnavailable: w.maxUnavailable()}},
		},
	}
	if w.inPlace {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePod
	}
	return set
}
