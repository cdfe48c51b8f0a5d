// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// Update replaces an object, or its part that a subresource stands for.
func (s *Store) Update(w Write, obj client.Object) (client.Object, error) {
	w.Verb, w.Key = Update, KeyOf(obj)
	old, err := s.find(w.Key)
	if err != nil {
		return nil, err
	}
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, conflict(w.Key, "Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID())
	}
	return s.replace(w, old, Clone(obj))
}

// replace stores obj in place of old if the API server's checks pass. It takes ownership of obj.
func (s *Store) replace(w Write, old, obj client.Object) (client.Object, error) {
	if obj.GetResourceVersion() == "" && w.Key.Kind == RollSets {
		return nil, apierrors.NewInvalid(groupKind(w.Key.Kind), w.Key.Name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	if rv := obj.GetResourceVersion(); rv != "" && rv != old.GetResourceVersion() {
		return nil, conflict(w.Key, "the object has been modified; please apply your changes to the latest version and try again")
	}
	obj.SetResourceVersion(old.GetResourceVersion())
	// The metadata in a patch of a custom resource's status is ignored.
	ignored := w.Key.Kind == RollSets && w.Subresource == "status"
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() && !ignored {
		return nil, apierrors.NewInvalid(groupKind(w.Key.Kind), w.Key.Name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "uid"), uid, "field is immutable")})
	}
	if err := (admitter{s}).admit(&w, obj); err != nil {
		return nil, err
	}
	keepServerSide(old, obj)
	isolate(w, old, obj) // policies change no more than the client may
	admitter{s}.bound(w, obj)
	truncateTimes(obj)
	setGeneration(w, old, obj)
	if err := (admitter{s}).mayGrow(w, old, obj); err != nil {
		return nil, err
	}
	if w.Subresource == "resize" {
		if err := (admitter{s}).checkQuota(obj); err != nil {
			return nil, err
		}
	}
	if errs := slices.Concat(validateChange(w, old, obj), validate(obj)); len(errs) > 0 {
		return nil, apierrors.NewInvalid(groupKind(w.Key.Kind), w.Key.Name, errs)
	}
	switch {
	case w.DryRun:
	case apiequality.Semantic.DeepEqual(old, obj): // like the real one, write nothing when nothing changes
		return old, nil
	case isReleased(obj):
		s.commit(w, old, nil)
	default:
		s.commit(w, old, obj)
	}
	return obj, nil
}

// mayGrow does what the admission plugin PersistentVolumeClaimResize does: a claim grows only if its class lets claims grow.
func (s admitter) mayGrow(w Write, old, obj client.Object) error {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.Resources.Requests.Storage().Cmp(*MustBe[*corev1.PersistentVolumeClaim](old).Spec.Resources.Requests.Storage()) <= 0 {
		return nil
	}
	name, says := claim.Annotations[corev1.BetaStorageClassAnnotation]
	if inSpec := claim.Spec.StorageClassName; !says && inSpec != nil {
		name, says = *inSpec, true
	}
	if says {
		class, ok := s.objects[Key{Kind: StorageClasses, Name: name}].(*storagev1.StorageClass)
		if ok && class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion {
			return nil
		}
	}
	return apierrors.NewForbidden(GroupResource(Claims), w.Key.Name, errors.New(
		"only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
}

func conflict(key Key, format string, args ...any) error {
	return apierrors.NewConflict(GroupResource(key.Kind), key.Name, fmt.Errorf(format, args...))
}

// bound records in the status of a pod that a binding gives it a node.
func (s admitter) bound(w Write, obj client.Object) {
	if pod, ok := obj.(*corev1.Pod); ok && w.Subresource == "binding" {
		SetPodCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: s.Stamp()})
	}
}

// keepServerSide restores the metadata that no client may set.
func keepServerSide(old, obj client.Object) {
	obj.SetUID(old.GetUID())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	obj.SetGeneration(old.GetGeneration())
	obj.SetManagedFields(nil)
}

// isolate undoes every change outside the addressed resource or subresource. Specs are shared with the old object,
// because stored objects never change.
func isolate(w Write, old, obj client.Object) {
	switch o := obj.(type) {
	case *v1beta1.RollSet:
		isolateRollSet(w, MustBe[*v1beta1.RollSet](old), o)
	case *corev1.Pod:
		isolatePod(w, MustBe[*corev1.Pod](old), o)
	case *corev1.PersistentVolumeClaim:
		isolateClaim(w, MustBe[*corev1.PersistentVolumeClaim](old), o)
	default:
		if w.Subresource != "" {
			Unmodeled("subresource of %s", w)
		}
	}
}

func isolateRollSet(w Write, old, set *v1beta1.RollSet) {
	switch w.Subresource {
	case "":
		set.Status = *old.Status.DeepCopy()
		defaultRollSet(&set.Spec)
	case "status":
		status := set.Status
		*set = *old
		set.ObjectMeta, set.Status = *old.ObjectMeta.DeepCopy(), status
	default:
		Unmodeled("subresource of %s", w)
	}
}

