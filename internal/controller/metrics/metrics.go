// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the controller does, and shows how sets are.
//
// The rule: a set has at most one series of each metric, and none when it is gone.
package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/attempt"
)

// Metrics are the manager's own, beside those of controller-runtime.
type Metrics struct {
	created, deleted, updated *prometheus.CounterVec
	rollouts                  prometheus.Histogram
	unavailable               *prometheus.GaugeVec
	blocked                   *prometheus.GaugeVec
	unhealthy                 *prometheus.GaugeVec
	// step, steps and stepSince are about rollouts in steps: the step at work, how many there are, and since when.
	step, steps, stepSince *prometheus.GaugeVec
}

// The values of the label "result".
const (
	resultDone   = "success"
	resultFailed = "error"
)

// New registers the metrics. Those about the cache are read from the store.
func New(registry prometheus.Registerer, store *expectations.Store) *Metrics {
	m := &Metrics{
		created: counter("rollset_pods_created_total", "Pods created, by result."),
		deleted: counter("rollset_pods_deleted_total", "Pods deleted, by result."),
		updated: counter("rollset_pod_updates_total", "Writes for updates of pods in place, by result."),
		rollouts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                        "rollset_rollout_duration_seconds",
			Help:                        "Time from a new revision to its completion.",
			Buckets:                     prometheus.ExponentialBuckets(1, 2, 14), // 1 s to 2¼ h
			NativeHistogramBucketFactor: 1.1,
		}),
		unavailable: gauge("rollset_replicas_unavailable", "Wanted pods that are missing or not available."),
		blocked:     gauge("rollset_blocked", "1 for sets that wait, by what they wait for first.", "reason"),
		unhealthy: gauge("rollset_unhealthy",
			"1 for each condition of a set that is as it should not be: Available=False, DisruptionReady=False, ReplicaFailure and Stalled.", "condition", "reason"),
		step: gauge("rollset_rollout_step", "The step at work of a rollout in steps, by what it waits for. "+
			"One more than there are when all are done, 0 while the revision is given up.", "phase"),
		steps: gauge("rollset_rollout_steps", "How many steps a rollout in steps has."),
		stepSince: gauge("rollset_rollout_since_timestamp_seconds",
			"When the pods of the step at work became available; while the phase is Rolling, when that began."),
	}
	registry.MustRegister(m.created, m.deleted, m.updated, m.rollouts, m.unavailable, m.blocked, m.unhealthy, m.step, m.steps, m.stepSince)
	ofCache(registry, store)
	return m
}

// OfClock registers the metric about the manager's clock.
func OfClock(registry prometheus.Registerer, ahead func() time.Duration) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rollset_clock_ahead_seconds",
		Help: "By how much the manager's clock is ahead of the API server's; negative if it is behind, 0 for less than a few seconds.",
	}, func() float64 { return ahead().Seconds() }))
}

// ofCache registers the metrics about writes that the cache does not show yet.
func ofCache(registry prometheus.Registerer, store *expectations.Store) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollset_expectations_unmet",
			Help: "Sets whose last writes the cache does not show yet, as far as has been looked.",
		}, func() float64 { return float64(store.Unmet()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollset_expectations_oldest_seconds",
			Help: "For how long the set that waits longest has waited for the cache to show its last writes.",
		}, func() float64 { return store.Oldest().Seconds() }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rollset_expectations_expired_total",
			Help: "Writes that the cache never showed.",
		}, func() float64 { return float64(store.Expired()) }),
	)
}

// counter returns a counter of writes by result.
func counter(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
}

// gauge returns a gauge of each set, by more labels.
func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, append([]string{"namespace", "rollset"}, labels...))
}

// Wrote counts the results of a plan.
func (m *Metrics) Wrote(creates, deletes, updates attempt.Tally) {
	for vec, writes := range map[*prometheus.CounterVec]attempt.Tally{m.created: creates, m.deleted: deletes, m.updated: updates} {
		vec.WithLabelValues(resultDone).Add(float64(writes.Done))
		vec.WithLabelValues(resultFailed).Add(float64(writes.Failed))
	}
}

