// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package integrations

import (
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"sigs.k8s.io/yaml"
)

// alerts returns the alerts of config/prometheus by name, as Prometheus reads them.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	var object struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             map[string]any
	}
	decode(t, "config/prometheus/rules.yaml", &object)
	content, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatalf("config/prometheus/rules.yaml: %v", errs)
	}
	byName := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			byName[rule.Alert] = rule
		}
	}
	return byName
}

// TestAlertsAreDocumented checks that each alert uses documented metrics, has a severity, names only labels that it has, and
// links to a section that says what to do.
func TestAlertsAreDocumented(t *testing.T) {
	t.Parallel()
	metrics := documented(t)
	page := string(read(t, "docs/observability.md"))
	used := regexp.MustCompile(`\$labels\.(\w+)`)
	for name, alert := range alerts(t) {
		var labels []string
		for _, label := range used.FindAllStringSubmatch(alert.Annotations["summary"]+alert.Annotations["description"], -1) {
			labels = append(labels, label[1])
		}
		if err := checkQuery(metrics, alert.Expr, labels...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if severity := alert.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("%s: severity %q", name, severity)
		}
		if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", name)
		}
		if want := "https://rollset.dev/docs/observability#" + strings.ToLower(name); alert.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %q, want %q", name, alert.Annotations["runbook_url"], want)
		}
		if !strings.Contains(page, "\n### "+name+"\n") {
			t.Errorf("docs/observability.md has no section on %s", name)
		}
	}
}

// TestAlertsFire plays series, one sample a minute, to Prometheus' engine.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	const set = `namespace="shop",rollset="web",pod="manager-0"`
	const manager = `namespace="rollset-system",pod="manager-0"`
	ofSet := map[string]string{"namespace": "shop", "rollset": "web"}
	ofManager := map[string]string{"namespace": "rollset-system"}
	with := func(m map[string]string, key, value string) map[string]string {
		more := maps.Clone(m)
		more[key] = value
		return more
	}
	tests := map[string]struct {
		alert  string
		series []string
		// quiet is the last minute at which the alert does not fire yet. want are its labels at the next one; nil if it does
		// not fire then either.
		quiet int
		want  map[string]string
	}{
		"stalled": {
			alert: "RollSetStalled", quiet: 13,
			series: []string{`rollset_unhealthy{` + set + `,condition="Stalled",reason="RolledBack"} _x9 1x20`},
			want:   with(ofSet, "reason", "RolledBack"),
		},
		"stalled, and then corrected": {
			alert: "RollSetStalled", quiet: 20,
			series: []string{`rollset_unhealthy{` + set + `,condition="Stalled",reason="RolledBack"} 1x3 stale _x20`},
		},
		"told by the manager that led before and by the one that leads": {
			alert: "RollSetStalled", quiet: 4,
			series: []string{
				`rollset_unhealthy{` + set + `,condition="Stalled",reason="InvalidSpec"} 1x3 stale _x20`,
				`rollset_unhealthy{namespace="shop",rollset="web",pod="manager-1",condition="Stalled",reason="InvalidSpec"} _x3 1x20`,
			},
			want: with(ofSet, "reason", "InvalidSpec"),
		},
		"a gate that no program writes": {
			alert: "RollSetStepWaits", quiet: 62,
			series: []string{
				`rollset_rollout_step{` + set + `,phase="Soaking"} 2x2 stale`,
				`rollset_rollout_step{` + set + `,phase="Gated"} _x3 2x70`,
			},
			want: with(ofSet, "phase", "Gated"),
		},
		"a person who is away, with a new leader meanwhile": {
			alert: "RollSetStepWaits", quiet: 59,
			series: []string{
				`rollset_rollout_step{` + set + `,phase="Paused"} 1x30 stale`,
				`rollset_rollout_step{namespace="shop",rollset="web",pod="manager-1",phase="Paused"} _x30 1x70`,
			},
			want: with(ofSet, "phase", "Paused"),
		},
		"a gate, and then that of the next step": {
			alert: "RollSetStepWaits", quiet: 80,
			series: []string{
				`rollset_rollout_step{` + set + `,phase="Gated"} 1x40 stale _x2 2x50`,
				`rollset_rollout_step{` + set + `,phase="Rolling"} _x41 2x1 stale`,
			},
		},
		"a long soak": {
			alert: "RollSetStepWaits", quiet: 90,
			series: []string{
				`rollset_rollout_step{` + set + `,phase="Soaking"} 1x99`,
			},
		},
		"too few pods": {
			alert: "RollSetReplicasUnavailable", quiet: 9,
			series: []string{`rollset_unhealthy{` + set + `,condition="Available",reason="TooFewPodsAvailable"} 1x20`},
			want:   ofSet,
		},
		"pods unavailable as maxUnavailable allows": {
			alert: "RollSetReplicasUnavailable", quiet: 30,
			series: []string{`rollset_replicas_unavailable{` + set + `} 2x40`},
		},
		"refused writes": {
			alert: "RollSetWritesRefused", quiet: 14,
			series: []string{`rollset_unhealthy{` + set + `,condition="ReplicaFailure",reason="FailedCreate"} 1x20`},
			want:   with(ofSet, "reason", "FailedCreate"),
		},
		"a foreign disruption budget": {
			alert: "RollSetDisruptionNotReady", quiet: 14,
			series: []string{`rollset_unhealthy{` + set + `,condition="DisruptionReady",reason="ForeignBudget"} 1x20`},
			want:   with(ofSet, "reason", "ForeignBudget"),
		},
		"every second reconcile fails": {
			alert: "RollSetReconcileErrors", quiet: 15,
			series: []string{
				`controller_runtime_reconcile_errors_total{` + manager + `,controller="rollset"} 0+30x40`,
				`controller_runtime_reconcile_total{` + manager + `,controller="rollset",result="error"} 0+30x40`,
				`controller_runtime_reconcile_total{` + manager + `,controller="rollset",result="success"} 0+30x40`,
			},
			want: ofManager,
		},
		"one reconcile of a hundred fails": {
			alert: "RollSetReconcileErrors", quiet: 30,
			series: []string{
				`controller_runtime_reconcile_errors_total{` + manager + `,controller="rollset"} 0+1x40`,
				`controller_runtime_reconcile_total{` + manager + `,controller="rollset",result="error"} 0+1x40`,
				`controller_runtime_reconcile_total{` + manager + `,controller="rollset",result="success"} 0+99x40`,
			},
		},
		"a cache that stands still": {
			alert: "RollSetExpectationsUnmet", quiet: 3,
			series: []string{`rollset_expectations_oldest_seconds{` + manager + `} 0 60 120 180 240 300 360`},
			want:   with(ofManager, "pod", "manager-0"),
		},
		"a cache that is always a little behind": {
			alert: "RollSetExpectationsUnmet", quiet: 30,
			series: []string{`rollset_expectations_oldest_seconds{` + manager + `} 20x40`},
		},
		"no manager": {
			alert: "RollSetManagerAbsent", quiet: 13,
			series: []string{`rollset_expectations_unmet{` + manager + `} 0x8 stale`},
			want:   map[string]string{},
		},
		"a manager that is idle": {
			alert: "RollSetManagerAbsent", quiet: 30,
			series: []string{`rollset_expectations_unmet{` + manager + `} 0x40`},
		},
		"no manager leads": {
			alert: "RollSetManagerNotLeading", quiet: 4,
			series: []string{
				`leader_election_master_status{` + manager + `,name="manager.rollset.dev"} 0x10`,
				`leader_election_master_status{namespace="rollset-system",pod="manager-1",name="manager.rollset.dev"} 0x10`,
			},
			want: ofManager,
		},
		"one of two leads": {
			alert: "RollSetManagerNotLeading", quiet: 30,
			series: []string{
				`leader_election_master_status{` + manager + `,name="manager.rollset.dev"} 0x40`,
				`leader_election_master_status{namespace="rollset-system",pod="manager-1",name="manager.rollset.dev"} 1x40`,
			},
		},
	}
	rules := alerts(t)
	fires := map[string]bool{}
	for name, tt := range tests {
		fires[tt.alert] = fires[tt.alert] || tt.want != nil
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule, ok := rules[tt.alert]
			if !ok {
				t.Fatalf("there is no alert %s", tt.alert)
			}
			played := play(t, tt.series)
			if got := firing(t, rule, played, tt.quiet); got != nil {
				t.Errorf("%s fires in minute %d: %v", tt.alert, tt.quiet, got)
			}
			if diff := cmp.Diff(tt.want, firing(t, rule, played, tt.quiet+1)); diff != "" {
				t.Errorf("%s in minute %d (-want +got):\n%s", tt.alert, tt.quiet+1, diff)
			}
		})
	}
	for name := range rules {
		if !fires[name] {
			t.Errorf("%s fires in no test", name)
		}
	}
}

