// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodIdentity says how pods are named and whether a name comes back.
// +kubebuilder:validation:Enum=Random;Ordinal
type PodIdentity string

const (
	// RandomIdentity names pods <set>-<id> with an id of five characters that belongs to one pod only.
	RandomIdentity PodIdentity = "Random"
	// OrdinalIdentity names pods <set>-<ordinal>; a lost pod comes back under its name.
	OrdinalIdentity PodIdentity = "Ordinal"
)

// PodManagementPolicy says whether pods are created and scaled down in order or all at once.
// +kubebuilder:validation:Enum=OrderedReady;Parallel
type PodManagementPolicy string

const (
	// OrderedReadyPodManagement creates a pod only when all pods before it are available, and scales down from the top.
	OrderedReadyPodManagement PodManagementPolicy = "OrderedReady"
	// ParallelPodManagement creates and deletes pods without waiting for one another.
	ParallelPodManagement PodManagementPolicy = "Parallel"
)

// ClaimRetentionPolicy says what becomes of claims that are no longer needed.
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimRetentionPolicy string

const (
	// RetainClaims keeps the claims.
	RetainClaims ClaimRetentionPolicy = "Retain"
	// DeleteClaims deletes the claims together with what used them.
	DeleteClaims ClaimRetentionPolicy = "Delete"
)

// UpdateStrategyType says how pods are moved to a new template.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete;Recreate
type UpdateStrategyType string

const (
	// RollingUpdateStrategy moves pods within partition, maxUnavailable and maxSurge.
	RollingUpdateStrategy UpdateStrategyType = "RollingUpdate"
	// OnDeleteStrategy moves a pod only when somebody deletes it.
	OnDeleteStrategy UpdateStrategyType = "OnDelete"
	// RecreateStrategy lets all old pods go before any new one comes.
	RecreateStrategy UpdateStrategyType = "Recreate"
)

// PodUpdatePolicy says whether a pod is recreated or changed in place when its template changes.
// +kubebuilder:validation:Enum=Recreate;InPlaceIfPossible;InPlaceOnly
type PodUpdatePolicy string

const (
	// RecreatePod deletes the pod and creates its successor.
	RecreatePod PodUpdatePolicy = "Recreate"
	// InPlaceIfPossiblePod changes the pod in place where the API server and the kubelet allow it, and recreates it otherwise.
	InPlaceIfPossiblePod PodUpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnlyPod never recreates a pod for an update; what cannot be changed in place waits.
	InPlaceOnlyPod PodUpdatePolicy = "InPlaceOnly"
)

// DeadlinePolicy says what happens when a rollout exceeds progressDeadlineSeconds.
// +kubebuilder:validation:Enum=Hold;Rollback
type DeadlinePolicy string

const (
	// HoldOnDeadline reports the deadline and keeps trying.
	HoldOnDeadline DeadlinePolicy = "Hold"
	// RollbackOnDeadline moves all pods back to the current revision until the template changes.
	RollbackOnDeadline DeadlinePolicy = "Rollback"
)

