// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodIdentity is how pods are named, and whether names are reused.
// +kubebuilder:validation:Enum=Random;Ordinal
type PodIdentity string

const (
	// RandomIdentity names pods <set>-<id> with an id of five characters that no other pod of the set has.
	RandomIdentity PodIdentity = "Random"
	// OrdinalIdentity names pods <set>-<ordinal>; a lost pod comes back under its name.
	OrdinalIdentity PodIdentity = "Ordinal"
)

// PodManagementPolicy selects whether pods are created and scaled down in order or all at once.
// +kubebuilder:validation:Enum=OrderedReady;Parallel
type PodManagementPolicy string

const (
	// OrderedReadyPodManagement creates a pod only when all pods before it are available, and scales down from the highest
	// ordinal.
	OrderedReadyPodManagement PodManagementPolicy = "OrderedReady"
	// ParallelPodManagement creates and deletes pods without waiting for one another.
	ParallelPodManagement PodManagementPolicy = "Parallel"
)

// ClaimRetentionPolicy determines what happens to claims that are no longer needed.
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimRetentionPolicy string

const (
	// RetainClaims keeps the claims.
	RetainClaims ClaimRetentionPolicy = "Retain"
	// DeleteClaims deletes the claims together with what used them.
	DeleteClaims ClaimRetentionPolicy = "Delete"
)

// UpdateStrategyType is how pods are moved to a new template.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete;Recreate
type UpdateStrategyType string

const (
	// RollingUpdateStrategy moves pods within partition, maxUnavailable and maxSurge.
	RollingUpdateStrategy UpdateStrategyType = "RollingUpdate"
	// OnDeleteStrategy moves a pod only when a user deletes it.
	OnDeleteStrategy UpdateStrategyType = "OnDelete"
	// RecreateStrategy deletes all old pods before it creates new ones.
	RecreateStrategy UpdateStrategyType = "Recreate"
)

// PodUpdatePolicy is whether a pod is recreated or changed in place when its template changes.
// +kubebuilder:validation:Enum=Recreate;ReCreate;InPlaceIfPossible;InPlaceOnly
type PodUpdatePolicy string

const (
	// RecreatePod deletes the pod and creates its successor.
	RecreatePod PodUpdatePolicy = "Recreate"
	// RecreatePodInCloneSet is RecreatePod in CloneSet's spelling. CloneSet writes it as a default into every object, so
	// manifests read from a cluster contain it.
	RecreatePodInCloneSet PodUpdatePolicy = "ReCreate"
	// InPlaceIfPossiblePod changes the pod in place where the API server and the kubelet allow it, and recreates it otherwise.
	InPlaceIfPossiblePod PodUpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnlyPod never recreates a pod for an update. A change that cannot be made in place waits.
	InPlaceOnlyPod PodUpdatePolicy = "InPlaceOnly"
)

// DeadlinePolicy determines what happens when a rollout exceeds progressDeadlineSeconds.
// +kubebuilder:validation:Enum=Hold;Rollback
type DeadlinePolicy string

const (
	// HoldOnDeadline reports the missed deadline and keeps trying.
	HoldOnDeadline DeadlinePolicy = "Hold"
	// RollbackOnDeadline moves all pods back to the current revision until the template changes.
	RollbackOnDeadline DeadlinePolicy = "Rollback"
)

