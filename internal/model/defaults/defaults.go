// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package defaults knows what the API server fills into a pod, so that two templates can be compared by what they mean.
//
// The rule: a field that a template leaves out means the same as that field with its default. These are the defaults of the API
// itself, which are the same in every cluster, and the service account "default". What depends on the cluster is not a default:
// what webhooks, limit ranges and priority classes add, the tolerations for nodes that do not answer, and the requests that the API
// server sums up for a whole pod. A template that spells such a value out is another template, because the value of the cluster may
// change and that of the template may not.
//
// The defaults follow SetObjectDefaults_Pod in k8s.io/kubernetes/pkg/apis/core/v1 v1.37.2 (Copyright 2015 The Kubernetes
// Authors, Apache-2.0). The tests in internal/testing/sim/fidelity compare them with those of a real API server.
package defaults

import (
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Same reports whether two templates give the same pods: they are equal once their defaults are filled in.
func Same(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Finalizers, b.Finalizers) && SameSpec(&a.Spec, &b.Spec)
}

// SameSpec reports the same of the specs of two templates.
func SameSpec(a, b *corev1.PodSpec) bool {
	return equality.Semantic.DeepEqual(a, b) || equality.Semantic.DeepEqual(Filled(a), Filled(b))
}

// Filled returns a copy of a spec with its defaults.
func Filled(spec *corev1.PodSpec) *corev1.PodSpec {
	filled := spec.DeepCopy()
	Fill(filled)
	return filled
}

// Fill sets the defaults of a spec.
func Fill(spec *corev1.PodSpec) {
	fillPod(spec)
	for i := range spec.Volumes {
		fillVolume(&spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			fillContainer(&containers[i])
			if spec.HostNetwork {
				fillHostPorts(containers[i].Ports)
			}
		}
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
}

// fillPod sets the defaults of the fields that concern the whole pod.
func fillPod(spec *corev1.PodSpec) {
	orValue(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	orValue(&spec.ServiceAccountName, "default")
	spec.DeprecatedServiceAccount = spec.ServiceAccountName // two names of one field
	orValue(&spec.DNSPolicy, corev1.DNSClusterFirst)
	orValue(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	orValue(&spec.SchedulerName, corev1.DefaultSchedulerName)
	orNew(&spec.SecurityContext, corev1.PodSecurityContext{})
	orNew(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	orNew(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if *spec.TerminationGracePeriodSeconds < 0 {
		*spec.TerminationGracePeriodSeconds = 1
	}
}

// fillHostPorts sets the ports of the node. In the network of the node, each port of a container is one of the node, too.
func fillHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		orValue(&ports[i].HostPort, ports[i].ContainerPort)
	}
}

// fillContainer sets the defaults of a container.
func fillContainer(c *corev1.Container) {
	orValue(&c.ImagePullPolicy, PullPolicy(c.Image))
	orValue(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	orValue(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		orValue(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			fillFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				orNew(&from.FileKeyRef.Optional, false)
			}
		}
	}
	fillResources(&c.Resources)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		fillProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				fillHTTPGet(handler.HTTPGet)
			}
		}
	}
}

// fillResources makes limits requests where there are none. The API server keeps quantities in thousandths.
func fillResources(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, requested := r.Requests[name]; requested {
			continue
		}
		if r.Requests == nil {
			r.Requests = make(corev1.ResourceList, len(r.Limits))
		}
		r.Requests[name] = limit.DeepCopy()
	}
	roundUp(r.Limits)
	roundUp(r.Requests)
}

func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

func fillProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	orValue(&probe.TimeoutSeconds, 1)
	orValue(&probe.PeriodSeconds, 10)
	orValue(&probe.SuccessThreshold, 1)
	orValue(&probe.FailureThreshold, 3)
	fillHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		orNew(&probe.GRPC.Service, "")
	}
}

func fillHTTPGet(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	orValue(&get.Path, "/")
	orValue(&get.Scheme, corev1.URISchemeHTTP)
	if get.Protocol != nil && *get.Protocol == corev1.HTTPProtocolHTTP1 {
		get.Protocol = nil // most API servers do not know the field; one that does fills it in for the kubelet
	}
}

func fillFieldRef(field *corev1.ObjectFieldSelector) {
	if field != nil {
		orValue(&field.APIVersion, "v1")
	}
}

// PullPolicy returns the policy that the API server gives to a container without one: Always for the tag latest, which is also the
// tag of an image that has neither tag nor digest.
func PullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil { // the API server does not mind
		return corev1.PullIfNotPresent
	}
	tagged, hasTag := named.(reference.Tagged)
	if hasTag && tagged.Tag() == "latest" || !hasTag && !strings.Contains(named.String(), "@") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// orValue sets a field that is not set.
func orValue[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

// orNew sets a pointer that is nil.
func orNew[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
