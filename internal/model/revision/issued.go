// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

const (
	// issuedBlock is how many ids are reserved at a time.
	issuedBlock = 2048

	// issuedAhead is how many ids are reserved at least: more than one reconcile gives out before the next one counts them.
	issuedAhead = 1024

	// maxIssued is more ids than a set can give out. A higher number was not written by this program.
	maxIssued = 1 << 40
)

// Reserve records on a ControllerRevision that the next ids of a set may be given out, if a block of them is about to be used up.
// issued is how many ids the set has given out. It reports whether the object was changed.
func Reserve(object *appsv1.ControllerRevision, issued int) bool {
	if issued <= 0 || Reserved(object) >= issued+issuedAhead {
		return false
	}
	return raise(object, issued+issuedBlock)
}

// raise raises the number of ids that are reserved on a ControllerRevision. It reports whether the object was changed.
func raise(object *appsv1.ControllerRevision, number int) bool {
	if number <= Reserved(object) || number > maxIssued {
		return false
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, IssuedAnnotation, strconv.Itoa(number))
	return true
}

// Reserved returns how many ids are reserved on a ControllerRevision; 0 if that cannot be read.
func Reserved(object *appsv1.ControllerRevision) int {
	number, err := strconv.ParseInt(object.Annotations[IssuedAnnotation], 10, 64)
	if err != nil || number < 0 || number > maxIssued {
		return 0
	}
	return int(number)
}

// reserve reserves ids on the ControllerRevision of the update revision. It changes what is written anyway. Otherwise it plans a
// write if the block is about to be used up. Before the first block, it plans one if names of the set are on no pod any more: a new
// set gets its first block with the note that it is complete.
func (r *resolver) reserve() {
	for _, known := range r.intact {
		r.out.Issued = max(r.out.Issued, Reserved(known.object))
	}
	if r.Set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		r.out.Issued = 0
		return
	}
	found, ok := r.intact[r.out.Update.Name]
	switch {
	case r.out.Create != nil:
		raise(r.out.Create, r.out.Issued)
		Reserve(r.out.Create, r.IssuedIDs)
	case r.out.Bump != nil && r.out.Bump.Name == r.out.Update.Name:
		raise(r.out.Bump, r.out.Issued)
		Reserve(r.out.Bump, r.IssuedIDs)
	case ok && r.out.Bump == nil && (Reserved(found.object) > 0 || r.leftNames()):
		if object := found.object.DeepCopy(); Reserve(object, r.IssuedIDs) {
			raise(object, r.out.Issued)
			r.out.Bump = object
		}
	}
}

// leftNames reports whether a set has given out more ids than it has replicas.
func (r *resolver) leftNames() bool {
	return r.Set.Spec.Replicas != nil && r.IssuedIDs > int(*r.Set.Spec.Replicas)
}
