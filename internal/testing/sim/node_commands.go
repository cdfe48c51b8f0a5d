// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
)

// nodeCommands returns the commands about what nodes, autoscalers and injectors do to pods.
func nodeCommands() []command {
	return []command{
		{"crash", 2, crash},
		// Kubelets do not report for a while: "busy 5s". After that they report all changes at once.
		forTime("busy", "keep kubelets busy for", func(w *World, d time.Duration) { w.kubelets.busy = w.Now().Add(d) }),
		{"resize", 2, resizePods},
		{"defer", 1, noteEach("leave no room for a resize of", kubelet.DeferResizeAnnotation, "true")},
		{"room", 1, editEach("make room for a resize of", func(p *corev1.Pod) { delete(p.Annotations, kubelet.DeferResizeAnnotation) })},
		{"inject", 0, inject},
		{"note", 1, editEach("annotate", func(p *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, foreignKey, "kept")
			p.Labels[foreignKey] = "kept"
		})},
	}
}

// foreignKey is the key of a label and an annotation that no template has.
const foreignKey = "example.com/foreign"

// crash lets the containers of a pod end by themselves. The kubelet starts them again at once, from the spec that it
// knows, and reports that after a while: "crash a 5s".
func crash(_ context.Context, w *World, args []string) error {
	d, err := time.ParseDuration(args[1])
	if pod := w.podNamed(args[0]); pod != nil && err == nil {
		if t := w.kubelets.find(pod.UID); t != nil && !t.lost {
			w.note("crash the containers of " + args[0])
			t.memory = t.memory.Crash(pod, w.Now().Add(d))
			t.due, t.at = true, w.Now()
		}
	}
	return err
}

// resizePods gives pods more or less cpu, as an autoscaler does: "resize 300m a b".
func resizePods(ctx context.Context, w *World, args []string) error {
	cpu, err := resource.ParseQuantity(args[0])
	if err != nil {
		return err
	}
	return eachPod("resize to "+args[0], func(w *World, pod *corev1.Pod) error {
		resized := apiserver.Clone(pod)
		resized.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu}
		_, err := w.Store.Update(apiserver.Write{Actor: userActor, Subresource: "resize"}, resized)
		return err
	})(ctx, w, args[1:])
}

// inject adds a container that reads the annotation team to every new pod.
func inject(_ context.Context, w *World, _ []string) error {
	w.note("inject a sidecar into new pods")
	w.Store.Admission = append(w.Store.Admission, func(verb apiserver.Verb, obj client.Object) error {
		pod, isPod := obj.(*corev1.Pod)
		if !isPod || verb != apiserver.Create {
			return nil
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:v1", Env: []corev1.EnvVar{{
			Name:      "TEAM",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['team']"}},
		}}})
		return nil
	})
	return nil
}
