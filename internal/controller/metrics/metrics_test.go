// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/status"
	"rollset.dev/rollset/test/metricsdoc"
)

// TestBlocked follows sets that wait for one thing after another: each has one series at most.
func TestBlocked(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := New(registry, expectations.New(clock.RealClock{}))
	shown := map[string]*Shown{"a": {}, "b": {}}
	wait := func(name string, what status.Blocking) {
		m.Observed(Observation{Set: named(name), Status: &v1beta1.RollSetStatus{}, Blocking: string(what)}, shown[name])
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
	m.Forget(named("b"))
	expect()
}

// TestUnhealthy follows the conditions of sets: only those that ask for attention have series.
func TestUnhealthy(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := New(registry, expectations.New(clock.RealClock{}))
	var shown Shown
	condition := func(name string, is metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: name, Status: is, Reason: reason}
	}
	report := func(conditions []metav1.Condition, want ...string) {
		t.Helper()
		m.Observed(Observation{Set: named("a"), Status: &v1beta1.RollSetStatus{Conditions: conditions}}, &shown)
		if diff := cmp.Diff(want, series(t, registry, "rollset_unhealthy")); diff != "" {
			t.Errorf("rollset_unhealthy (-want +got):\n%s", diff)
		}
	}
	report([]metav1.Condition{
		condition("Ready", metav1.ConditionFalse, "RollingUpdate"),
		condition("Available", metav1.ConditionTrue, "MinimumPodsAvailable"),
		condition("Progressing", metav1.ConditionFalse, "RolledBack"),
		condition("Foreign", metav1.ConditionFalse, "Anything"),
	})
	few := condition("Available", metav1.ConditionFalse, "TooFewPodsAvailable")
	failure := func(reason string) metav1.Condition {
		return condition("ReplicaFailure", metav1.ConditionTrue, reason)
	}
	report([]metav1.Condition{few, failure("FailedCreate")},
		"default a Available TooFewPodsAvailable", "default a ReplicaFailure FailedCreate")
	report([]metav1.Condition{failure("FailedDelete"), condition("Stalled", metav1.ConditionTrue, "RolledBack")},
		"default a ReplicaFailure FailedDelete", "default a Stalled RolledBack")
	report([]metav1.Condition{condition("Available", metav1.ConditionUnknown, "InvalidSpec"), condition("DisruptionReady", metav1.ConditionTrue, "InForce")})
	report([]metav1.Condition{condition("DisruptionReady", metav1.ConditionFalse, "MissingRights")}, "default a DisruptionReady MissingRights")
	report([]metav1.Condition{few}, "default a Available TooFewPodsAvailable")
	m.Forget(named("a"))
	if left := series(t, registry, "rollset_unhealthy"); left != nil {
		t.Errorf("rollset_unhealthy of a set that is gone: %v", left)
	}
}

// TestStepMetrics follows a rollout in steps: it has one series of each metric, and none when it is over or the set is gone.
func TestStepMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := New(registry, expectations.New(clock.RealClock{}))
	shown := map[string]*Shown{"a": {}, "b": {}}
	report := func(name string, now *v1beta1.RolloutStatus, want ...string) {
		t.Helper()
		m.Observed(Observation{Set: named(name), Status: &v1beta1.RollSetStatus{Rollout: now}}, shown[name])
		expectSteps(t, registry, want...)
	}
	at := func(n int32, phase v1beta1.RolloutPhase, since int64) *v1beta1.RolloutStatus {
		return &v1beta1.RolloutStatus{Step: n, Steps: 4, Phase: phase, Since: new(metav1.Unix(since, 0))}
	}
	report("a", nil)
	report("a", at(1, v1beta1.RolloutRolling, 7), "step default a Rolling 1", "steps default a 4", "since default a 7")
	report("a", at(1, v1beta1.RolloutSoaking, 9), "step default a Soaking 1", "steps default a 4", "since default a 9")
	report("a", at(2, v1beta1.RolloutSoaking, 9), "step default a Soaking 2", "steps default a 4", "since default a 9")
	report("b", at(0, v1beta1.RolloutFailed, 3), "step default a Soaking 2", "step default b Failed 0",
		"steps default a 4", "steps default b 4", "since default a 9", "since default b 3")
	report("a", nil, "step default b Failed 0", "steps default b 4", "since default b 3")
	m.Forget(named("b"))
	expectSteps(t, registry)
}

// expectSteps compares the series of the metrics about steps.
func expectSteps(t *testing.T, registry *prometheus.Registry, want ...string) {
	t.Helper()
	var got []string
	for short, name := range map[string]string{
		"step": "rollset_rollout_step", "steps": "rollset_rollout_steps", "since": "rollset_rollout_since_timestamp_seconds",
	} {
		for labels, value := range samples(t, registry, name) {
			got = append(got, fmt.Sprint(short, " ", labels, " ", value))
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// TestDocumentedMetrics compares what is registered with the tables in docs/observability.md.
func TestDocumentedMetrics(t *testing.T) {
	t.Parallel()
	documented, err := metricsdoc.Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(documented, func(name string, _ metricsdoc.Metric) bool { return !strings.HasPrefix(name, "rollset_") })
	registry := prometheus.NewRegistry()
	m := New(registry, expectations.New(clock.RealClock{}))
	OfClock(registry, func() time.Duration { return 0 })
	m.Wrote(attempt.Tally{}, attempt.Tally{}, attempt.Tally{})
	m.Observed(Observation{
		Set: named("a"), Blocking: string(status.BlockedByPod),
		Status: &v1beta1.RollSetStatus{Conditions: []metav1.Condition{
			{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonRolledBack},
		}, Rollout: &v1beta1.RolloutStatus{Phase: v1beta1.RolloutFailed, Since: &metav1.Time{}}},
	}, &Shown{})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]metricsdoc.Metric{}
	for _, family := range families {
		metric := metricsdoc.Metric{Type: strings.ToLower(family.GetType().String())}
		for _, label := range family.GetMetric()[0].GetLabel() {
			metric.Labels = append(metric.Labels, label.GetName())
		}
		served[family.GetName()] = metric
	}
	inAnyOrder := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(documented, served, inAnyOrder); diff != "" {
		t.Errorf("metrics (-documented +registered):\n%s", diff)
	}
}

// named is the name of a set in the default namespace.
func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// series are the values of the labels of all series of a metric, in order.
func series(t *testing.T, registry *prometheus.Registry, name string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(samples(t, registry, name)))
}

// samples are the values of all series of a gauge, by the values of their labels.
func samples(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			byName := map[string]string{}
			for _, label := range metric.GetLabel() {
				byName[label.GetName()] = label.GetValue()
			}
			values := []string{byName["namespace"], byName["rollset"], byName["condition"], byName["reason"], byName["phase"]}
			key := strings.Join(slices.DeleteFunc(values, func(v string) bool { return v == "" }), " ")
			all[key] = metric.GetGauge().GetValue()
		}
	}
	return all
}
