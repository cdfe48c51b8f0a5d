// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/status"
)

// TestBlocked follows sets that wait for one thing after another: each has one series at most.
func TestBlocked(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, expectations.New(clock.RealClock{}))
	steps := map[string]step{}
	wait := func(name string, what status.Blocking) {
		s, ok := steps[name]
		if !ok {
			set := &v1alpha1.RollSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
			s = step{view: &view{set: set, memory: &recollection{}}, observed: &observed.Set{}}
			steps[name] = s
		}
		m.observed(s, status.Report{Blocking: what})
	}
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, series(t, registry, "rollset_blocked")); diff != "" {
			t.Errorf("rollset_blocked (-want +got):\n%s", diff)
		}
	}
	expect()
	wait("a", status.BlockedByScheduling)
	wait("b", status.BlockedByScheduling)
	expect("default a unscheduled", "default b unscheduled")
	wait("a", status.BlockedByPod)
	expect("default a not-ready", "default b unscheduled")
	wait("a", "")
	expect("default b unscheduled")
	m.forget(client.ObjectKeyFromObject(steps["b"].set))
	expect()
}

// series are the values of the labels of all series of a metric, as Prometheus sorts them.
func series(t *testing.T, registry *prometheus.Registry, name string) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			byName := map[string]string{}
			for _, label := range metric.GetLabel() {
				byName[label.GetName()] = label.GetValue()
			}
			all = append(all, strings.Join([]string{byName["namespace"], byName["rollset"], byName["reason"]}, " "))
		}
	}
	return all
}