// firing returns the labels of a rule's alert at a minute: its expression has been true for as long as the rule requires. It
// returns nil if there is none. At most one series is expected.
func firing(t *testing.T, rule rulefmt.Rule, played storage.Queryable, minute int) map[string]string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	end := time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
	query, err := engine.NewRangeQuery(t.Context(), played, nil, rule.Expr, end.Add(-time.Duration(rule.For)), end, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	matrix, err := result.Matrix()
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]string
	for _, series := range matrix {
		if len(series.Floats) < int(time.Duration(rule.For)/time.Minute)+1 {
			continue
		}
		if found != nil {
			t.Fatalf("%s fires for more than one series: %v", rule.Alert, matrix)
		}
		found = series.Metric.Map()
	}
	return found
}

// play returns a storage with series, in the notation of Prometheus' own tests: one sample a minute.
func play(t *testing.T, descriptions []string) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for _, description := range descriptions {
		name, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(description)
		if err != nil {
			t.Fatal(err)
		}
		var points []promql.FPoint
		for minute, v := range values {
			if !v.Omitted {
				points = append(points, promql.FPoint{T: (time.Duration(minute) * time.Minute).Milliseconds(), F: v.Value})
			}
		}
		all = append(all, promql.NewStorageSeries(promql.Series{Metric: name, Floats: points}))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			found := &seriesSet{}
			for _, series := range all {
				if matches(series.Labels(), matchers) {
					found.rest = append(found.rest, series)
				}
			}
			return found
		},
	}}
}

func matches(name labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(name.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	rest []storage.Series
	at   storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return s.at }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
