// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
)

const (
	// nodePods is how many pods a node gets.
	nodePods = 30
	// instant is the longest time that a kubelet is waited for. The model has delays of a nanosecond for what is instant.
	instant = time.Microsecond
	// tokenExpiry and tolerated are what a real API server writes into pods, in seconds.
	tokenExpiry, tolerated = 3607, 300
	accountPath            = "/var/run/secrets/kubernetes.io/serviceaccount"
	clientActor            = "client"
	kubeletActor           = "kubelet"
)

// tend binds a pod, and lets its kubelet do everything that it does at once.
func (s *Server) tend(key apiserver.Key) error {
	pod, ok := s.store.Get(key).(*corev1.Pod)
	if !ok {
		return nil
	}
	if pod.Spec.NodeName == "" {
		bound := apiserver.Clone(pod)
		bound.Spec.NodeName = "node-" + strconv.Itoa(s.bound/nodePods)
		s.bound++
		if _, err := s.store.Update(apiserver.Write{Actor: "scheduler", Subresource: "binding"}, bound); err != nil {
			return err
		}
		pod = bound
	}
	model := kubelet.Model{}
	memory, _, _ := kubelet.Resume(model, pod, time.Now())
	for {
		pod, ok := s.store.Get(key).(*corev1.Pod)
		if !ok {
			return nil
		}
		outcome := model.Step(pod, memory, time.Now())
		memory = outcome.Memory
		var err error
		switch {
		case outcome.Status != nil:
			reported := apiserver.Clone(pod)
			reported.Status = *outcome.Status
			_, err = s.store.Update(apiserver.Write{Actor: kubeletActor, Subresource: "status"}, reported)
		case outcome.Remove:
			return s.store.Delete(apiserver.Write{
				Actor: kubeletActor, Key: key, DeleteOptions: client.DeleteOptions{GracePeriodSeconds: new(int64(0))},
			})
		case outcome.Next == 0 || outcome.Next > instant:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// admission returns what adds the token of the service account and the usual tolerations to new pods. They are a large part of
// what a pod takes.
func admission() apiserver.Admission {
	serial := 0
	return func(verb apiserver.Verb, object client.Object) error {
		pod, ok := object.(*corev1.Pod)
		if !ok || verb != apiserver.Create {
			return nil
		}
		serial++
		admit(&pod.Spec, fmt.Sprintf("kube-api-access-%05s", strconv.FormatInt(int64(serial), 36)))
		return nil
	}
}

func admit(spec *corev1.PodSpec, token string) {
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "default", "default"
	spec.PreemptionPolicy, spec.Priority = new(corev1.PreemptLowerPriority), new(int32(0))
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: token, ReadOnly: true, MountPath: accountPath})
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(tokenExpiry)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}})
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(tolerated)),
		})
	}
}
