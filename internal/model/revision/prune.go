// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// defaultHistoryLimit is the CRD's default of spec.revisionHistoryLimit, for objects that are older than it.
const defaultHistoryLimit = 10

// pruner finds the ControllerRevisions that nothing needs.
type pruner struct{ *resolver }

// prune deletes the revisions that are not used, except for the newest ones. The one that the status names as current stays until the
// status names another: which one it was would not be known otherwise, if another template takes effect meanwhile.
func (r pruner) prune() {
	var unused []*appsv1.ControllerRevision
	for _, object := range r.Revisions {
		named := object.Name == r.out.Current.Name || object.Name == r.out.Update.Name || object.Name == r.Set.Status.CurrentRevision
		needed := named || r.Used.Has(object.Name)
		if !needed && object.DeletionTimestamp == nil {
			unused = append(unused, object)
		}
	}
	limit := defaultHistoryLimit
	if l := r.Set.Spec.RevisionHistoryLimit; l != nil {
		limit = max(int(*l), 0)
	}
	slices.SortFunc(unused, r.oldestFirst)
	for _, object := range unused[:max(len(unused)-limit, 0)] {
		r.out.Prune = append(r.out.Prune, object.Name)
	}
}

// oldestFirst orders revisions by age. Unusable ones come first, whatever their number.
func (r pruner) oldestFirst(a, b *appsv1.ControllerRevision) int {
	return cmp.Or(
		compareBool(r.usable(a), r.usable(b)),
		cmp.Compare(a.Revision, b.Revision),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

func (r pruner) usable(object *appsv1.ControllerRevision) bool {
	_, ok := r.intact[object.Name]
	return ok
}