// RollSetSpec is the desired state of a RollSet. It has the fields of StatefulSet and of CloneSet v1beta1, under the same
// names, and more.
// ---
// A rule is declared on the field that it validates, because the API server then tolerates an old violation as long as that
// field is unchanged. The rules below relate several fields and can only be declared here, where every change of the spec
// runs them. So they tolerate what the old spec already violated. None of them reads replicas: scaling can never make a set
// invalid. They spell out has(), because the API server cannot bound the cost of the content of an optional.
// +kubebuilder:validation:XValidation:fieldPath=".template.metadata.labels",optionalOldSelf=true,rule="!has(self.selector.matchLabels) || size(self.selector.matchLabels) == 0 || has(self.template.metadata) && has(self.template.metadata.labels) && (self.selector.matchLabels.all(k, k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k]) || oldSelf.hasValue() && oldSelf.value().template.?metadata.?labels.orValue({}) == self.template.metadata.labels)",message="must have all labels of spec.selector.matchLabels: the set would not find its own pods"
// +kubebuilder:validation:XValidation:fieldPath=".template.metadata.labels",optionalOldSelf=true,rule="!has(self.selector.matchExpressions) || (has(self.template.metadata) && has(self.template.metadata.labels) ? self.selector.matchExpressions.all(e, e.operator == 'Exists' ? e.key in self.template.metadata.labels : e.operator == 'DoesNotExist' ? !(e.key in self.template.metadata.labels) : (e.operator == 'In') == (e.key in self.template.metadata.labels && has(e.values) && self.template.metadata.labels[e.key] in e.values)) || oldSelf.hasValue() && oldSelf.value().template.?metadata.?labels.orValue({}) == self.template.metadata.labels : self.selector.matchExpressions.all(e, e.operator in ['DoesNotExist', 'NotIn']))",message="must satisfy spec.selector.matchExpressions: the set would not find its own pods"
// +kubebuilder:validation:XValidation:fieldPath=".podManagementPolicy",optionalOldSelf=true,rule="self.podIdentity == 'Ordinal' || !has(self.podManagementPolicy) || self.podManagementPolicy == 'Parallel' || oldSelf.hasValue() && has(oldSelf.value().podManagementPolicy) && oldSelf.value().podManagementPolicy == 'OrderedReady'",message="must be Parallel unless podIdentity is Ordinal: only ordinals have an order"
// +kubebuilder:validation:XValidation:fieldPath=".ordinals",optionalOldSelf=true,rule="self.podIdentity == 'Ordinal' || !has(self.ordinals) || oldSelf.hasValue() && has(oldSelf.value().ordinals)",message="must not be set unless podIdentity is Ordinal"
// +kubebuilder:validation:XValidation:fieldPath=".reserveOrdinals",optionalOldSelf=true,rule="self.podIdentity == 'Ordinal' || !has(self.reserveOrdinals) || size(self.reserveOrdinals) == 0 || oldSelf.hasValue() && has(oldSelf.value().reserveOrdinals) && size(oldSelf.value().reserveOrdinals) > 0",message="must not be set unless podIdentity is Ordinal"
// +kubebuilder:validation:XValidation:fieldPath=".scaleStrategy.podsToDelete",optionalOldSelf=true,rule="self.podIdentity == 'Random' || self.?scaleStrategy.podsToDelete.orValue([]).size() == 0 || oldSelf.hasValue() && oldSelf.value().?scaleStrategy.podsToDelete.orValue([]).size() > 0",message="must be empty when podIdentity is Ordinal: the pod would come back under the same name; label it apps.rollset.dev/specified-delete instead"
// +kubebuilder:validation:XValidation:fieldPath=".progressDeadlineSeconds",optionalOldSelf=true,rule="self.progressDeadlineSeconds > self.minReadySeconds || oldSelf.hasValue() && oldSelf.value().progressDeadlineSeconds <= oldSelf.value().minReadySeconds",message="must be greater than minReadySeconds: a pod that is merely waiting to be available would exceed it"
type RollSetSpec struct {
	// replicas is the desired number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the pods of the set. It must match the labels of the template, must not be empty and is immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: the set would lose its pods; create another set instead"
	// +kubebuilder:validation:XValidation:rule="self.?matchLabels.orValue({}).size() + self.?matchExpressions.orValue([]).size() > 0",message="must not be empty: it would select every pod in the namespace"
	Selector *metav1.LabelSelector `json:"selector"`

	// template describes the pods. Its labels must match the selector. Labels and annotations under rollset.dev, and the
	// labels controller-revision-hash, apps.kubernetes.io/pod-index and statefulset.kubernetes.io/pod-name, are reserved for
	// the controller. restartPolicy must be Always, and activeDeadlineSeconds must not be set.
	// +required
	Template corev1.PodTemplateSpec `json:"template"`

	// podIdentity is how pods are named: Random (web-x7k2p; a new pod gets an unused name) or Ordinal (web-0; a lost pod
	// comes back under its name). It is immutable.
	// +optional
	// +kubebuilder:default=Random
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: pods cannot be renamed; create another set instead"
	PodIdentity PodIdentity `json:"podIdentity,omitempty"`

	// podManagementPolicy is OrderedReady (create a pod only when all before it are available, scale down one at a time from
	// the highest; the default for podIdentity Ordinal) or Parallel (do not wait; the default, and the only value, for
	// podIdentity Random).
	// +optional
	PodManagementPolicy PodManagementPolicy `json:"podManagementPolicy,omitempty"`

	// ordinals selects the ordinals that are used. Only for podIdentity Ordinal.
	// +optional
	Ordinals *Ordinals `json:"ordinals,omitempty"`

	// reserveOrdinals lists ordinals, or ranges of them such as "3-5", that no pod may have. Only for podIdentity Ordinal.
	// An entry is at most 1000000000, and a range spans at most 10000 ordinals. With the same limit on ordinals.start,
	// ordinals stay within 2147483647 for every replicas up to 1147483647, so scaling cannot make a set invalid.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000000 : self.matches('^(0|[1-9][0-9]{0,9})-(0|[1-9][0-9]{0,9})$')",message="must be an ordinal from 0 to 1000000000, or a range of them such as \"3-5\""
	// +kubebuilder:validation:items:XValidation:rule="type(self) == int || !self.matches('^(0|[1-9][0-9]{0,9})-(0|[1-9][0-9]{0,9})$') || (int(self.substring(0, self.indexOf('-'))) <= int(self.substring(self.indexOf('-') + 1)) && int(self.substring(self.indexOf('-') + 1)) <= 1000000000 && int(self.substring(self.indexOf('-') + 1)) - int(self.substring(0, self.indexOf('-'))) < 10000)",message="must be a range that ends at or after its start, spans at most 10000 ordinals and ends at 1000000000 or before"
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`

	// serviceName is the headless service that governs the pods. It becomes their subdomain. It is immutable.
	// ---
	// The default makes the field always present: a transition rule runs only if the field was present before and after, and
	// would otherwise allow to add or remove it.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a service: lower case letters, digits and '-', beginning and ending with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed, set or unset: the pods' host names depend on it; create another set instead"
	ServiceName string `json:"serviceName,omitempty"`

	// volumeClaimTemplates lists the claims of each pod. The claim of template t for a pod s-x of set s is named t-s-x. It
	// becomes the pod's volume t, whether the template declares that volume or not. Names are DNS labels, and unique.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u.metadata.name == t.metadata.name))",message="no two templates may have the same metadata.name"
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// persistentVolumeClaimRetentionPolicy specifies what happens to claims when the set is deleted and when it is scaled down.
	// +optional
	PersistentVolumeClaimRetentionPolicy *PersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// minReadySeconds is how long, in seconds, a pod must have been ready to count as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// revisionHistoryLimit is how many unused revisions are kept.
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

	// scaleStrategy configures how pods are created and deleted when the set is scaled.
	// +optional
	ScaleStrategy *ScaleStrategy `json:"scaleStrategy,omitempty"`

	// updateStrategy configures how pods are moved to a new template.
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`

	// lifecycle lets other programs take part: pods wait before they are deleted, updated or counted as available.
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

	// disruption configures how the set takes part when nodes leave and pods are evicted. The manager needs rights to nodes and
	// to PodDisruptionBudgets for it, which are installed apart.
	// +optional
	Disruption *Disruption `json:"disruption,omitempty"`
}