// RollSetSpec is the desired state of a RollSet. It is a superset of the specs of StatefulSet and CloneSet.
type RollSetSpec struct {
	// replicas is the desired number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// selector says which pods belong to the set. It must match the labels of the template, must not be empty and
	// cannot be changed.
	// +required
	Selector *metav1.LabelSelector `json:"selector"`

	// template describes the pods.
	// +required
	Template corev1.PodTemplateSpec `json:"template"`

	// podIdentity says how pods are named: Random (web-x7k2p; a name belongs to one pod only) or Ordinal (web-0; a lost
	// pod comes back under its name). It cannot be changed.
	// +optional
	// +kubebuilder:default=Random
	PodIdentity PodIdentity `json:"podIdentity,omitempty"`

	// podManagementPolicy is OrderedReady (create a pod only when all before it are available, scale down one at a
	// time from the top; the default for podIdentity Ordinal) or Parallel (do not wait; the default, and the only value,
	// for podIdentity Random).
	// +optional
	PodManagementPolicy PodManagementPolicy `json:"podManagementPolicy,omitempty"`

	// ordinals says which ordinals are used. Only for podIdentity Ordinal.
	// +optional
	Ordinals *Ordinals `json:"ordinals,omitempty"`

	// reserveOrdinals lists ordinals, or ranges of them such as "3-5", that no pod may have. Only for podIdentity Ordinal.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`

	// serviceName is the headless service that governs the pods; it becomes their subdomain. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ServiceName string `json:"serviceName,omitempty"`

	// volumeClaimTemplates lists the claims of each pod. The claim of template t for a pod s-x of set s is named t-s-x.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// persistentVolumeClaimRetentionPolicy says what becomes of claims when the set is deleted and when it is scaled
	// down.
	// +optional
	PersistentVolumeClaimRetentionPolicy *PersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// minReadySeconds is how long, in seconds, a pod must have been ready to count as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// revisionHistoryLimit is how many revisions are kept that no pod uses.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// progressDeadlineSeconds is how long, in seconds, a rollout may go without progress before it is reported as
	// failed. It must be greater than minReadySeconds. 2147483647 means no deadline.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// scaleStrategy shapes how pods are created and deleted when the set is scaled.
	// +optional
	ScaleStrategy *ScaleStrategy `json:"scaleStrategy,omitempty"`

	// updateStrategy says how pods are moved to a new template.
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`

	// lifecycle lets other programs take part: pods wait before they are deleted, updated or counted as available.
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
}

// Ordinals says which ordinals a set uses.
type Ordinals struct {
	// start is the first ordinal.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Start int32 `json:"start,omitempty"`
}

// PersistentVolumeClaimRetentionPolicy says what becomes of the claims of a set.
type PersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted is what becomes of all claims when the set is deleted. Default: Retain for podIdentity Ordinal,
	// Delete for Random.
	// +optional
	WhenDeleted ClaimRetentionPolicy `json:"whenDeleted,omitempty"`

	// whenScaled is what becomes of a pod's claims when the pod is scaled away. Default: Retain for podIdentity
	// Ordinal, Delete for Random.
	// +optional
	WhenScaled ClaimRetentionPolicy `json:"whenScaled,omitempty"`
}

// ScaleStrategy shapes how pods are created and deleted when a set is scaled.
type ScaleStrategy struct {
	// maxUnavailable is a number or percentage of replicas: while this many pods are unavailable, no more are created.
	// It never limits the replacement of broken pods. Unset means no limit.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// podsToDelete names pods to delete first. Without a smaller replicas they are replaced, within maxUnavailable.
	// Names that no longer exist are ignored.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	PodsToDelete []string `json:"podsToDelete,omitempty"`
}

// UpdateStrategy says how pods are moved to a new template.
type UpdateStrategy struct {
	// type is RollingUpdate (within partition, maxUnavailable and maxSurge), OnDelete (a pod moves when somebody
	// deletes it) or Recreate (all old pods go before any new one comes).
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type UpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate shapes an update of type RollingUpdate.
	// +optional
	// +kubebuilder:default={}
	RollingUpdate RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate shapes an update of type RollingUpdate.
type RollingUpdate struct {
	// partition is how many pods stay at the current revision: a number, or a percentage of replicas, rounded up. For
	// podIdentity Ordinal they are the lowest ordinals in use. It is a state, not a trigger: lowering it moves pods to
	// the update revision, raising it moves them back.
	// +optional
	// +kubebuilder:default=0
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// maxUnavailable is how many pods, as a number or a percentage of replicas, may be unavailable while pods are
	// updated. A percentage rounds up when maxSurge is 0, down otherwise. If this and maxSurge both come to 0 it
	// counts as 1. Default: 1 for podIdentity Ordinal, 20% for Random.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many pods, as a number or a percentage of replicas rounded up, may exist above replicas while
	// pods are updated. Only for podIdentity Random.
	// +optional
	// +kubebuilder:default=0
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// podUpdatePolicy is Recreate (delete the pod, create its successor), InPlaceIfPossible (change the pod in place
	// where that can be done) or InPlaceOnly (never recreate a pod for an update).
	// +optional
	// +kubebuilder:default=Recreate
	PodUpdatePolicy PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`

	// inPlaceUpdateStrategy shapes updates in place.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`

	// paused freezes the mix of revisions. Scaling goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// priorityStrategy says which pods are updated first.
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// scatterStrategy spreads pods that share a label value over the update order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ScatterStrategy []UpdateScatterTerm `json:"scatterStrategy,omitempty"`

	// onDeadlineExceeded is what happens when a rollout makes no progress for progressDeadlineSeconds: Hold (report
	// it, keep trying) or Rollback (move all pods back to the current revision until the template changes).
	// +optional
	// +kubebuilder:default=Hold
	OnDeadlineExceeded DeadlinePolicy `json:"onDeadlineExceeded,omitempty"`
}

