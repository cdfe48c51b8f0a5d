// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// CompletedAnnotation carries, on a ControllerRevision, the number that the revision had when it was last proven; 0 if
	// it never was. The revision with the highest number is the current one. Revisions without it are older than the annotation,
	// or a user removed it. Such a revision counts as proven if the status names it as current.
	CompletedAnnotation = "apps.rollset.dev/completed"

	// EqualAnnotation carries, on a ControllerRevision, the digests of contents that count as equal to its own: what a later
	// API server made of the same template, for example with a new default.
	EqualAnnotation = "apps.rollset.dev/equal"

	// maxEqual bounds the list of EqualAnnotation. Each entry stands for a release of the API server or of this program.
	maxEqual = 20
)

// Prove returns a copy of a ControllerRevision that records that the revision is proven; nil if that is recorded already.
func Prove(object *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	number := strconv.FormatInt(object.Revision, 10)
	if object.Annotations[CompletedAnnotation] == number {
		return nil
	}
	proven := object.DeepCopy()
	metav1.SetMetaDataAnnotation(&proven.ObjectMeta, CompletedAnnotation, number)
	return proven
}

// WasProven reports whether a ControllerRevision records that the revision was proven once, or records nothing.
func WasProven(object *appsv1.ControllerRevision) bool {
	number, known := provenAt(object)
	return number > 0 || !known
}

// provenAt returns the number that a revision had when it was last proven; known is false if its object does not record it.
func provenAt(object *appsv1.ControllerRevision) (number int64, known bool) {
	number, err := strconv.ParseInt(object.Annotations[CompletedAnnotation], 10, 64)
	return number, err == nil && number >= 0
}

// lastProven returns the name of the revision that was proven last, and the number that it had then; empty if none was.
func (r *resolver) lastProven() (last string, highest int64) {
	for name, known := range r.intact {
		if number, _ := provenAt(known.object); number > highest || number > 0 && number == highest && name < last {
			last, highest = name, number
		}
	}
	return last, highest
}

// noteDrift records the content of the spec as equal to the update revision, if it differs although the spec has not changed
// since it was observed.
func (r *resolver) noteDrift(found record) error {
	// A default adds a field, so the size differs. Comparing more would cost more than all the rest of a resolution.
	if found.template.Spec.Size() == r.Set.Spec.Template.Spec.Size() {
		return nil
	}
	drifted, err := contentOf(r.Set)
	if err != nil {
		return err
	}
	entry := r.digest(drifted.canonical, 0)
	if drifted.equal(found) || remembers(found, entry) {
		return nil
	}
	if r.out.Bump == nil {
		r.out.Bump = found.object.DeepCopy()
	}
	entries := append(strings.Split(found.object.Annotations[EqualAnnotation], ","), entry)
	entries = slices.DeleteFunc(entries, func(e string) bool { return e == "" })
	entries = entries[max(0, len(entries)-maxEqual):]
	metav1.SetMetaDataAnnotation(&r.out.Bump.ObjectMeta, EqualAnnotation, strings.Join(entries, ","))
	return nil
}

// remembers reports whether a revision counts the content with a digest as equal to its own.
func remembers(found record, entry string) bool {
	return slices.Contains(strings.Split(found.object.Annotations[EqualAnnotation], ","), entry)
}
