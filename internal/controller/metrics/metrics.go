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

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/status"
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
		created: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollset_pods_created_total",
			Help: "Pods created, by result.",
		}, []string{"result"}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollset_pods_deleted_total",
			Help: "Pods deleted, by result.",
		}, []string{"result"}),
		updated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollset_pod_updates_total",
			Help: "Writes for updates of pods in place, by result.",
		}, []string{"result"}),
		rollouts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                        "rollset_rollout_duration_seconds",
			Help:                        "Time from a new revision to its completion.",
			Buckets:                     prometheus.ExponentialBuckets(1, 2, 14), // 1 s to 2¼ h
			NativeHistogramBucketFactor: 1.1,
		}),
		unavailable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollset_replicas_unavailable",
			Help: "Wanted pods that are missing or not available.",
		}, []string{"namespace", "rollset"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollset_blocked",
			Help: "1 for sets that wait, by what they wait for first.",
		}, []string{"namespace", "rollset", "reason"}),
		unhealthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollset_unhealthy",
			Help: "1 for each condition of a set that is as it should not be: Available=False, ReplicaFailure and Stalled.",
		}, []string{"namespace", "rollset", "condition", "reason"}),
		step: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollset_rollout_step",
			Help: "The step at work of a rollout in steps, by what it waits for. One more than there are when all are done, 0 while the revision is given up.",
		}, []string{"namespace", "rollset", "phase"}),
		steps: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollset_rollout_steps",
			Help: "How many steps a rollout in steps has.",
		}, []string{"namespace", "rollset"}),
		stepSince: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollset_rollout_since_timestamp_seconds",
			Help: "When the pods of the step at work became available; while the phase is Rolling, when that began.",
		}, []string{"namespace", "rollset"}),
	}
	registry.MustRegister(m.created, m.deleted, m.updated, m.rollouts, m.unavailable, m.blocked, m.unhealthy,
		m.step, m.steps, m.stepSince,
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
	return m
}

// Wrote counts the results of a plan.
func (m *Metrics) Wrote(result podcontrol.Result) {
	m.created.WithLabelValues(resultDone).Add(float64(result.Creates.Done))
	m.created.WithLabelValues(resultFailed).Add(float64(result.Creates.Failed))
	m.deleted.WithLabelValues(resultDone).Add(float64(result.Deletes.Done))
	m.deleted.WithLabelValues(resultFailed).Add(float64(result.Deletes.Failed))
	m.updated.WithLabelValues(resultDone).Add(float64(result.Updates.Done))
	m.updated.WithLabelValues(resultFailed).Add(float64(result.Updates.Failed))
}

// Shown is which series there are of a set. The zero Shown is that of a set that has none.
type Shown struct {
	// blocking is what the set was last seen waiting for.
	blocking status.Blocking
	// troubles are the conditions that were last seen as they should not be.
	troubles []trouble
	// phase is what a step of the set was last seen waiting for; empty if none was at work.
	phase v1alpha1.RolloutPhase
	// revision is the one that pods are being moved to, and since when; empty if none is.
	revision string
	since    time.Time
}

// Observation is the state of a set.
type Observation struct {
	Set    types.NamespacedName
	Report status.Report
	// Replicas is how many pods are wanted.
	Replicas int
	// Update is the name of the update revision.
	Update string
	Now    time.Time
}

// Observed notes the state of a set, and how long a rollout took that has just been completed.
func (m *Metrics) Observed(o Observation, was *Shown) {
	key := []string{o.Set.Namespace, o.Set.Name}
	missing := o.Replicas - int(o.Report.Status.AvailableReplicas)
	m.unavailable.WithLabelValues(key...).Set(float64(max(0, missing)))

	if was.blocking != o.Report.Blocking {
		m.blocked.DeleteLabelValues(append(key, string(was.blocking))...)
		if o.Report.Blocking != "" {
			m.blocked.WithLabelValues(append(key, string(o.Report.Blocking))...).Set(1)
		}
		was.blocking = o.Report.Blocking
	}
	m.judged(o, was)
	m.stepped(o, was)
	switch {
	case o.Report.Status.CurrentRevision != o.Update:
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
	now := o.Report.Status.Rollout
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
	for i := range o.Report.Status.Conditions {
		if c := &o.Report.Status.Conditions[i]; amiss(c) {
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
	case v1alpha1.ConditionAvailable:
		return c.Status == metav1.ConditionFalse
	case v1alpha1.ConditionReplicaFailure, v1alpha1.ConditionStalled:
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