// InPlaceUpdateStrategy shapes updates in place.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is how long, in seconds, a pod is not ready before its containers are touched.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}

// UpdatePriorityStrategy says which pods are updated first.
type UpdatePriorityStrategy struct {
	// weightPriority orders pods by the sum of the weights whose selector matches them, highest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`

	// orderPriority orders pods by the trailing number of a label's value, highest first; pods without the label come
	// last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`
}

// UpdatePriorityWeightTerm gives a weight to the pods that match a selector.
type UpdatePriorityWeightTerm struct {
	// weight is added to the priority of matching pods.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// matchSelector says which pods get the weight.
	// +required
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}

// UpdatePriorityOrderTerm orders pods by a label.
type UpdatePriorityOrderTerm struct {
	// orderedKey is the key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	OrderedKey string `json:"orderedKey"`
}

// UpdateScatterTerm spreads the pods that have a label over the update order.
type UpdateScatterTerm struct {
	// key is the key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// value is the value of the label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value"`
}

// Lifecycle lets other programs take part in the life of a pod.
type Lifecycle struct {
	// preNormal holds a new pod back from being available until it carries all of the hook's labels and finalizers.
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`

	// inPlaceUpdate makes a pod that carries any of the hook's labels or finalizers wait before it is updated in place.
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`

	// preDelete makes a pod that carries any of the hook's labels or finalizers wait before it is deleted.
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`
}

// LifecycleHook says what marks a pod as hooked.
type LifecycleHook struct {
	// labelsHandler are labels that mark a pod as hooked.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`

	// finalizersHandler are finalizers that mark a pod as hooked.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`

	// markPodNotReady takes a pod out of service while it waits.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}

// RollSetStatus is the observed state of a RollSet.
type RollSetStatus struct {
	// observedGeneration is the generation of the spec that this status is about; -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of pods that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// currentReplicas is the number of pods at the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas"`

	// updatedReplicas is the number of pods at the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of ready pods at the update revision.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// updatedAvailableReplicas is the number of available pods at the update revision.
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`

	// expectedUpdatedReplicas is how many pods are wanted at the update revision: replicas minus partition.
	// +optional
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas"`

	// currentRevision is the revision that the set last completed, or its first one.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the revision of the template that is in the spec.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount counts names of revisions that were taken by something else.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// labelSelector is the selector as a string, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// revisions lists the revisions that pods run, oldest first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Revisions []RevisionStatus `json:"revisions,omitempty"`

	// volumeClaims says, for each claim template, how far its claims match.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`

	// conditions are Ready, Available, Progressing, ReplicaFailure and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionStatus counts the pods of one revision.
type RevisionStatus struct {
	// name is the name of the ControllerRevision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// replicas is the number of pods at this revision.
	// +optional
	Replicas int32 `json:"replicas"`

	// availableReplicas is the number of available pods at this revision.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`
}

// VolumeClaimStatus says how far the claims of one template match it.
type VolumeClaimStatus struct {
	// name is the name of the claim template.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// claims is the number of claims of this template that pods of the set use.
	// +optional
	Claims int32 `json:"claims"`

	// matchingClaims is the number of those that are as the template says.
	// +optional
	MatchingClaims int32 `json:"matchingClaims"`

	// message says why claims do not match and what is done about it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// RollSet keeps a number of pods running and moves them to a new template when it changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=rls,categories=all
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="The desired number of pods"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,description="Pods at the update revision"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Ready pods"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Available pods"
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.replicas`,description="All pods"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.updateRevision`,description="The update revision"
// +kubebuilder:printcolumn:name="Images",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].image`,description="The images of the template's containers"
// +kubebuilder:printcolumn:name="Selector",type=string,priority=1,JSONPath=`.status.labelSelector`,description="The selector"
type RollSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec RollSetSpec `json:"spec"`

	// status is the observed state.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status RollSetStatus `json:"status,omitzero"`
}

// RollSetList is a list of RollSets.
//
// +kubebuilder:object:root=true
type RollSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the RollSets.
	Items []RollSet `json:"items"`
}
