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

// outcome is what became of the writes for one identity. The zero outcome means that all is as it should be, though
// perhaps not by our doing.
type outcome struct {
	// done is true if we wrote the pod, or deleted it, ourselves.
	done bool
	// block is set if something is in the way of this identity only.
	block *snapshot.Block
	// stale is true if the pod is not as it was judged any more.
	stale bool
	// err is set if the write failed; pod is true if it was that of a pod, and not of one of its claims.
	err error
	pod bool
}

// MayHaveHappened says of a failing write whether the API server may have carried it out all the same: it gave no
// answer, or one that speaks of its own trouble. An answer that refuses the write, one that a webhook is to blame for, and a
// connection that nobody accepted leave no doubt.
func MayHaveHappened(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError && !blamesWebhook(err)
	}
	return !utilnet.IsConnectionRefused(err)
}

// inTrouble reports whether the API server itself is in trouble, or overloaded: what it says of one write it would say of all.
func inTrouble(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return utilnet.IsConnectionRefused(err)
	}
	code := status.Status().Code
	return (code >= http.StatusInternalServerError || code == http.StatusTooManyRequests) && !blamesWebhook(err)
}

// blamesWebhook reports whether an admission webhook refused a write or failed to judge it, which is before anything is
// written. Nothing but the words of the API server tells.
func blamesWebhook(err error) bool {
	return strings.Contains(err.Error(), `admission webhook "`) || strings.Contains(err.Error(), "failed calling webhook")
}

// namespaceGone says whether a create was refused because its namespace is being deleted or no longer exists.
func namespaceGone(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}
