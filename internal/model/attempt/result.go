// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// An API server in trouble answers with one of these HTTP status codes, or with one above internalError.
const (
	tooManyRequests = 429
	internalError   = 500
)

// Result is the result of an attempt to write.
type Result struct {
	// Key names the write. Writes of one verb share a key if they fail for the same cause: a full quota, or an API server
	// that fails.
	Key Key
	// Seen is the resourceVersion at which the object was judged; empty if there was none.
	Seen string
	// Err is why the write had no effect; nil if the object is as planned.
	Err error
	// Overtaken is true if the object changed since it was judged, Blocked if something blocks the identity, and OfClaim if a claim of the
	// pod could not be written, so that the pod was not.
	Overtaken, Blocked, OfClaim bool
}

// RefusesResize reports whether the API server refused to resize a pod. The plan then uses another way.
func (r Result) RefusesResize() bool { return r.Key.Verb == Resizing && Refused(r.Err) }

// Tally counts the writes that succeeded and failed. It keeps the first error.
type Tally struct {
	Done, Failed int
	Err          error
}

// Fail counts a write that failed.
func (t *Tally) Fail(err error) {
	t.Failed++
	if t.Err == nil {
		t.Err = err
	}
}

// String describes why the first write failed, and how many did.
func (t *Tally) String() string {
	if t.Failed == 1 {
		return t.Err.Error()
	}
	return fmt.Sprintf("%d writes: %s", t.Failed, t.Err)
}

// Refused reports whether the API server understood a write and refused it. A resize beyond the node's capacity is
// forbidden, as is a pod beyond a quota. A resize that would change the QoS class is invalid. If the client lacks the rights,
// the write was not looked at. A write that was accepted and did not do what it says counts as refused.
func Refused(err error) bool {
	return IsAltered(err) || (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !LacksRights(err)
}

// ByRule reports whether a quota, a limit range, a policy or a webhook refused a write, and not the API server for what the
// write asks of an object that runs on a node. A rule refuses another object of the same content too. What is not known to
// concern the node counts as a rule.
func ByRule(err error) bool {
	if !Refused(err) {
		return false
	}
	text := err.Error()
	if IsAltered(err) || strings.Contains(text, "denied the request") || strings.Contains(text, " denied request: ") {
		return true
	}
	concernsNode := func(words string) bool { return strings.Contains(text, words) }
	return apierrors.IsForbidden(err) && !slices.ContainsFunc([]string{
		"node didn't have enough allocatable resources", "pod resize is only supported on", "which are not available on node",
	}, concernsNode)
}

// LacksRights reports whether the API server refused a write because the client may not make such writes, whatever their content. An
// API server that has just started answers like that until it knows the roles. One that checks owner references does for some seconds
// after the CustomResourceDefinition got another version. Only its message distinguishes this from the refusal of a policy.
func LacksRights(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, `" cannot `) && strings.Contains(text, ` resource "`) || strings.Contains(text, "cannot set blockOwnerDeletion ")
}

// MayHaveHappened reports whether the API server may have carried out a failed write: it gave no answer, or reported an
// internal error. The outcome is known if it refused or altered the write, if a webhook failed, or if no connection was accepted.
func MayHaveHappened(err error) bool {
	if IsAltered(err) {
		return false
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= internalError && !blamesWebhook(err)
	}
	return !utilnet.IsConnectionRefused(err)
}

// InTrouble reports whether the API server itself fails or is overloaded, so that every other write would fail too.
func InTrouble(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return utilnet.IsConnectionRefused(err)
	}
	code := status.Status().Code
	return (code >= internalError || code == tooManyRequests) && !blamesWebhook(err)
}

// blamesWebhook reports whether an admission webhook refused a write or failed to judge it. Both happen before anything is
// written. Only the message of the API server shows this.
func blamesWebhook(err error) bool {
	return strings.Contains(err.Error(), `admission webhook "`) || strings.Contains(err.Error(), "failed calling webhook")
}
