// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rollset.dev/rollset/internal/model/attempt"
)

func TestRefused(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for err, want := range map[error]bool{
		&attempt.AlteredError{}: true,
		apierrors.NewForbidden(pods, "web", errors.New("exceeded quota: pods")):                                     true,
		apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil):                                             true,
		apierrors.NewBadRequest("a webhook denied the request"):                                                     true,
		apierrors.NewForbidden(pods, "web", errors.New(`User "web" cannot create resource "pods" in API group ""`)): false,
		apierrors.NewForbidden(pods, "web", errors.New(`policy: "web" cannot run as root`)):                         true,
		apierrors.NewForbidden(pods, "web", errors.New(`no quota for resource "pods"`)):                             true,
		apierrors.NewNotFound(pods, "web"):                                                                          false,
		apierrors.NewConflict(pods, "web", errors.New("it changed")):                                                false,
		errors.New("context deadline exceeded"):                                                                     false,
	} {
		if got := attempt.Refused(err); got != want {
			t.Errorf("Refused(%v) = %v, want %v", err, got, want)
		}
	}
}

func TestByRule(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for err, want := range map[error]bool{
		&attempt.AlteredError{}: true,
		apierrors.NewForbidden(pods, "web", errors.New("exceeded quota: pods")):                               true,
		apierrors.NewBadRequest("admission webhook denied the request: no"):                                   true,
		apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil):                                       false,
		apierrors.NewForbidden(pods, "web", errors.New("node didn't have enough allocatable resources: cpu")): false,
		apierrors.NewConflict(pods, "web", errors.New("it changed")):                                          false,
	} {
		if got := attempt.ByRule(err); got != want {
			t.Errorf("ByRule(%v) = %v, want %v", err, got, want)
		}
	}
}

func TestInTrouble(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}: true,
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}:      false,
		apierrors.NewInternalError(errors.New("etcd")):                                     true,
		apierrors.NewInternalError(errors.New("failed calling webhook")):                   false,
		apierrors.NewTooManyRequests("later", 1):                                           true,
		apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("it changed")):     false,
	} {
		if got := attempt.InTrouble(err); got != want {
			t.Errorf("InTrouble(%v) = %v, want %v", err, got, want)
		}
	}
}

func TestMayHaveHappened(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("exceeded quota: pods"))
	cut := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	nobody := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for err, want := range map[error]bool{
		quota: false, cut: true, nobody: false,
		apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil): false,
		apierrors.NewInternalError(errors.New("etcd")):                  true,
		apierrors.NewTooManyRequests("later", 1):                        false,
		apierrors.NewServerTimeout(schema.GroupResource{}, "c", 1):      true,
		apierrors.NewTimeoutError("late", 1):                            true,
		fmt.Errorf("create: %w", quota):                                 false,
		errors.New("context deadline exceeded"):                         true,
	} {
		if got := attempt.MayHaveHappened(err); got != want {
			t.Errorf("MayHaveHappened(%v) = %v, want %v", err, got, want)
		}
	}
}

// TestTally keeps the first error of several.
func TestTally(t *testing.T) {
	t.Parallel()
	var tally attempt.Tally
	for i, want := range []string{"first", "2 writes: first", "3 writes: first"} {
		tally.Fail(errors.New([]string{"first", "second", "third"}[i]))
		if got := tally.String(); got != want {
			t.Errorf("after %d: %q, want %q", i+1, got, want)
		}
	}
}
