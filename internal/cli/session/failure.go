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

	"rollset.dev/rollset/api/v1alpha1"
)

// The exit codes that commands share.
const (
	// ExitFailed is for what went wrong.
	ExitFailed = 1
	// ExitTimeout is for what was waited for and did not come in time.
	ExitTimeout = 2
	// ExitInterrupted is for a command that its user has ended.
	ExitInterrupted = 130
)

// ExitError ends the process with a code of its own.
type ExitError struct {
	// Code is the exit code.
	Code int
	// Err is what went wrong; nil if all has been said.
	Err error
}

// Error returns what went wrong.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns what went wrong.
func (e *ExitError) Unwrap() error { return e.Err }

// Explain returns what a user is told of a failure: one line, with what to do about it where that is known.
func Explain(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	switch urlError, isURL := errors.AsType[*url.Error](err); {
	case isNoRollSets(err):
		return fmt.Sprintf("this cluster has no RollSets: the API server does not serve %s; install RollSet first", v1alpha1.GroupVersion)
	case apierrors.IsForbidden(err) && strings.Contains(text, v1alpha1.GroupVersion.Group):
		return text + "; the cluster role rollset-editor-role gives it"
	case apierrors.IsUnauthorized(err):
		return text + "; log in again"
	case isURL && isUnreachable(urlError):
		return "the API server does not answer: " + strings.Join(strings.Fields(urlError.Error()), " ")
	default:
		return text
	}
}

// isUnreachable reports whether a request failed on its way, not by what the API server said.
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
	if details == nil || details.Group != v1alpha1.GroupVersion.Group {
		return false
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return details.Name == ""
}
