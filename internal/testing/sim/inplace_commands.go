// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// inPlaceCommands returns the commands about updates in place.
func inPlaceCommands() []command {
	return []command{
		specWord("policy", func(s *v1beta1.RollSetSpec, v string) {
			s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.PodUpdatePolicy(v)
		}),
		specNumber("grace", func(s *v1beta1.RollSetSpec, n int32) {
			s.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: n}
		}),
		specWord("annotate", func(s *v1beta1.RollSetSpec, v string) {
			key, value, _ := strings.Cut(v, "=")
			metav1.SetMetaDataAnnotation(&s.Template.ObjectMeta, key, value)
		}),
		// A change of the request for memory restarts the container.
		specWord("memory", func(s *v1beta1.RollSetSpec, v string) {
			c := &s.Template.Spec.Containers[0]
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(v)}
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
		}),
		{"open-gate", 1, eachPod("open the gate of", turnGate(corev1.ConditionTrue))},
		{"close-gate", 1, eachPod("close the gate of", turnGate(corev1.ConditionFalse))},
		{"node-cpu", 1, limitNode},
		{"refuse-cpu", 1, refuseResizes},
		{"tamper", 1, eachPod("tamper with the state of", tamperPod)},
	}
}

// limitNode sets the CPU that a node has for one pod.
func limitNode(_ context.Context, w *World, args []string) error {
	quantity, err := resource.ParseQuantity(args[0])
	w.note("node-cpu " + args[0])
	w.kubelets.model.Allocatable = corev1.ResourceList{corev1.ResourceCPU: quantity}
	return err
}

// refuseResizes lets the API server refuse to resize a running pod beyond an amount of CPU, as it does when it knows
// the node.
func refuseResizes(_ context.Context, w *World, args []string) error {
	limit, err := resource.ParseQuantity(args[0])
	w.note("refuse-cpu " + args[0])
	w.Store.Admission = []apiserver.Admission{func(verb apiserver.Verb, obj client.Object) error {
		pod, isPod := obj.(*corev1.Pod)
		if !isPod || verb == apiserver.Create {
			return nil
		}
		cpu := pod.Spec.Containers[0].Resources.Requests.Cpu()
		before := apiserver.MustBe[*corev1.Pod](w.Store.Get(apiserver.KeyOf(pod))).Spec.Containers[0].Resources.Requests.Cpu()
		if cpu.Cmp(*before) == 0 || cpu.Cmp(limit) <= 0 {
			return nil
		}
		return fmt.Errorf("node didn't have enough allocatable resources: cpu, requested: %d, allocatable: %d", cpu.MilliValue(), limit.MilliValue())
	}}
	return err
}

// turnGate returns a command that writes the condition of a pod's readiness gate as the controller does, although only
// the controller should.
func turnGate(status corev1.ConditionStatus) func(*World, *corev1.Pod) error {
	reason := "OutOfService"
	if status == corev1.ConditionTrue {
		reason = "InService"
	}
	return func(w *World, pod *corev1.Pod) error {
		reported := apiserver.Clone(pod)
		apiserver.SetPodCondition(&reported.Status, corev1.PodCondition{
			Type: v1beta1.InPlaceUpdateReady, Status: status, Reason: reason, LastTransitionTime: w.Store.Stamp(),
		})
		_, err := w.Store.Update(apiserver.Write{Actor: userActor, Subresource: "status"}, reported)
		return err
	}
}

// tamperPod writes the annotation of an unfinished update in place to another revision.
func tamperPod(w *World, pod *corev1.Pod) error {
	state := inplace.State{Revision: "evil", Generation: pod.Generation, Containers: map[string]inplace.Container{}}
	for _, c := range pod.Status.ContainerStatuses {
		state.Containers[c.Name] = inplace.Container{ID: c.ContainerID}
	}
	value, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return edit(w, pod, func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, inplace.StateAnnotation, string(value))
	})
}
