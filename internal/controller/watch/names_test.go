// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
)

func TestForgottenSetsWaitForNothing(t *testing.T) {
	t.Parallel()
	var r Router
	gone := &v1beta1.RollSet{}
	gone.Name, gone.UID = "web", "uid"
	set, pod := types.NamespacedName{Name: "web"}, types.NamespacedName{Name: "web-1"}
	r.Await(pod, set)
	r.NoteGone(gone.UID, "web-2")
	if got, ok := r.names.waiter(pod); !ok || got != set {
		t.Errorf("waiter = %v, %v, want %v", got, ok, set)
	}
	r.Forget(gone)
	if _, ok := r.names.waiter(pod); ok || len(r.TakeGone(gone.UID)) > 0 {
		t.Error("something is remembered")
	}
}
