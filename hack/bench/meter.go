// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/usage"
)

// reading is the state of all counters at one time.
type reading struct {
	controller, cluster, busy, machine time.Duration
	reconciles                         int
}

// meter measures the cost of a work, from its creation to its end.
type meter struct {
	session *session
	before  reading
	log     audit.Log
}

func (s *session) meter(ctx context.Context) (m *meter, err error) {
	m = &meter{session: s}
	if m.log, err = audit.From(s.AuditLog); err != nil {
		return nil, err
	}
	if err = usage.ResetPeak(s.process.PID()); err != nil {
		return nil, err
	}
	// The cost of the question must not be part of the answer.
	if m.before.reconciles, err = reconciles(ctx, s.process, s.queues); err != nil {
		return nil, err
	}
	return m, s.read(&m.before)
}

// read reads the CPU times.
func (s *session) read(r *reading) (err error) {
	if r.controller, err = usage.CPU(s.process.PID()); err != nil {
		return err
	}
	r.cluster = 0
	pids := append(s.PIDs(), s.process.PID())
	slices.Sort(pids)
	for _, pid := range slices.Compact(pids) {
		used, err := usage.CPU(pid)
		if err != nil {
			return err
		}
		r.cluster += used
	}
	r.busy, r.machine, err = usage.Machine()
	return err
}

// finish writes the counts into a sample.
func (m *meter) finish(ctx context.Context, to *sample) (err error) {
	s, after := m.session, reading{}
	if err = s.read(&after); err != nil {
		return err
	}
	if to.PeakRSS, err = usage.PeakMemory(s.process.PID()); err != nil {
		return err
	}
	if after.reconciles, err = reconciles(ctx, s.process, s.queues); err != nil {
		return err
	}
	to.CPU = (after.controller - m.before.controller).Seconds()
	to.ClusterCPU = (after.cluster - m.before.cluster).Seconds()
	foreign := (after.busy - m.before.busy) - (after.cluster - m.before.cluster)
	to.Foreign = max(0, foreign.Seconds()/(after.machine-m.before.machine).Seconds())
	to.Reconciles = after.reconciles - m.before.reconciles
	to.Requests = map[string]int{}
	for _, user := range s.users {
		requests, err := m.log.Requests(user)
		if err != nil {
			return err
		}
		requests = slices.DeleteFunc(requests, func(r audit.Request) bool { return r.Namespace != s.namespace })
		for kind, n := range audit.Count(requests) {
			to.Requests[kind] += n
		}
		for _, r := range requests {
			if r.Code >= 400 {
				to.Refused++
			}
		}
	}
	return nil
}

// cpuDuring returns the CPU time that a process uses while a function runs.
func cpuDuring(p process, do func() error) (time.Duration, error) {
	before, err := usage.CPU(p.PID())
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := usage.CPU(p.PID())
	return after - before, err
}

// reconciles returns how many keys of the given queues were processed.
func reconciles(ctx context.Context, p process, queues []string) (n int, err error) {
	families, err := scrape(ctx, p)
	if err != nil {
		return 0, err
	}
	for _, metric := range families["workqueue_work_duration_seconds"].GetMetric() {
		if slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == "name" && slices.Contains(queues, l.GetValue())
		}) {
			n += int(metric.GetHistogram().GetSampleCount())
		}
	}
	return n, nil
}

// scrape reads a process' metrics.
func scrape(ctx context.Context, p process) (map[string]*dto.MetricFamily, error) {
	text, err := p.Metrics(ctx)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}
