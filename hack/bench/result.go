// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// noisy is the share of the machine that other programs may use during a measurement.
const noisy = 0.10

// sample is one measurement of one competitor at one work.
type sample struct {
	Work       string `json:"work"`
	Competitor string `json:"competitor"`
	Pods       int    `json:"pods"`
	Sets       int    `json:"sets"`
	Repetition int    `json:"repetition"`
	// Written and Seconds are the times from the request until all pods had been requested, and until everything was done.
	Written float64 `json:"writtenSeconds"`
	Seconds float64 `json:"seconds"`
	// CPU is the CPU time of the controller's process, ClusterCPU that of all processes, in seconds.
	CPU        float64 `json:"cpuSeconds"`
	ClusterCPU float64 `json:"clusterCPUSeconds"`
	// PeakRSS is the controller's peak memory, in bytes.
	PeakRSS int64 `json:"peakRSSBytes"`
	// Requests are the controller's, by verb and resource. Refused is how many of them failed.
	Requests   map[string]int `json:"requests"`
	Refused    int            `json:"refused"`
	Reconciles int            `json:"reconciles"`
	// Foreign is the share of the machine that other programs used meanwhile.
	Foreign float64 `json:"foreignCPUShare"`
}

// podWrites returns how many writes of pods were sent, without dry runs.
func (s *sample) podWrites() int {
	return s.count(func(verb, resource string) bool {
		return verb != "get" && verb != "list" && (resource == "pods" || strings.HasPrefix(resource, "pods/"))
	})
}

// statusWrites returns how many statuses of sets were written.
func (s *sample) statusWrites() int {
	return s.count(func(_, resource string) bool {
		return strings.HasSuffix(resource, "/status") && resource != "pods/status"
	})
}

func (s *sample) count(wanted func(verb, resource string) bool) (n int) {
	for kind, times := range s.Requests {
		// "create (dry run) pods" is not a write.
		if words := strings.Fields(kind); len(words) == 2 && wanted(words[0], words[1]) {
			n += times
		}
	}
	return n
}

// metric is a number that samples are compared by.
type metric struct {
	// title is for tables, unit for benchstat.
	title, unit string
	of          func(*sample) float64
	digits      int
}

func metricWritten() metric {
	return metric{"asked s", "asked-s", func(s *sample) float64 { return s.Written }, 2}
}

func metricTime() metric {
	return metric{"done s", "s", func(s *sample) float64 { return s.Seconds }, 2}
}

func metricCPU() metric {
	return metric{"CPU ms/pod", "cpu-ms/pod", func(s *sample) float64 { return 1e3 * s.CPU / float64(s.Pods) }, 3}
}

func metricWrites() metric {
	return metric{"writes/pod", "writes/pod", func(s *sample) float64 { return float64(s.podWrites()) / float64(s.Pods) }, 2}
}

func metricStatus() metric {
	return metric{"status", "status-writes", func(s *sample) float64 { return float64(s.statusWrites()) }, 0}
}

// metricStatusRate is the number of status writes for one set, in a second.
func metricStatusRate() metric {
	return metric{"status/s", "status/s", func(s *sample) float64 {
		return float64(s.statusWrites()) / float64(s.Sets) / (s.Seconds + settle.Seconds())
	}, 2}
}

func metrics() []metric {
	return []metric{
		metricWritten(), metricTime(), metricCPU(), metricWrites(), metricStatus(),
		{"reconciles", "reconciles", func(s *sample) float64 { return float64(s.Reconciles) }, 0},
		{"refused", "refused", func(s *sample) float64 { return float64(s.Refused) }, 0},
		{"peak MiB", "peak-MiB", func(s *sample) float64 { return float64(s.PeakRSS) / (1 << 20) }, 0},
		{"cluster ms/pod", "cluster-ms/pod", func(s *sample) float64 { return 1e3 * s.ClusterCPU / float64(s.Pods) }, 1},
		{"foreign %", "foreign-%", func(s *sample) float64 { return 100 * s.Foreign }, 0},
	}
}

// row identifies what is compared: one competitor at one work with a number of pods.
type row struct {
	work       string
	pods       int
	competitor string
}

// results are all samples of a run.
type results struct {
	Samples []*sample `json:"samples"`
	Facts   []fact    `json:"facts,omitempty"`
	Targets []verdict `json:"targets"`
}

// fact is a number that is measured separately.
type fact struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Limit is the largest allowed value, unless it is noLimit.
	Limit float64 `json:"limit"`
}

// noLimit is the limit of a fact that is no target.
const noLimit = -1

// values returns the measurements of a row, in order: those on a quiet machine, if there are any.
func (r *results) values(of row, m metric) []float64 {
	var quiet, all []float64
	for _, s := range r.Samples {
		if (row{s.Work, s.Pods, s.Competitor}) != of {
			continue
		}
		all = append(all, m.of(s))
		if s.Foreign <= noisy {
			quiet = append(quiet, m.of(s))
		}
	}
	if len(quiet) > 0 {
		all = quiet
	}
	slices.Sort(all)
	return all
}

// median returns the median of a row, and whether there is one.
func (r *results) median(of row, m metric) (float64, bool) {
	values := r.values(of, m)
	if len(values) == 0 {
		return 0, false
	}
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2, true
}

// write writes the results into a folder: as JSON, and in the format of benchstat.
func (r *results) write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, s := range r.Samples {
		fmt.Fprintf(&lines, "BenchmarkCluster/work=%s/pods=%d/by=%s 1", s.Work, s.Pods, s.Competitor)
		for _, m := range metrics() {
			fmt.Fprintf(&lines, " %g %s", m.of(s), m.unit)
		}
		lines.WriteByte('\n')
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(lines.String()), 0o600)
}