// Ordinals selects the ordinals that a set uses.
type Ordinals struct {
	// start is the first ordinal. Its limit keeps ordinals within 2147483647 for every replicas up to 1147483647, so scaling
	// cannot make a set invalid.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Start int32 `json:"start,omitempty"`
}

// PersistentVolumeClaimRetentionPolicy determines what happens to the claims of a set.
type PersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted specifies what happens to all claims when the set is deleted. Default: Retain for podIdentity Ordinal, Delete
	// for Random.
	// +optional
	WhenDeleted ClaimRetentionPolicy `json:"whenDeleted,omitempty"`

	// whenScaled specifies what happens to a pod's claims when the pod is deleted by a scale-down. Default: Retain for
	// podIdentity Ordinal, Delete for Random.
	// +optional
	WhenScaled ClaimRetentionPolicy `json:"whenScaled,omitempty"`
}

// ScaleStrategy configures how pods are created and deleted when a set is scaled.
type ScaleStrategy struct {
	// maxUnavailable is a number or percentage of replicas: while this many pods are unavailable, no more are created.
	// It never limits the replacement of broken pods. Unset means no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods, or a percentage of replicas from \"0%\" to \"100%\""
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// podsToDelete names pods to delete first. If replicas is not reduced, they are replaced, within maxUnavailable: under
	// other names or, if they have claims, under the same names with the same claims, once while the name is listed. Names
	// that no longer exist are ignored. Only for podIdentity Random. To replace a pod with an ordinal, label it
	// apps.rollset.dev/specified-delete instead.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be the name of a pod"
	PodsToDelete []string `json:"podsToDelete,omitempty"`
}

