// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}
	conflict := apierrors.NewConflict(resource, "web-1", errors.New("changed"))
	forbidden := apierrors.NewForbidden(resource, "web-1", errors.New("not allowed"))
	terminating := apierrors.NewForbidden(resource, "web-1", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}

	tests := map[string]struct {
		wait     time.Duration
		err      error
		wantWait time.Duration
		wantErr  bool
	}{
		"all is well":                                 {wait: time.Minute, wantWait: time.Minute},
		"nothing to wait for":                         {},
		"a conflict is looked at again":               {wait: time.Minute, err: fmt.Errorf("write: %w", conflict), wantWait: lookAgain},
		"a refusal is tried again with back-off":      {wait: time.Minute, err: fmt.Errorf("write: %w", forbidden), wantErr: true},
		"a namespace that goes is left to itself":     {wait: time.Minute, err: fmt.Errorf("create: %w", terminating)},
		"a namespace that goes, beside another error": {err: errors.Join(errors.New("event"), fmt.Errorf("create: %w", terminating))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := answer(later(test.wait), test.err)
			if result.RequeueAfter != test.wantWait || (err != nil) != test.wantErr {
				t.Errorf("answer(%v, %v) = %v, %v; want %v, error %t", test.wait, test.err, result.RequeueAfter, err, test.wantWait, test.wantErr)
			}
		})
	}
}
