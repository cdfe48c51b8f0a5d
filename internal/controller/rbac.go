// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

// What the manager may do, all but what package optional has; config/rbac/manager/role.yaml is generated from these lines. It reads no secrets and no
// config maps, and it has no wildcard. All but the storage classes, which belong to no namespace, can be granted for one
// namespace at a time.
//
// Sets are read; only their status is written. A cluster that enforces permissions on
// owner references (OpenShift does, and the local cluster) requires of a client that makes a set the blocking owner of a pod, or a
// pod that of its claim.
// +kubebuilder:rbac:groups=apps.rollset.dev,resources=rollsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.rollset.dev,resources=rollsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.rollset.dev,resources=rollsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods/finalizers,verbs=update
//
// What a set owns.
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status;pods/resize,verbs=patch
//
// Whether a storage class can grow a claim.
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch,roleName=storage-reader-role
//
// Events: the sets' in the new API; leader election still records in the old one.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
//
// The lease that makes one manager of several the acting one.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=manager.rollset.dev,verbs=get;update
