// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// Kind is a kind of object that the store keeps.
type Kind string

// The kinds that are modeled. Events are accepted and forgotten; every other kind panics.
const (
	RollSets       Kind = "RollSet"
	Pods           Kind = "Pod"
	Claims         Kind = "PersistentVolumeClaim"
	Revisions      Kind = "ControllerRevision"
	StorageClasses Kind = "StorageClass"
	Nodes          Kind = "Node"
	Budgets        Kind = "PodDisruptionBudget"
)

// Kinds returns every kind in a fixed order, so that nothing depends on the order of a map.
func Kinds() []Kind { return []Kind{RollSets, Revisions, Claims, Pods, StorageClasses, Nodes, Budgets} }

// NewScheme returns a scheme of the modeled kinds.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, kind := range Kinds() {
		version := "v1"
		if kind == RollSets {
			version = v1beta1.GroupVersion.Version
		}
		scheme.AddKnownTypes(schema.GroupVersion{Group: GroupResource(kind).Group, Version: version}, New(kind))
	}
	return scheme
}

// Key names one object.
type Key struct {
	Kind            Kind
	Namespace, Name string
}

// String returns the form of the film strip.
func (k Key) String() string { return string(k.Kind) + " " + k.Namespace + "/" + k.Name }

// KeyOf returns the key of an object.
func KeyOf(obj client.Object) Key {
	return Key{Kind: kindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Unmodeled ends the test: a simulation that guesses proves nothing.
func Unmodeled(format string, args ...any) {
	panic("sim: not modeled: " + fmt.Sprintf(format, args...)) //nolint:forbidigo // a test is to stop here, loudly
}

func kindOf(obj runtime.Object) Kind {
	switch obj.(type) {
	case *v1beta1.RollSet, *v1beta1.RollSetList:
		return RollSets
	case *corev1.Pod, *corev1.PodList:
		return Pods
	case *corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList:
		return Claims
	case *appsv1.ControllerRevision, *appsv1.ControllerRevisionList:
		return Revisions
	case *storagev1.StorageClass, *storagev1.StorageClassList:
		return StorageClasses
	case *corev1.Node, *corev1.NodeList:
		return Nodes
	case *policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList:
		return Budgets
	default:
		Unmodeled("objects of type %T", obj)
		return ""
	}
}

// New returns an empty object of a kind.
func New(kind Kind) client.Object {
	switch kind {
	case RollSets:
		return &v1beta1.RollSet{}
	case Pods:
		return &corev1.Pod{}
	case Claims:
		return &corev1.PersistentVolumeClaim{}
	case Revisions:
		return &appsv1.ControllerRevision{}
	case Nodes:
		return &corev1.Node{}
	case Budgets:
		return &policyv1.PodDisruptionBudget{}
	default:
		return &storagev1.StorageClass{}
	}
}

// GroupResource returns the name that the API server's errors give to a kind.
func GroupResource(kind Kind) schema.GroupResource {
	switch kind {
	case RollSets:
		return schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "rollsets"}
	case Pods:
		return schema.GroupResource{Resource: "pods"}
	case Claims:
		return schema.GroupResource{Resource: "persistentvolumeclaims"}
	case Revisions:
		return schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}
	case Nodes:
		return schema.GroupResource{Resource: "nodes"}
	case Budgets:
		return schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets"}
	default:
		return schema.GroupResource{Group: storagev1.GroupName, Resource: "storageclasses"}
	}
}

// groupKind returns the kind with its group, as validation errors name it.
func groupKind(kind Kind) schema.GroupKind {
	return schema.GroupKind{Group: GroupResource(kind).Group, Kind: string(kind)}
}

// kindFor returns the kind with a group, or an empty one if it is not modeled.
func kindFor(gk schema.GroupKind) Kind {
	for _, kind := range Kinds() {
		if groupKind(kind) == gk {
			return kind
		}
	}
	return ""
}

// assign sets *dst to *src, sharing its parts. Callers pass a copy that they own.
func assign(dst, src client.Object) {
	switch d := dst.(type) {
	case *v1beta1.RollSet:
		*d = *MustBe[*v1beta1.RollSet](src)
	case *corev1.Pod:
		*d = *MustBe[*corev1.Pod](src)
	case *corev1.PersistentVolumeClaim:
		*d = *MustBe[*corev1.PersistentVolumeClaim](src)
	case *appsv1.ControllerRevision:
		*d = *MustBe[*appsv1.ControllerRevision](src)
	case *storagev1.StorageClass:
		*d = *MustBe[*storagev1.StorageClass](src)
	case *corev1.Node:
		*d = *MustBe[*corev1.Node](src)
	case *policyv1.PodDisruptionBudget:
		*d = *MustBe[*policyv1.PodDisruptionBudget](src)
	default:
		Unmodeled("objects of type %T", dst)
	}
}

// fill puts objects into a list of their kind.
func fill(list client.ObjectList, objs []client.Object) {
	switch l := list.(type) {
	case *v1beta1.RollSetList:
		l.Items = items[v1beta1.RollSet](objs)
	case *corev1.PodList:
		l.Items = items[corev1.Pod](objs)
	case *corev1.PersistentVolumeClaimList:
		l.Items = items[corev1.PersistentVolumeClaim](objs)
	case *appsv1.ControllerRevisionList:
		l.Items = items[appsv1.ControllerRevision](objs)
	case *storagev1.StorageClassList:
		l.Items = items[storagev1.StorageClass](objs)
	case *corev1.NodeList:
		l.Items = items[corev1.Node](objs)
	case *policyv1.PodDisruptionBudgetList:
		l.Items = items[policyv1.PodDisruptionBudget](objs)
	default:
		Unmodeled("lists of type %T", list)
	}
}

func items[T any, P interface {
	*T
	client.Object
}](objs []client.Object) []T {
	out := make([]T, 0, len(objs))
	for _, o := range objs {
		out = append(out, *MustBe[P](o))
	}
	return out
}

// MustBe returns the object as the type that its kind has.
func MustBe[T client.Object](obj client.Object) T {
	typed, ok := obj.(T)
	if !ok {
		Unmodeled("a %T where a %T belongs", obj, typed)
	}
	return typed
}

// Clone returns a deep copy that keeps its type.
func Clone[T client.Object](obj T) T {
	c, ok := obj.DeepCopyObject().(T)
	if !ok {
		Unmodeled("the copy of a %T", obj)
	}
	return c
}
