// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/identity"
)

// ask asks the API server, by a create that it only pretends to carry out, whether it would accept a pod of a revision.
// The answer is empty if it would; a full quota says nothing about the pod.
func (w *writer) ask(ctx context.Context, a action.Preflight) {
	if w.result.Preflights == nil {
		w.result.Preflights = map[string]string{}
	}
	revision, ok := w.revision(a.Revision)
	if !ok {
		w.result.Preflights[a.Revision] = "its template is gone"
		return
	}
	pod := Build(w.set, revision, w.anyIdentity(a.Revision))
	err := w.Client.Create(ctx, pod, client.DryRunAll)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), quotaExceeded(err):
		w.result.Preflights[a.Revision] = ""
	default:
		w.result.Preflights[a.Revision] = err.Error()
	}
}

// anyIdentity is one that the set could give to a pod. Whether it is in use does not matter: the API server judges a pod
// before it looks whether the name is free.
func (w *writer) anyIdentity(revision string) string {
	if w.observation.Ordinal() {
		return strconv.Itoa(w.observation.Ordinals.At(0))
	}
	return identity.NewSequence(w.set.UID, revision).At(0)
}

// quotaExceeded says whether a create was refused only because there are too many pods already. There is no other sign of
// it than the words of the API server.
func quotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
