// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// ask asks the API server, by a dry run of a create, whether it would accept a pod of a revision. A full quota is no answer
// about the pod. A webhook that does not support dry runs is not asked before the pod is created.
func (w creator) ask(ctx context.Context, a action.Preflight) {
	revision, ok := w.revision(a.Revision)
	if !ok {
		w.answered(a.Revision, snapshot.Preflight{Refusal: "its template is gone"})
		return
	}
	taken := w.taken()
	for range maxNames {
		id := w.freeIdentity(taken)
		pod := Build(w.set, revision, id)
		err := w.pretend(ctx, pod)
		w.answered(a.Revision, Answer(pod, err))
		if !apierrors.IsAlreadyExists(err) {
			return
		}
		taken[id] = true
	}
}

// maxNames is how many names a preflight tries. Pods that the cache does not show may have some of them.
const maxNames = 5

// pretend creates a pod by a dry run, and returns why there would be no such pod of the set.
func (w creator) pretend(ctx context.Context, pod *corev1.Pod) error {
	sent := pod.ObjectMeta
	if err := w.Client.Create(ctx, pod, client.DryRunAll); err != nil {
		return err
	}
	return w.checkMember(&sent, pod)
}

// Answer returns what the dry run of a pod's creation says about such pods.
func Answer(pod *corev1.Pod, err error) snapshot.Preflight {
	switch {
	case err == nil:
		return snapshot.Preflight{Pod: pod}
	case apierrors.IsAlreadyExists(err), quotaExceeded(err), cannotPretend(err): // the API server checks these after it has accepted the pod
		return snapshot.Preflight{}
	default:
		altered := attempt.IsAltered(err)
		return snapshot.Preflight{Refusal: err.Error(), Failed: !altered && !isVerdict(err), Altered: altered}
	}
}

// answered records what the API server says about pods of a revision.
func (w creator) answered(revision string, answer snapshot.Preflight) {
	if w.result.Preflights == nil {
		w.result.Preflights = map[string]snapshot.Preflight{}
	}
	w.result.Preflights[revision] = answer
}

// taken returns the identities that a pod has, or could not get.
func (w creator) taken() map[string]bool {
	taken := make(map[string]bool, len(w.snap.Replicas))
	for id := range w.snap.Blocked {
		taken[id] = true
	}
	for i := range w.snap.Replicas {
		taken[w.snap.Replicas[i].ID] = true
	}
	for k := range w.snap.Refusals {
		if k.Verb == attempt.Creating {
			taken[k.Object] = true
		}
	}
	for _, tried := range w.result.Attempts {
		if tried.Key.Verb == attempt.Creating {
			taken[tried.Key.Object] = true
		}
	}
	return taken
}

// freeIdentity returns an identity that the set could give to a pod, and that is not taken.
func (w creator) freeIdentity(taken map[string]bool) string {
	if !w.snap.Ordinal() {
		free := identity.NewSequence(w.set.UID).Next(w.snap.Issued, 1, func(id string) bool { return taken[id] })
		return strings.Join(free, "")
	}
	k := 0
	for taken[strconv.Itoa(w.snap.Ordinals.At(k))] {
		k++
	}
	return strconv.Itoa(w.snap.Ordinals.At(k))
}

// quotaExceeded reports whether a pod was refused only because the namespace has none of a resource left. Only the message of
// the API server shows this.
func quotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// cannotPretend reports whether a dry run failed because an admission webhook has side effects. Only the message of the API
// server shows this.
func cannotPretend(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// isVerdict reports whether an error is about the pod, and not about the manager's rights or a failing API server, webhook or
// namespace.
func isVerdict(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || namespaceGone(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) {
		return false
	}
	if attempt.LacksRights(err) {
		return false
	}
	if apierrors.IsConflict(err) { // for example a quota that others use at the same time
		return false
	}
	return status.Status().Code < http.StatusInternalServerError
}
