// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"errors"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"rollset.dev/rollset/internal/model/snapshot"
)

// outcome is the result of the writes for one identity. The zero outcome means that the objects are as planned, though
// perhaps another client made them so.
type outcome struct {
	// done is true if this writer wrote or deleted the pod.
	done bool
	// block is set if something blocks only this identity.
	block *snapshot.Block
	// stale is true if the pod changed since it was judged.
	stale bool
	// err is set if the write failed. pod is true if the write was that of a pod, not of one of its claims.
	err error
	pod bool
}

// MayHaveHappened reports whether the API server may have carried out a failed write: it gave no answer, or reported an
// internal error. There is no doubt if it refused the write, if a webhook failed, or if no connection was accepted.
func MayHaveHappened(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError && !blamesWebhook(err)
	}
	return !utilnet.IsConnectionRefused(err)
}

// inTrouble reports whether the API server itself fails or is overloaded, so that every other write would fail too.
func inTrouble(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return utilnet.IsConnectionRefused(err)
	}
	code := status.Status().Code
	return (code >= http.StatusInternalServerError || code == http.StatusTooManyRequests) && !blamesWebhook(err)
}

// blamesWebhook reports whether an admission webhook refused a write or failed to judge it. Both happen before anything is
// written. Only the message of the API server tells.
func blamesWebhook(err error) bool {
	return strings.Contains(err.Error(), `admission webhook "`) || strings.Contains(err.Error(), "failed calling webhook")
}

// namespaceGone reports whether a create was refused because its namespace is being deleted or no longer exists.
func namespaceGone(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}
