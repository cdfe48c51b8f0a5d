// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package metricsdoc reads the tables of metrics in docs/observability.md: what they say is compared with what the
// manager serves, and what the alerts and the dashboard ask for is compared with them.
package metricsdoc

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Metric is one metric as the documentation describes it.
type Metric struct {
	// Type is counter, gauge, histogram, info or stateset.
	Type string
	// Labels are its labels, in the order of the table.
	Labels []string
}

// Read returns the metrics of all tables by name. The root is the folder of the project.
func Read(root string) (map[string]Metric, error) {
	path := filepath.Join(root, "docs", "observability.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the documented metrics: %w", err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|")
	word := regexp.MustCompile("`([a-z_]+)`")
	metrics := map[string]Metric{}
	for _, cells := range row.FindAllStringSubmatch(string(text), -1) {
		name, m := cells[1], Metric{Type: cells[2]}
		for _, label := range word.FindAllStringSubmatch(cells[3], -1) {
			m.Labels = append(m.Labels, label[1])
		}
		if _, twice := metrics[name]; twice {
			return nil, fmt.Errorf("%s has the metric %s twice", path, name)
		}
		metrics[name] = m
	}
	if len(metrics) == 0 {
		return nil, fmt.Errorf("%s has no table of metrics", path)
	}
	return metrics, nil
}
