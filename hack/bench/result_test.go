// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func timed(competitor string, seconds, foreign float64) *sample {
	return &sample{Work: workCreate, Competitor: competitor, Pods: basePods, Sets: 1, Seconds: seconds, Foreign: foreign}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		samples []*sample
		want    float64
		wantAny bool
	}{
		"none":                             {nil, 0, false},
		"one":                              {[]*sample{timed("x", 3, 0)}, 3, true},
		"the middle one":                   {[]*sample{timed("x", 9, 0), timed("x", 3, 0), timed("x", 4, 0)}, 4, true},
		"the mean of the middle ones":      {[]*sample{timed("x", 9, 0), timed("x", 3, 0)}, 6, true},
		"others do not count":              {[]*sample{timed("x", 3, 0), timed("y", 9, 0)}, 3, true},
		"noise does not count":             {[]*sample{timed("x", 3, 0), timed("x", 9, 0.2)}, 3, true},
		"noise counts if there is no more": {[]*sample{timed("x", 9, 0.2)}, 9, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := results{Samples: tc.samples}
			got, found := r.median(row{workCreate, basePods, "x"}, metricTime())
			if got != tc.want || found != tc.wantAny {
				t.Errorf("median = %v, %v, want %v, %v", got, found, tc.want, tc.wantAny)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	r := results{
		Samples: []*sample{timed(nameMinimal, 10, 0), timed(nameReplicaSet, 11, 0), timed(nameRollSet, 11.4, 0)},
		Facts:   []fact{{Name: "writes", Value: 0, Limit: 0}, {Name: "memory", Value: 41, Unit: "MB", Limit: 40}, {Name: "time", Value: 7, Limit: noLimit}},
	}
	r.Samples[2].Requests = map[string]int{"create pods": 1001, "create (dry run) pods": 1, "patch rollsets/status": 40}
	r.judge()
	got := map[string]bool{}
	for _, v := range r.Targets {
		got[v.What] = v.Met
	}
	want := map[string]bool{
		"done s of rollset, create, 1000 pods / minimal":    true,
		"done s of rollset, create, 1000 pods / replicaset": false,
		"writes/pod of rollset, create, 1000 pods":          true,
		"status/s of rollset, create, 1000 pods":            false,
		"writes, ":                                          true,
		"memory, MB":                                        false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestPodWrites(t *testing.T) {
	t.Parallel()
	s := sample{Requests: map[string]int{
		"create pods": 1, "patch pods/status": 2, "delete pods": 4, "create (dry run) pods": 8, "list pods": 16,
		"patch rollsets/status": 32, "create events": 64, "update podtemplates": 128,
	}}
	if got := s.podWrites(); got != 7 {
		t.Errorf("%d writes of pods, want 7", got)
	}
	if got := s.statusWrites(); got != 32 {
		t.Errorf("%d writes of status, want 32", got)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	r := results{Samples: []*sample{timed(nameRollSet, 2.5, 0), timed(nameMinimal, 2, 0)}}
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read results
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, read); diff != "" {
		t.Errorf("bench.json (-want +got):\n%s", diff)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "bench.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(lines), "\n"); !strings.HasPrefix(first, "BenchmarkCluster/work=create/pods=1000/by=rollset 1 0 asked-s 2.5 s 0 cpu-ms/pod") {
		t.Errorf("bench.txt begins with %q", first)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-work=fly", "-by=nobody", "-n=3", "-n=many"} {
		if _, err := parse([]string{args}); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	o, err := parse([]string{"-work=create,memory", "-n=100,200", "-repeat=2"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{workCreate, trialMemory}, o.works); diff != "" {
		t.Errorf("works (-want +got):\n%s", diff)
	}
	if len(o.by) != len(competitorNames()) {
		t.Errorf("%d competitors, want all %d", len(o.by), len(competitorNames()))
	}
}
