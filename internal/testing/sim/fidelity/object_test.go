// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity_test

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

func percent(v string) *intstr.IntOrString { return new(intstr.FromString(v)) }

func emptyObject(kind string) client.Object {
	switch kind {
	case pods:
		return &corev1.Pod{}
	case claims:
		return &corev1.PersistentVolumeClaim{}
	case revisions:
		return &appsv1.ControllerRevision{}
	default:
		return &v1beta1.RollSet{}
	}
}

// newObject returns a valid object of a kind.
func newObject(kind, name string) client.Object {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}
	labels := map[string]string{"app": "web"}
	obj := emptyObject(kind)
	switch obj := obj.(type) {
	case *corev1.Pod:
		obj.Spec, obj.Labels = spec, labels
		obj.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	case *corev1.PersistentVolumeClaim:
		obj.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		obj.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	case *appsv1.ControllerRevision:
		obj.Revision, obj.Data = 1, runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}
	case *v1beta1.RollSet:
		obj.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		obj.Spec.Template.Labels, obj.Spec.Template.Spec = labels, spec
	}
	obj.SetName(name)
	obj.SetNamespace(namespace)
	return obj
}

func configMap() client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace}}
}

func copyInto(dst, src client.Object) error {
	text, err := json.Marshal(src)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, dst)
}

// normalize takes away what differs from one run to the next, and what admission plug-ins add that the store does not
// have: tolerations and priority of pods, and what only other programs read.
func normalize(obj client.Object) {
	obj.SetUID("")
	obj.SetResourceVersion("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetManagedFields(nil)
	if obj.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(&metav1.Time{})
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		obj.TypeMeta = metav1.TypeMeta{}
		obj.Spec.Tolerations = slices.DeleteFunc(obj.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		})
		if len(obj.Spec.Tolerations) == 0 {
			obj.Spec.Tolerations = nil
		}
		obj.Spec.Priority, obj.Spec.PreemptionPolicy = nil, nil
		if obj.Spec.ServiceAccountName == "" { // the plug-in that fills it in is off
			obj.Spec.ServiceAccountName, obj.Spec.DeprecatedServiceAccount = "default", "default"
		}
		for i := range obj.Status.Conditions {
			obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	case *corev1.PersistentVolumeClaim:
		obj.TypeMeta = metav1.TypeMeta{}
	case *appsv1.ControllerRevision:
		obj.TypeMeta = metav1.TypeMeta{}
	case *v1beta1.RollSet:
		obj.TypeMeta = metav1.TypeMeta{}
	}
}
