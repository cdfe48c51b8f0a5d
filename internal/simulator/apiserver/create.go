// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
)

// ClaimProtection is the finalizer that admission puts on every claim.
const ClaimProtection = "kubernetes.io/pvc-protection"

// Create stores a new object and returns it as the API server does.
func (s *Store) Create(w Write, obj client.Object) (client.Object, error) {
	w.Verb, w.Key = Create, KeyOf(obj)
	obj = Clone(obj)
	if obj.GetName() == "" || obj.GetGenerateName() != "" {
		Unmodeled("generateName, or no name: %s", w)
	}
	if s.terminating[w.Key.Namespace] {
		return nil, namespaceTerminating(w.Key)
	}
	admitter{s}.prepare(obj)
	if err := (admitter{s}).admit(&w, obj); err != nil {
		return nil, err
	}
	if errs := validate(obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(groupKind(w.Key.Kind), w.Key.Name, errs)
	}
	if err := (admitter{s}).checkQuota(obj); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" && !w.DryRun { // only the database checks it
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{ // the answer of the real one
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "resourceVersion should not be set on objects to be created",
		}}
	}
	if s.objects[w.Key] != nil {
		return nil, apierrors.NewAlreadyExists(GroupResource(w.Key.Kind), w.Key.Name)
	}
	if w.DryRun {
		return obj, nil
	}
	s.commit(w, nil, obj)
	return obj, nil
}

// admitter judges and completes objects before they are written.
type admitter struct{ *Store }

// admit asks all admission policies about an object. None of them is about the status of pods, or about where they run.
func (s admitter) admit(w *Write, obj client.Object) error {
	if len(s.Admission) == 0 || w.Key.Kind != RollSets && (w.Subresource == "status" || w.Subresource == "binding") {
		return nil
	}
	sent := Clone(obj)
	for _, admission := range s.Admission {
		if err := admission(w.Verb, obj); err != nil {
			return apierrors.NewForbidden(GroupResource(kindOf(obj)), obj.GetName(), err)
		}
	}
	if !maps.Equal(sent.GetLabels(), obj.GetLabels()) || len(sent.GetOwnerReferences()) != len(obj.GetOwnerReferences()) || w.Key.Kind == RollSets && !apiequality.Semantic.DeepEqual(sent, obj) {
		w.Sent = sent
		s.rewritten++
	}
	return nil
}

// prepare sets what the API server sets on a new object, and what it takes away. Kinds whose generations it does not
// count keep the generation that a client sends.
func (s admitter) prepare(obj client.Object) {
	obj.SetUID(s.newUID())
	obj.SetCreationTimestamp(s.Stamp())
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetManagedFields(nil)
	switch o := obj.(type) {
	case *v1beta1.RollSet:
		o.Generation = 1
		o.Status = v1beta1.RollSetStatus{ObservedGeneration: -1}
		defaultRollSet(&o.Spec)
	case *corev1.Pod:
		o.Generation = 1
		defaults.Fill(&o.Spec)
		o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qualityOf(&o.Spec)}
	case *policyv1.PodDisruptionBudget:
		o.Generation = 1
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		orNew(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		o.Finalizers = append(o.Finalizers, ClaimProtection)
	}
}

// qualityOf returns the QoS class of a pod. A container's missing request equals its limit.
func qualityOf(spec *corev1.PodSpec) corev1.PodQOSClass {
	class, guaranteed := corev1.PodQOSBestEffort, len(spec.Containers) > 0
	for i := range spec.Containers {
		r := &spec.Containers[i].Resources
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, limited := r.Limits[name]
			request, requested := r.Requests[name]
			guaranteed = guaranteed && limited && !limit.IsZero() && (!requested || request.Cmp(limit) == 0)
			if limited && !limit.IsZero() || requested && !request.IsZero() {
				class = corev1.PodQOSBurstable
			}
		}
	}
	if guaranteed {
		return corev1.PodQOSGuaranteed
	}
	return class
}

// checkQuota counts the pods of the namespace that have not ended, and what they request, as a quota does: with a pod that is
// created, or that is as it is to become.
func (s admitter) checkQuota(obj client.Object) error {
	created, ok := obj.(*corev1.Pod)
	if !ok || s.MaxPods < 0 && s.MaxCPU == nil {
		return nil
	}
	pods, cpu, more := 0, resource.Quantity{}, requestedCPU(created)
	if before, ok := s.objects[KeyOf(created)].(*corev1.Pod); ok {
		if more.Sub(requestedCPU(before)); more.Sign() <= 0 {
			return nil
		}
	}
	for key, other := range s.objects {
		if pod, ok := other.(*corev1.Pod); ok && key.Namespace == obj.GetNamespace() && !HasEnded(pod) {
			pods++
			cpu.Add(requestedCPU(pod))
		}
	}
	if s.MaxPods >= 0 && pods >= s.MaxPods && s.objects[KeyOf(created)] == nil {
		return overQuota(created, "pods", "1", strconv.Itoa(pods), strconv.Itoa(s.MaxPods))
	}
	if sum := cpu.DeepCopy(); s.MaxCPU != nil {
		if sum.Add(more); sum.Cmp(*s.MaxCPU) > 0 {
			return overQuota(created, "requests.cpu", more.String(), cpu.String(), s.MaxCPU.String())
		}
	}
	return nil
}

func requestedCPU(pod *corev1.Pod) resource.Quantity {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().DeepCopy()
}

// overQuota returns the refusal of the ResourceQuota admission.
func overQuota(pod *corev1.Pod, what, requested, used, limited string) error {
	return apierrors.NewForbidden(GroupResource(Pods), pod.Name, fmt.Errorf(
		"exceeded quota: quota, requested: %[1]s=%[2]s, used: %[1]s=%[3]s, limited: %[1]s=%[4]s", what, requested, used, limited))
}

// HasEnded reports whether a pod has failed or succeeded, so that nothing runs in it.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// ClaimsOf returns the claims that a pod mounts.
func ClaimsOf(pod *corev1.Pod) []Key {
	var keys []Key
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil {
			keys = append(keys, Key{Kind: Claims, Namespace: pod.Namespace, Name: source.ClaimName})
		}
	}
	return keys
}

// namespaceTerminating returns the refusal of the NamespaceLifecycle admission.
func namespaceTerminating(key Key) error {
	err := apierrors.NewForbidden(GroupResource(key.Kind), key.Name, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", key.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", key.Namespace),
		Field:   "metadata.namespace",
	})
	return err
}

// validate checks only those parts of an object that tests get wrong on purpose.
func validate(obj client.Object) field.ErrorList {
	switch o := obj.(type) {
	case *corev1.Pod:
		return validatePod(&o.Spec)
	case *policyv1.PodDisruptionBudget:
		if o.Spec.MinAvailable != nil && o.Spec.MaxUnavailable != nil {
			return field.ErrorList{field.Invalid(field.NewPath("spec"), o.Spec, "minAvailable and maxUnavailable cannot be both set")}
		}
	case *appsv1.ControllerRevision:
		if o.Revision < 0 {
			return field.ErrorList{field.Invalid(field.NewPath("revision"), o.Revision, "must be greater than or equal to 0")}
		}
	}
	return nil
}

func validatePod(spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "containers")
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.Name == "" {
			errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
		}
		if c.Image == "" {
			errs = append(errs, field.Required(path.Index(i).Child("image"), ""))
		}
	}
	return errs
}