// UpdateStrategy configures how pods are moved to a new template.
// +kubebuilder:validation:XValidation:fieldPath=".rollingUpdate.steps",rule="!has(self.rollingUpdate) || !has(self.rollingUpdate.steps) || size(self.rollingUpdate.steps) == 0 || !has(self.type) || self.type == 'RollingUpdate'",message="must not be set unless type is RollingUpdate: the other types move pods by other rules"
// +kubebuilder:validation:XValidation:fieldPath=".rollingUpdate.domains",rule="!has(self.rollingUpdate) || !has(self.rollingUpdate.domains) || !has(self.type) || self.type == 'RollingUpdate'",message="must not be set unless type is RollingUpdate: the other types move pods by other rules"
type UpdateStrategy struct {
	// type is RollingUpdate (within partition, maxUnavailable and maxSurge), OnDelete (a pod moves when a user deletes it)
	// or Recreate (all old pods are deleted before new ones are created).
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type UpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate configures an update of type RollingUpdate.
	// +optional
	// +kubebuilder:default={}
	RollingUpdate RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate configures an update of type RollingUpdate.
type RollingUpdate struct {
	// partition is how many pods stay at the current revision: a number, or a percentage of replicas, rounded up. For
	// podIdentity Ordinal they are the lowest ordinals in use. It is a state, not a trigger: lowering it moves pods to
	// the update revision, raising it moves them back.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods, or a percentage of replicas from \"0%\" to \"100%\""
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// maxUnavailable is how many pods, as a number or a percentage of replicas, may be unavailable while pods are updated. A
	// percentage rounds up when maxSurge is 0, down otherwise. If this and maxSurge both resolve to 0 it counts as 1.
	// Default: 1 for podIdentity Ordinal, 20% for Random.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods, or a percentage of replicas from \"0%\" to \"100%\""
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many pods, as a number or a percentage of replicas rounded up, may exist above replicas while
	// pods are updated. A percentage may exceed 100%. For podIdentity Ordinal they have the next ordinals above those in
	// use, and go again at the end of the update.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^[0-9]{1,5}%$')",message="must be a number of pods, or a percentage of replicas such as \"25%\""
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// podUpdatePolicy is Recreate (delete the pod, create its successor), InPlaceIfPossible (change the pod in place
	// where that can be done) or InPlaceOnly (never recreate a pod for an update). ReCreate means Recreate.
	// +optional
	// +kubebuilder:default=Recreate
	PodUpdatePolicy PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`

	// inPlaceUpdateStrategy configures updates in place.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`

	// paused freezes the revisions of the pods. Scaling continues.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// priorityStrategy selects which pods are updated first.
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// scatterStrategy spreads pods that share a label value over the update order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u == t))",message="no two terms may be equal"
	ScatterStrategy []UpdateScatterTerm `json:"scatterStrategy,omitempty"`

	// onDeadlineExceeded specifies what happens when a rollout makes no progress for progressDeadlineSeconds: Hold (report
	// it, keep trying) or Rollback (move all pods back to the current revision until the template changes).
	// +optional
	// +kubebuilder:default=Hold
	OnDeadlineExceeded DeadlinePolicy `json:"onDeadlineExceeded,omitempty"`

	// steps divide the move of pods to a new revision. After each step the update waits for time, gates or a person, as the
	// step says. After the last step all other pods follow. Sizes must not decrease from one step to the next. A set that
	// was never complete takes no steps, nor does one that goes back to a revision that was complete.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.map(s, type(s.updated) == int, int(s.updated)).isSorted()",message="updated must not fall from one step to the next"
	// +kubebuilder:validation:XValidation:rule="self.map(s, type(s.updated) == string && s.updated.matches('^[0-9]{1,3}%$'), int(s.updated.substring(0, s.updated.size() - 1))).isSorted()",message="updated must not fall from one step to the next"
	Steps []RolloutStep `json:"steps,omitempty"`

	// onStepFailed specifies what happens when a gate of a step is False or times out: Hold (report it, and continue if the
	// gate becomes True later) or Rollback (move all pods back to the current revision until the template changes).
	// +optional
	// +kubebuilder:default=Hold
	OnStepFailed StepFailurePolicy `json:"onStepFailed,omitempty"`

	// domains makes the update disturb the pods of one failure domain at a time, such as a zone. An available pod is updated
	// or replaced only while every unavailable pod of the set is in the same domain. maxUnavailable, partition and steps
	// apply as well.
	// +optional
	Domains *FailureDomains `json:"domains,omitempty"`
}

// InPlaceUpdateStrategy configures updates in place.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is how long, in seconds, a pod is not ready before its containers are touched.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}

// UpdatePriorityStrategy selects which pods are updated first.
// +kubebuilder:validation:XValidation:rule="self.?weightPriority.orValue([]).size() == 0 || self.?orderPriority.orValue([]).size() == 0",message="weightPriority and orderPriority exclude each other"
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

	// matchSelector selects the pods that get the weight.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.?matchLabels.orValue({}).size() + self.?matchExpressions.orValue([]).size() > 0",message="must not be empty: it would give the weight to every pod"
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}