func isolatePod(w Write, old, pod *corev1.Pod) {
	switch w.Subresource {
	case "":
		pod.Status = *old.Status.DeepCopy()
	case "status":
		pod.Spec = old.Spec
		pod.OwnerReferences = old.OwnerReferences
	case "binding":
		node, labels := pod.Spec.NodeName, pod.Labels
		*pod = *old.DeepCopy()
		pod.Spec.NodeName = node
		maps.Copy(labels, pod.Labels)
		pod.Labels = labels // since Kubernetes 1.35 a binding brings labels of the node along
	case "resize":
		resized := pod.Spec
		*pod = *old.DeepCopy()
		for i := range pod.Spec.Containers {
			for j := range resized.Containers {
				if pod.Spec.Containers[i].Name == resized.Containers[j].Name {
					pod.Spec.Containers[i].Resources = resized.Containers[j].Resources
				}
			}
		}
		if len(resized.Containers) != len(pod.Spec.Containers) {
			pod.Spec.Containers = resized.Containers // validation refuses it
		}
	default:
		Unmodeled("subresource of %s", w)
	}
}

func isolateClaim(w Write, old, claim *corev1.PersistentVolumeClaim) {
	switch w.Subresource {
	case "":
		claim.Status = *old.Status.DeepCopy()
	case "status":
		claim.Spec = old.Spec
	default:
		Unmodeled("subresource of %s", w)
	}
}

// setGeneration increments the generation when the spec changes. Other kinds have no generation.
func setGeneration(w Write, old, obj client.Object) {
	changed := false
	if w.Subresource == "status" || w.Subresource == "binding" {
		return // the server stores a binding without counting it
	}
	switch o := obj.(type) {
	case *v1beta1.RollSet:
		changed = !apiequality.Semantic.DeepEqual(o.Spec, MustBe[*v1beta1.RollSet](old).Spec)
	case *corev1.Pod:
		changed = !apiequality.Semantic.DeepEqual(o.Spec, MustBe[*corev1.Pod](old).Spec)
	case *policyv1.PodDisruptionBudget:
		changed = !apiequality.Semantic.DeepEqual(o.Spec, MustBe[*policyv1.PodDisruptionBudget](old).Spec)
	}
	if changed {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// isReleased reports whether an object that is being deleted can be removed: it has no finalizer and no grace period
// left.
func isReleased(obj client.Object) bool {
	if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return false
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// validateChange refuses changes of immutable fields.
func validateChange(w Write, old, obj client.Object) field.ErrorList {
	if w.Subresource == "status" {
		return nil // isolate has undone everything else
	}
	switch o := obj.(type) {
	case *v1beta1.RollSet:
		was := MustBe[*v1beta1.RollSet](old)
		return slices.Concat(
			immutable(field.NewPath("spec", "selector"), was.Spec.Selector, o.Spec.Selector),
			immutable(field.NewPath("spec", "podIdentity"), was.Spec.PodIdentity, o.Spec.PodIdentity),
			immutable(field.NewPath("spec", "serviceName"), was.Spec.ServiceName, o.Spec.ServiceName))
	case *appsv1.ControllerRevision:
		return immutable(field.NewPath("data"), MustBe[*appsv1.ControllerRevision](old).Data, o.Data)
	case *corev1.Pod:
		return validatePodChange(w, MustBe[*corev1.Pod](old), o)
	case *corev1.PersistentVolumeClaim:
		return validateClaimChange(MustBe[*corev1.PersistentVolumeClaim](old), o)
	}
	return nil
}

// validateClaimChange refuses a change of a claim's spec except, once it is bound, of its size and its volume attributes class. A
// volume does not shrink, and a class that was applied is not taken off.
func validateClaimChange(old, claim *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	was, is := old.Spec.DeepCopy(), claim.Spec.DeepCopy()
	size := is.Resources.Requests.Storage()
	if size.Cmp(*was.Resources.Requests.Storage()) < 0 && size.Cmp(*old.Status.Capacity.Storage()) <= 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	if class := is.VolumeAttributesClassName; old.Status.CurrentVolumeAttributesClassName != nil && was.VolumeAttributesClassName != nil && (class == nil || *class == "") {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "volumeAttributesClassName"), "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"))
	}
	if old.Status.Phase == corev1.ClaimBound {
		was.Resources.Requests, is.Resources.Requests = nil, nil
		was.VolumeAttributesClassName, is.VolumeAttributesClassName = nil, nil
	}
	if was.VolumeName == "" {
		was.VolumeName = is.VolumeName
	}
	return append(errs, immutable(field.NewPath("spec"), was, is)...)
}

func immutable(path *field.Path, old, obj any) field.ErrorList {
	if apiequality.Semantic.DeepEqual(old, obj) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, obj, "field is immutable")}
}

// validatePodChange refuses a change of a pod's spec except of images, tolerations, scheduling gates and the deadline.
// Its subresources change resources and, once, the node.
func validatePodChange(w Write, old, pod *corev1.Pod) field.ErrorList {
	if apiequality.Semantic.DeepEqual(old.Spec, pod.Spec) {
		return nil
	}
	if w.Subresource == "resize" && len(old.Spec.Containers) != len(pod.Spec.Containers) {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "containers"), "containers may not be added or removed on resize")}
	}
	was, is := old.Spec.DeepCopy(), pod.Spec.DeepCopy()
	for _, spec := range []*corev1.PodSpec{was, is} {
		for i := range spec.Containers {
			spec.Containers[i].Image = ""
			if w.Subresource == "resize" {
				spec.Containers[i].Resources = corev1.ResourceRequirements{}
			}
		}
		for i := range spec.InitContainers {
			spec.InitContainers[i].Image = ""
		}
		spec.Tolerations, spec.SchedulingGates, spec.ActiveDeadlineSeconds = nil, nil, nil
	}
	if w.Subresource == "binding" && was.NodeName == "" {
		was.NodeName = is.NodeName
	}
	if apiequality.Semantic.DeepEqual(was, is) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than "+
		"`spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` "+
		"(only additions to existing tolerations), `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")}
}
