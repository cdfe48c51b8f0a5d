// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// These are the exit codes that commands share.
const (
	// ExitFailed is the exit code of a failure.
	ExitFailed = 1
	// ExitTimeout is the exit code when the command waited too long.
	ExitTimeout = 2
	// ExitPaused is the exit code of a rollout that waits for its set to be resumed.
	ExitPaused = 3
	// ExitOnDelete is the exit code of a rollout that waits for its user to delete the pods.
	ExitOnDelete = 4
	// ExitInterrupted is the exit code when the user stopped the command.
	ExitInterrupted = 130
)

// ExitError ends the process with its own exit code.
type ExitError struct {
	// Code is the exit code.
	Code int
	// Err is the failure; nil if it was printed already.
	Err error
}

// Error returns the text of the failure.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the failure.
func (e *ExitError) Unwrap() error { return e.Err }

// Explain returns the message about a failure for users: one line, with what to do about it if that is known.
func Explain(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	switch urlError, isURL := errors.AsType[*url.Error](err); {
	case isNoRollSets(err):
		return fmt.Sprintf("the API server does not serve RollSets of %s; install RollSet first, or upgrade its CustomResourceDefinition", v1beta1.GroupVersion)
	case apierrors.IsForbidden(err) && groupOf(err) == v1beta1.GroupVersion.Group:
		if strings.Contains(text, " cannot get ") || strings.Contains(text, " cannot list ") || strings.Contains(text, " cannot watch ") {
			return text + "; the cluster role rollset-viewer-role gives it"
		}
		return text + "; the cluster role rollset-editor-role gives it"
	case apierrors.IsUnauthorized(err):
		return text + "; log in again"
	case isURL && isUnreachable(urlError):
		return "the API server does not answer: " + strings.Join(strings.Fields(urlError.Error()), " ")
	default:
		return text
	}
}

// groupOf returns the API group of the resource that a request was about; empty if the answer does not name it.
func groupOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		return status.Status().Details.Group
	}
	return ""
}

// isUnreachable reports whether a request did not reach the API server.
func isUnreachable(err *url.Error) bool {
	_, isNet := errors.AsType[net.Error](err.Err)
	return isNet || errors.Is(err, context.DeadlineExceeded)
}

// isNoRollSets reports whether the API server does not know the kind at all. It answers with a 404 that names no object.
func isNoRollSets(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	if details == nil || details.Group != v1beta1.GroupVersion.Group {
		return false
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return details.Name == ""
}