// UpdatePriorityOrderTerm orders pods by a label.
type UpdatePriorityOrderTerm struct {
	// orderedKey is the key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="must be the key of a label, such as \"zone\" or \"example.com/zone\""
	OrderedKey string `json:"orderedKey"`
}

// UpdateScatterTerm spreads the pods that have a label over the update order.
type UpdateScatterTerm struct {
	// key is the key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="must be the key of a label, such as \"zone\" or \"example.com/zone\""
	Key string `json:"key"`

	// value is the value of the label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="must be the value of a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	Value string `json:"value"`
}

// Lifecycle lets other programs take part in the life of a pod.
type Lifecycle struct {
	// preNormal keeps a new pod from being available until it has all of the hook's labels and finalizers.
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`

	// inPlaceUpdate makes a pod that has any of the hook's labels or finalizers wait before it is updated in place.
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`

	// preDelete makes a pod that has any of the hook's labels or finalizers wait before it is deleted.
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`
}

// LifecycleHook is the marks of a hooked pod, and what happens while the pod waits.
// +kubebuilder:validation:XValidation:fieldPath=".onTimeout",rule="!has(self.onTimeout) || self.onTimeout != 'Proceed' || has(self.timeoutSeconds)",message="must be Hold unless timeoutSeconds is set: without a limit, nothing says when to proceed"
// +kubebuilder:validation:XValidation:fieldPath=".onTimeout",rule="!has(self.onTimeout) || self.onTimeout != 'Proceed' || self.?finalizersHandler.orValue([]).size() == 0",message="must be Hold if finalizersHandler is set: the controller never removes finalizers, so a pod with one cannot proceed"
type LifecycleHook struct {
	// labelsHandler are labels that mark a pod as hooked.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && !format.labelValue().validate(self[k]).hasValue())",message="must be valid labels: keys such as \"example.com/hook\", values of at most 63 letters, digits, '-', '_' and '.'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['controller-revision-hash', 'apps.kubernetes.io/pod-index', 'statefulset.kubernetes.io/pod-name']) && !k.matches('^([^/]*[.])?rollset[.]dev/'))",message="must not use labels that the controller sets on pods (controller-revision-hash, apps.kubernetes.io/pod-index, statefulset.kubernetes.io/pod-name, anything under rollset.dev)"
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`

	// finalizersHandler are finalizers that mark a pod as hooked.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.contains('/') && !format.qualifiedName().validate(self).hasValue()",message="must be a finalizer such as \"example.com/hook\""
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('^([^/]*[.])?rollset[.]dev/')",message="must not be under rollset.dev: such names belong to the controller"
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`

	// markPodNotReady takes a pod out of service while it waits.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`

	// timeoutSeconds is how long a pod may wait for the hook, counted from when it entered the state in which it waits; a new
	// pod waits for preNormal from its creation. Unset means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// onTimeout specifies what happens when a pod has waited for timeoutSeconds: Hold (report it, and keep waiting) or Proceed
	// (report it, and continue as if the program behind the hook had agreed). Proceed needs timeoutSeconds and excludes
	// finalizersHandler.
	// +optional
	// +kubebuilder:default=Hold
	OnTimeout HookTimeoutPolicy `json:"onTimeout,omitempty"`
}

