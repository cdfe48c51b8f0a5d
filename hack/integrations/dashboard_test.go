// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package integrations

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// dashboard is the part of a Grafana dashboard that is checked.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID                 int
		Type, Title        string
		Datasource         struct{ UID string }
		GridPos            struct{ X, Y, W, H int }
		Targets            []struct{ Expr, LegendFormat string }
		Panels             []any
		FieldConfig, Links any
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

// TestDashboard checks that each query parses, and uses only what is documented.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d dashboard
	if err := json.Unmarshal(read(t, "config/grafana/rollset.json"), &d); err != nil {
		t.Fatal(err)
	}
	metrics := documented(t)
	variables := map[string]bool{"__rate_interval": true}
	labelValues := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Type != "query" {
			continue
		}
		query := labelValues.FindStringSubmatch(v.Definition)
		if query == nil {
			t.Fatalf("variable %s: cannot read %q", v.Name, v.Definition)
		}
		if err := checkQuery(metrics, query[1], query[2]); err != nil {
			t.Errorf("variable %s: %v", v.Name, err)
		}
	}
	variable := regexp.MustCompile(`\$\{?(\w+)\}?`)
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	queries := 0
	for _, p := range d.Panels {
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
			t.Errorf("panel %q asks for nothing, or not the source that users choose", p.Title)
		}
		for _, target := range p.Targets {
			queries++
			for _, name := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !variables[name[1]] {
					t.Errorf("panel %q: no variable %s", p.Title, name[0])
				}
			}
			var labels []string
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				labels = append(labels, label[1])
			}
			query := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			if err := checkQuery(metrics, query, labels...); err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
		}
	}
	if queries == 0 {
		t.Error("no panel has a query")
	}
}

// TestDashboardLayout looks for panels that overlap.
func TestDashboardLayout(t *testing.T) {
	t.Parallel()
	var d dashboard
	if err := json.Unmarshal(read(t, "config/grafana/rollset.json"), &d); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	at := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the id of another", p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				place := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := at[place]; taken || place[0] >= 24 {
					t.Fatalf("panel %q stands on %q, or outside", p.Title, other)
				}
				at[place] = p.Title
			}
		}
	}
}
