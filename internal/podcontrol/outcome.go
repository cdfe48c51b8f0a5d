// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"errors"
	"net/http"

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
	// infeasible is what the API server said against a resize that it will never carry out for this pod.
	infeasible string
	// err is set if the write failed; pod is true if it was that of a pod, and not of one of its claims.
	err error
	pod bool
}

// mayHaveHappened says of a failing write whether the API server may have carried it out all the same: it gave no
// answer, or one that speaks of its own trouble. An answer that refuses the write, and a connection that nobody
// accepted, leave no doubt.
func mayHaveHappened(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError
	}
	return !utilnet.IsConnectionRefused(err)
}

// namespaceGone says whether a create was refused because its namespace is being deleted or no longer exists.
func namespaceGone(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)
}
