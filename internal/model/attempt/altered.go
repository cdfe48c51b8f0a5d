// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
)

// AlteredError is the error of a write that the API server accepted and that did not do what it says, because an admission policy or
// webhook changed it. It counts as a refusal.
type AlteredError struct {
	// What says what the API server did.
	What string
}

// Error implements error.
func (a *AlteredError) Error() string { return "the API server accepted the write and " + a.What }

// IsAltered reports whether a write was accepted and did not do what it says.
func IsAltered(err error) bool { return errors.As(err, new(*AlteredError)) }

// maxAltered is how many differences an error names.
const maxAltered = 3

// patched is the part of a patch that concerns the metadata of an object. A nil value removes its key.
type patched struct {
	Metadata struct {
		Labels          map[string]*string      `json:"labels"`
		Annotations     map[string]*string      `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
}

// CheckPatch compares what a patch says of metadata with the object that the API server answered. before is the object that the
// patch was made for: if the answer has its resource version, the patch changed nothing.
func CheckPatch(patch []byte, before, after metav1.Object) error {
	var says patched
	if err := json.Unmarshal(patch, &says); err != nil {
		return fmt.Errorf("read the patch that was sent: %w", err)
	}
	what := slices.Concat(unlike("label", says.Metadata.Labels, after.GetLabels()), unlike("annotation", says.Metadata.Annotations, after.GetAnnotations()))
	if says.Metadata.OwnerReferences != nil {
		wanted := &metav1.ObjectMeta{OwnerReferences: says.Metadata.OwnerReferences}
		if controllerOf(wanted) != controllerOf(after) {
			what = append(what, "changed whom the object belongs to")
		}
	}
	if len(what) == 0 && after.GetResourceVersion() == before.GetResourceVersion() {
		what = append(what, "changed nothing")
	}
	if len(what) == 0 {
		return nil
	}
	return &AlteredError{What: listed(what)}
}

// CheckMember compares the answer to the create of a pod with what makes it one of a set's: its controller, labels that the selector
// matches, its revision, and the mark of surge. A member that lacks the label of its revision is known by its content.
func CheckMember(owner types.UID, selector labels.Selector, sent, after metav1.Object) error {
	if controllerOf(after) != owner {
		return &AlteredError{What: "changed whom the object belongs to, so that it is none of the set's"}
	}
	if !selector.Matches(labels.Set(after.GetLabels())) {
		wanted := map[string]*string{}
		for key, value := range sent.GetLabels() {
			wanted[key] = &value
		}
		return &AlteredError{What: listed(unlike("label", wanted, after.GetLabels())) + ", so that the selector does not match"}
	}
	_, surge := sent.GetLabels()[v1beta1.SurgeLabel]
	for _, key := range []string{v1beta1.RevisionLabel, v1beta1.SurgeLabel} {
		want := sent.GetLabels()[key]
		has, labeled := after.GetLabels()[key]
		if has != want && (labeled || surge) {
			return &AlteredError{What: fmt.Sprintf("changed label %s from %q to %q, so that the pod is not what the set needs", key, want, has)}
		}
	}
	return nil
}

// listed lists differences, only the first ones if there are many.
func listed(what []string) string {
	if more := len(what) - maxAltered; more > 0 {
		what = append(what[:maxAltered:maxAltered], fmt.Sprintf("and %d more changes", more))
	}
	return strings.Join(what, ", ")
}

func controllerOf(object metav1.Object) types.UID {
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		return controller.UID
	}
	return ""
}

// unlike says, in a fixed order, which of the wanted values an object does not have.
func unlike(kind string, wanted map[string]*string, has map[string]string) (what []string) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value, some := has[key]
		switch want := wanted[key]; {
		case want == nil && some:
			what = append(what, "kept "+kind+" "+key)
		case want != nil && !some:
			what = append(what, "dropped "+kind+" "+key)
		case want != nil && value != *want:
			what = append(what, fmt.Sprintf("changed %s %s to %q", kind, key, value))
		}
	}
	return what
}
