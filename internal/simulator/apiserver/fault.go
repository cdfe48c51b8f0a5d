// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/url"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Fault is a fault of one write.
type Fault string

// The faults. Some commit the write although the client receives an error or no answer.
const (
	NoFault        Fault = ""
	Refused409     Fault = "conflict"
	Refused429     Fault = "too many requests"
	Refused403     Fault = "forbidden"
	NoRights       Fault = "no rights"
	Failed500      Fault = "internal error"
	TimeoutLost    Fault = "timeout, not committed"
	TimeoutWritten Fault = "timeout, committed"
	TimeoutLate    Fault = "timeout, committed later"
	Unreachable    Fault = "connection refused"
	CrashBefore    Fault = "crash before the write"
	CrashAfter     Fault = "crash after the write"
)

// FaultPlan chooses the fault of a manager's write.
type FaultPlan func(Write) Fault

// Crash is the value of the panic that unwinds a manager's reconcile when its process dies.
type Crash struct{}

// commits reports whether the write is committed.
func (f Fault) commits() bool { return f == NoFault || f == TimeoutWritten || f == CrashAfter }

// Crashes reports whether the fault ends the manager's process.
func (f Fault) Crashes() bool { return f == CrashBefore || f == CrashAfter }

// err returns the error that the client receives.
func (f Fault) err(w Write) error {
	gr, name := GroupResource(w.Key.Kind), w.Key.Name
	switch f {
	case Refused409:
		return apierrors.NewConflict(gr, name, fmt.Errorf("sim: %s", f))
	case Refused429:
		return apierrors.NewTooManyRequests("sim: too many requests", 1)
	case Refused403:
		return apierrors.NewForbidden(gr, name, fmt.Errorf("sim: %s", f))
	case NoRights:
		return ErrNoRights(w)
	case Failed500:
		return apierrors.NewInternalError(fmt.Errorf("sim: %s", f))
	case Unreachable:
		return &url.Error{Op: string(w.Verb), URL: w.Key.String(), Err: syscall.ECONNREFUSED}
	case TimeoutLost, TimeoutWritten, TimeoutLate:
		return &url.Error{Op: string(w.Verb), URL: w.Key.String(), Err: context.DeadlineExceeded}
	default:
		return nil
	}
}

// ErrNoRights returns the refusal of a write that the client may not make. The name of the object is not looked at.
func ErrNoRights(w Write) error {
	gr := GroupResource(w.Key.Kind)
	resource := gr.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return apierrors.NewForbidden(gr, "", fmt.Errorf("%s cannot %s resource %q in API group %q", `User "manager"`, w.Verb, resource, gr.Group))
}
