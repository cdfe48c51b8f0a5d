// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/testing/settled"
)

// showing is a cache that shows one set, or none.
type showing struct {
	client.Client

	set *v1beta1.RollSet
}

// Get implements client.Reader.
func (s showing) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.set == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "rollsets"}, key.Name)
	}
	s.set.DeepCopyInto(into.(*v1beta1.RollSet)) //nolint:forcetypeassert // only sets are asked for
	return nil
}

// TestForgetIfGone checks that nothing stays in memory of a set that was deleted while it was reconciled.
func TestForgetIfGone(t *testing.T) {
	t.Parallel()
	set := settled.Set(1)
	successor := set.DeepCopy()
	successor.UID = "successor"
	for name, test := range map[string]struct {
		shown *v1beta1.RollSet
		unmet int
	}{
		"still there":          {shown: set, unmet: 1},
		"gone":                 {},
		"another of this name": {shown: successor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := expectations.New(clock.RealClock{})
			r := &Reconciler{
				Client: showing{set: test.shown}, Expectations: store, Metrics: metrics.New(prometheus.NewRegistry(), store), Line: NewLine(1, clock.RealClock{}),
			}
			r.Expectations.Wrote(set.UID, corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "7")
			r.forgetIfGone(t.Context(), set)
			if unmet := r.Expectations.Unmet(); unmet != test.unmet {
				t.Errorf("%d sets with expectations, want %d", unmet, test.unmet)
			}
		})
	}
}

// TestStatusOfSetsThatAreGone checks that a refused status is not logged as an error if the set was deleted or changed.
func TestStatusOfSetsThatAreGone(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "rollsets"}
	for name, test := range map[string]struct {
		refusal error
		logged  bool
	}{
		"gone":      {refusal: apierrors.NewNotFound(resource, "web")},
		"changed":   {refusal: apierrors.NewConflict(resource, "web", nil)},
		"forbidden": {refusal: apierrors.NewForbidden(resource, "web", nil), logged: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRestingSet(t, 1, 0)
			s.set.Generation++ // the status is to say that this was seen
			s.client.refusal = test.refusal
			var log strings.Builder
			logger := funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{})
			if _, err := s.reconciler.Reconcile(logr.NewContext(t.Context(), logger), s.set); err != nil {
				t.Fatal(err)
			}
			if logged := strings.Contains(log.String(), "cannot write the status"); logged != test.logged {
				t.Errorf("logged %v, want %v: %s", logged, test.logged, log.String())
			}
		})
	}
}