// Shown is which series there are of a set. The zero Shown is that of a set that has none.
type Shown struct {
	// blocking is the last known reason to wait.
	blocking string
	// troubles are the conditions that were last seen as they should not be.
	troubles []trouble
	// phase is the last known reason of a step to wait; empty if none was at work.
	phase v1beta1.RolloutPhase
	// revision is the one that pods are being moved to, and since when; empty if none is.
	revision string
	since    time.Time
}

// Observation is the state of a set.
type Observation struct {
	Set types.NamespacedName
	// Status is the new status, and Blocking the kind of the first thing that the set waits for; empty if there is none.
	Status   *v1beta1.RollSetStatus
	Blocking string
	// Replicas is how many pods are wanted.
	Replicas int
	// Update is the name of the update revision.
	Update string
	Now    time.Time
}

// Observed notes the state of a set, and how long a rollout took that has just been completed.
func (m *Metrics) Observed(o Observation, was *Shown) {
	key := []string{o.Set.Namespace, o.Set.Name}
	missing := o.Replicas - int(o.Status.AvailableReplicas)
	m.unavailable.WithLabelValues(key...).Set(float64(max(0, missing)))

	if was.blocking != o.Blocking {
		m.blocked.DeleteLabelValues(append(key, was.blocking)...)
		if o.Blocking != "" {
			m.blocked.WithLabelValues(append(key, o.Blocking)...).Set(1)
		}
		was.blocking = o.Blocking
	}
	m.judged(o, was)
	m.stepped(o, was)
	switch {
	case o.Status.CurrentRevision != o.Update:
		if was.revision != o.Update {
			was.revision, was.since = o.Update, o.Now
		}
	case was.revision == o.Update:
		m.rollouts.Observe(o.Now.Sub(was.since).Seconds())
		was.revision = ""
	}
}

// stepped notes which step of a rollout is at work, if any is.
func (m *Metrics) stepped(o Observation, was *Shown) {
	now := o.Status.Rollout
	if now == nil && was.phase == "" {
		return
	}
	key := []string{o.Set.Namespace, o.Set.Name}
	if now == nil || now.Phase != was.phase {
		m.step.DeleteLabelValues(append(key, string(was.phase))...)
	}
	if now == nil {
		m.steps.DeleteLabelValues(key...)
		m.stepSince.DeleteLabelValues(key...)
		was.phase = ""
		return
	}
	m.step.WithLabelValues(append(key, string(now.Phase))...).Set(float64(now.Step))
	m.steps.WithLabelValues(key...).Set(float64(now.Steps))
	if now.Since != nil {
		m.stepSince.WithLabelValues(key...).Set(float64(now.Since.Unix()))
	}
	was.phase = now.Phase
}

// trouble is a condition that is as it should not be, with its reason.
type trouble struct{ condition, reason string }

// judged notes which conditions of a set are as they should not be.
func (m *Metrics) judged(o Observation, was *Shown) {
	var now []trouble
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; amiss(c) {
			now = append(now, trouble{c.Type, c.Reason})
		}
	}
	if slices.Equal(now, was.troubles) {
		return
	}
	for _, t := range was.troubles {
		m.unhealthy.DeleteLabelValues(o.Set.Namespace, o.Set.Name, t.condition, t.reason)
	}
	for _, t := range now {
		m.unhealthy.WithLabelValues(o.Set.Namespace, o.Set.Name, t.condition, t.reason).Set(1)
	}
	was.troubles = now
}

// amiss reports whether a condition of ours asks for attention. That a set is not ready does not: it may be on its way.
func amiss(c *metav1.Condition) bool {
	switch c.Type {
	case v1beta1.ConditionAvailable, v1beta1.ConditionDisruptionReady:
		return c.Status == metav1.ConditionFalse
	case v1beta1.ConditionReplicaFailure, v1beta1.ConditionStalled:
		return c.Status == metav1.ConditionTrue
	default:
		return false
	}
}

// Forget drops the metrics of a set that is gone.
func (m *Metrics) Forget(set types.NamespacedName) {
	labels := prometheus.Labels{"namespace": set.Namespace, "rollset": set.Name}
	m.unavailable.DeletePartialMatch(labels)
	m.blocked.DeletePartialMatch(labels)
	m.unhealthy.DeletePartialMatch(labels)
	m.step.DeletePartialMatch(labels)
	m.steps.DeletePartialMatch(labels)
	m.stepSince.DeletePartialMatch(labels)
}
