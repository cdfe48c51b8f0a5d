// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// verdict is the answer of kubectl about a set at one moment.
type verdict struct {
	// done says that the wait for the rollout would end: kubectl rollout status, and kubectl wait --for=condition=Ready.
	done bool
	// available is the status of the condition that kubectl wait --for=condition=Available waits for; empty if the kind has none.
	available string
	// observed says that the status is about the newest spec.
	observed bool
}

func (v verdict) String() string {
	words := "rolling"
	if v.done {
		words = "done"
	}
	if v.available == string(metav1.ConditionFalse) {
		words += ", not available"
	}
	return words
}

// judge asks kubectl's own code about a built-in kind, and the conditions of a RollSet.
func judge(object client.Object) verdict {
	switch o := object.(type) {
	case *v1beta1.RollSet:
		v := verdict{available: string(metav1.ConditionUnknown), observed: o.Status.ObservedGeneration == o.Generation}
		for _, c := range o.Status.Conditions {
			switch {
			case c.ObservedGeneration != o.Generation:
			case c.Type == v1beta1.ConditionReady:
				v.done = c.Status == metav1.ConditionTrue && v.observed
			case c.Type == v1beta1.ConditionAvailable:
				v.available = string(c.Status)
			}
		}
		return v
	case *appsv1.Deployment:
		v := verdict{
			done: rolledOut(o, &polymorphichelpers.DeploymentStatusViewer{}), available: string(metav1.ConditionUnknown),
			observed: o.Status.ObservedGeneration == o.Generation,
		}
		for _, c := range o.Status.Conditions {
			if c.Type == appsv1.DeploymentAvailable && o.Status.ObservedGeneration == o.Generation {
				v.available = string(c.Status)
			}
		}
		return v
	case *appsv1.StatefulSet:
		return verdict{
			done: rolledOut(o, &polymorphichelpers.StatefulSetStatusViewer{}), observed: o.Status.ObservedGeneration == o.Generation,
		}
	}
	return verdict{}
}

// rolledOut asks what kubectl rollout status asks. An error is no success.
func rolledOut(object client.Object, viewer polymorphichelpers.StatusViewer) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return false
	}
	_, done, err := viewer.Status(&unstructured.Unstructured{Object: content}, 0)
	return done && err == nil
}