// RollSetStatus is the observed state of a RollSet.
type RollSetStatus struct {
	// observedGeneration is the generation of the spec that this status is about; -1 before the first.
	// +optional
	// +kubebuilder:default=-1
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of ready pods.
	// +optional
	// +kubebuilder:default=0
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of pods that have been ready for minReadySeconds.
	// +optional
	// +kubebuilder:default=0
	AvailableReplicas int32 `json:"availableReplicas"`

	// currentReplicas is the number of pods at the current revision.
	// +optional
	// +kubebuilder:default=0
	CurrentReplicas int32 `json:"currentReplicas"`

	// updatedReplicas is the number of pods at the update revision.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of ready pods at the update revision.
	// +optional
	// +kubebuilder:default=0
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// updatedAvailableReplicas is the number of available pods at the update revision.
	// +optional
	// +kubebuilder:default=0
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`

	// expectedUpdatedReplicas is how many pods are wanted at the update revision: replicas minus partition.
	// +optional
	// +kubebuilder:default=0
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas"`

	// currentRevision is the revision that the set last completed, or its first one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the revision of the template in the spec.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount counts revision names that were taken by another object.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// issuedIDs is how many ids of its sequence a set with podIdentity Random has given to pods. They are not reused.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IssuedIDs int64 `json:"issuedIDs,omitempty"`

	// reachedReplicas is how many pods the set has had at once since spec.replicas was lowered last, at most spec.replicas.
	// scaleStrategy.maxUnavailable limits only the creation of pods beyond it. It is absent from a set without that limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReachedReplicas int32 `json:"reachedReplicas,omitempty"`

	// labelSelector is the selector as a string. The scale subresource shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	LabelSelector string `json:"labelSelector,omitempty"`

	// revisions lists the revisions that pods run, oldest first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Revisions []RevisionStatus `json:"revisions,omitempty"`

	// images lists the images in the templates of the revisions that pods run, those of the oldest revision first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	Images []string `json:"images,omitempty"`

	// volumeClaims shows, for each claim template, how many claims match it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`

	// rollout is the progress of a rollout in steps. It is present from its beginning until the set is complete.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// conditions are Ready, Available, Progressing, ReplicaFailure, Stalled and DisruptionReady, and conditions that other programs write,
	// such as the gates of steps.
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

// VolumeClaimStatus is how many claims of one template match it.
type VolumeClaimStatus struct {
	// name is the name of the claim template.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// claims is the number of claims of this template that pods of the set use.
	// +optional
	Claims int32 `json:"claims"`

	// matchingClaims is how many of those claims match the template.
	// +optional
	MatchingClaims int32 `json:"matchingClaims"`

	// message is why claims do not match, and what is done about it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// RollSet keeps a number of pods running, and moves them to a new template when it changes. Its name is the start of its
// pods' hostnames. So it has at most 52 characters, none of them a dot.
// ---
// The name is validated once, at creation, because it is immutable. Pods are named <set>-<ordinal>, with up to ten digits,
// and labeled with their revision, <set>-<hash>, with ten characters. Hostnames and labels have at most 63.
// +kubebuilder:validation:XValidation:fieldPath=".metadata.name",optionalOldSelf=true,rule="oldSelf.hasValue() || size(self.metadata.name) <= 52",message="must have at most 52 characters, so that pods' hostnames and the revision label stay within 63"
// +kubebuilder:validation:XValidation:fieldPath=".metadata.name",optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS label, since it begins the pods' hostnames: lower case letters, digits and '-', beginning and ending with a letter or digit"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=rls,categories=all
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="The desired number of pods"
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`,description="Pods at the update revision"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Ready pods"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Available pods"
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.replicas`,description="All pods"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="The reason of the condition Ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the set was created"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="The message of the condition Ready"
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.updateRevision`,description="The update revision"
// +kubebuilder:printcolumn:name="Images",type=string,priority=1,JSONPath=`.status.images[*]`,description="The images that pods run"
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
