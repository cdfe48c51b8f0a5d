// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ClaimClass is the storage class of claims that are bound at once and can grow. It is the default class.
	ClaimClass = "sim"
	// FixedClaimClass is the same without expansion: the API server refuses to let its claims grow.
	FixedClaimClass = "sim-fixed"

	// FullClaimClass lets claims ask for more storage, and the driver has none.
	FullClaimClass = "sim-full"
	// InfeasibleAttributes is the volume attributes class that the storage driver refuses.
	InfeasibleAttributes = "infeasible"
	// UnknownAttributes is the one that the driver does not answer to. It carries out all others.
	UnknownAttributes = "unknown"

	provisioner    = "sim.example.com"
	bindCompleted  = "pv.kubernetes.io/bind-completed"
	provisionedBy  = "pv.kubernetes.io/provisioned-by"
	defaultClassOf = "storageclass.kubernetes.io/is-default-class"
)

// claimQueue does what a storage provisioner and a resizer do, without storage: volumes appear, are bound to their
// claims, grow when the claims ask for it and go when the claims are gone. Deletion of claims and the protection of
// those in use stay with the controller manager.
type claimQueue struct {
	fleet *Fleet
	queue workqueue.TypedRateLimitingInterface[podKey]
}

func (q *claimQueue) start(ctx context.Context, factory informers.SharedInformerFactory) error {
	if err := q.makeClasses(ctx); err != nil {
		return err
	}
	q.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[podKey](retryDelay/10, 10*retryDelay))
	look := func(object any) {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			q.queue.Add(podKey{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
	_, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, object any) { look(object) },
		DeleteFunc: func(object any) { q.release(ctx, object) },
	})
	if err != nil {
		return fmt.Errorf("watch claims: %w", err)
	}
	for range workers / 4 {
		q.fleet.running.Go(func() { q.work(ctx) })
	}
	q.fleet.running.Go(func() {
		<-ctx.Done()
		q.queue.ShutDown()
	})
	return nil
}

func claimClasses() []string { return []string{ClaimClass, FixedClaimClass, FullClaimClass} }

func (q *claimQueue) makeClasses(ctx context.Context) error {
	for _, name := range claimClasses() {
		class := &storagev1.StorageClass{
			ObjectMeta:           metav1.ObjectMeta{Name: name},
			Provisioner:          provisioner,
			AllowVolumeExpansion: new(name != FixedClaimClass),
		}
		if name == ClaimClass {
			class.Annotations = map[string]string{defaultClassOf: "true"}
		}
		_, err := q.fleet.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create storage class %s: %w", name, err)
		}
	}
	return nil
}

func (q *claimQueue) work(ctx context.Context) {
	for {
		key, shutdown := q.queue.Get()
		if shutdown {
			return
		}
		if err := q.look(ctx, key); err != nil {
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				q.fleet.log.Error(err, "claim not updated", "claim", key)
			}
			q.queue.AddRateLimited(key)
		} else {
			q.queue.Forget(key)
		}
		q.queue.Done(key)
	}
}

// look brings one claim a step further.
func (q *claimQueue) look(ctx context.Context, key podKey) error {
	claim, err := q.fleet.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", key, err)
	}
	if class := claim.Spec.StorageClassName; class == nil || !slices.Contains(claimClasses(), *class) {
		return nil
	}
	if claim.Status.Phase == corev1.ClaimBound {
		if err := q.grow(ctx, claim); err != nil {
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(q.report(ctx, claim))
	}
	if claim.DeletionTimestamp != nil {
		return nil
	}
	return client.IgnoreNotFound(q.provide(ctx, claim))
}

// volumeName returns the name of a claim's volume, as provisioners choose it.
func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// provide makes a volume and binds it. Every step may have been done before, here or by the controller manager.
func (q *claimQueue) provide(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	core := q.fleet.client.CoreV1()
	_, err := core.PersistentVolumes().Create(ctx, volumeFor(claim), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	bound := claim.DeepCopy()
	bound.Spec.VolumeName = volumeName(claim)
	metav1.SetMetaDataAnnotation(&bound.ObjectMeta, bindCompleted, "yes")
	if bound, err = core.PersistentVolumeClaims(claim.Namespace).Update(ctx, bound, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("bind claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	bound.Status.Phase = corev1.ClaimBound
	bound.Status.AccessModes = claim.Spec.AccessModes
	bound.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage()}
	if _, err = core.PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, bound, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report claim %s/%s as bound: %w", claim.Namespace, claim.Name, err)
	}
	patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, corev1.VolumeBound)
	if _, err = core.PersistentVolumes().Patch(ctx, volumeName(claim), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("report volume %s as bound: %w", volumeName(claim), err)
	}
	return nil
}

func volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volumeName(claim), Annotations: map[string]string{provisionedBy: provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage()},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              *claim.Spec.StorageClassName,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: volumeName(claim)},
			},
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
}

// grow resizes a bound claim to its request, as a resizer does: the volume first, the claim's capacity last.
func (q *claimQueue) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want, has := claim.Spec.Resources.Requests.Storage(), claim.Status.Capacity.Storage()
	if want.Cmp(*has) <= 0 || *claim.Spec.StorageClassName == FullClaimClass {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"capacity": map[string]string{"storage": want.String()}})
	if err != nil {
		return fmt.Errorf("encode capacity: %w", err)
	}
	core := q.fleet.client.CoreV1()
	volume := fmt.Appendf(nil, `{"spec":%s}`, patch)
	if _, err := core.PersistentVolumes().Patch(ctx, claim.Spec.VolumeName, types.MergePatchType, volume, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("grow volume %s: %w", claim.Spec.VolumeName, err)
	}
	status := fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":%s}`, claim.UID, patch)
	if _, err := core.PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("grow claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// report writes what the driver says of what a claim asks for and does not get, and gives it its volume attributes class.
func (q *claimQueue) report(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	now := claim.DeepCopy()
	now.Status.ModifyVolumeStatus = nil
	now.Status.Conditions = slices.DeleteFunc(now.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool { // others are not the driver's
		return c.Type == corev1.PersistentVolumeClaimControllerResizeError || c.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError
	})
	says := func(of corev1.PersistentVolumeClaimConditionType, message string) {
		now.Status.Conditions = append(now.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: of, Status: corev1.ConditionTrue, Message: message})
	}
	if *claim.Spec.StorageClassName == FullClaimClass && claim.Spec.Resources.Requests.Storage().Cmp(*claim.Status.Capacity.Storage()) > 0 {
		says(corev1.PersistentVolumeClaimControllerResizeError, "the pool is full")
	}
	asked, has := claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName
	switch {
	case asked == nil || *asked == "" || *asked == UnknownAttributes || has != nil && *has == *asked:
	case *asked == InfeasibleAttributes:
		now.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: *asked, Status: corev1.PersistentVolumeClaimModifyVolumeInfeasible}
		says(corev1.PersistentVolumeClaimVolumeModifyVolumeError, "no such volume type")
	default:
		now.Status.CurrentVolumeAttributesClassName = asked
	}
	if equality.Semantic.DeepEqual(claim.Status, now.Status) {
		return nil
	}
	if _, err := q.fleet.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report on claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// release deletes the volume of a claim that is gone.
func (q *claimQueue) release(ctx context.Context, object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName != volumeName(claim) {
		return
	}
	err := q.fleet.client.CoreV1().PersistentVolumes().Delete(ctx, claim.Spec.VolumeName, metav1.DeleteOptions{})
	if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		q.fleet.log.Error(err, "volume not deleted", "volume", claim.Spec.VolumeName)
	}
}
