// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package integrations

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"rollset.dev/rollset/test/metricsdoc"
)

// targetLabels returns the labels that Prometheus adds to what it scrapes by a ServiceMonitor.
func targetLabels() []string {
	return []string{"namespace", "pod", "job", "instance", "service", "container", "endpoint"}
}

// checkQuery returns what is wrong with a query: it does not parse, or uses a metric or a label that is not served. want are
// the expected labels of its result.
func checkQuery(documented map[string]metricsdoc.Metric, query string, want ...string) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	served, err := servedLabels(documented, expr)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	for _, label := range want {
		if !slices.Contains(served, label) {
			return fmt.Errorf("%s: no series has the label %s", query, label)
		}
	}
	return nil
}

// servedLabels returns the labels that series of an expression may have.
func servedLabels(documented map[string]metricsdoc.Metric, expr parser.Node) ([]string, error) {
	if selector, ok := expr.(*parser.VectorSelector); ok {
		return selectorLabels(documented, selector)
	}
	var served []string
	for child := range parser.ChildrenIter(expr) {
		more, err := servedLabels(documented, child)
		if err != nil {
			return nil, err
		}
		served = append(served, more...)
	}
	aggregate, ok := expr.(*parser.AggregateExpr)
	if !ok {
		return served, nil
	}
	if aggregate.Without {
		return nil, fmt.Errorf("%s: say by which labels, for others may be added", expr)
	}
	for _, label := range aggregate.Grouping {
		if !slices.Contains(served, label) {
			return nil, fmt.Errorf("%s: no series has the label %s", expr, label)
		}
	}
	if aggregate.Op == parser.TOPK {
		return served, nil
	}
	return aggregate.Grouping, nil
}

func selectorLabels(documented map[string]metricsdoc.Metric, selector *parser.VectorSelector) ([]string, error) {
	name := selector.Name
	base, isBucket := strings.CutSuffix(name, "_bucket")
	metric, ok := documented[name]
	if isBucket {
		metric, ok = documented[base]
		ok = ok && metric.Type == "histogram"
	}
	if !ok || metric.Type == "histogram" && !isBucket {
		return nil, fmt.Errorf("%s is no series of a documented metric", name)
	}
	served := slices.Concat(metric.Labels, targetLabels())
	if isBucket {
		served = append(served, labels.BucketLabel)
	}
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != model.MetricNameLabel && !slices.Contains(served, matcher.Name) {
			return nil, fmt.Errorf("%s has no label %s", name, matcher.Name)
		}
	}
	return served, nil
}

// TestCheckQuery breaks queries one by one. The check that the other tests use must detect it.
func TestCheckQuery(t *testing.T) {
	t.Parallel()
	documented := map[string]metricsdoc.Metric{
		"pods":    {Type: "gauge", Labels: []string{"set"}},
		"seconds": {Type: "histogram", Labels: []string{"verb"}},
	}
	tests := map[string]struct {
		query  string
		labels []string
		want   string
	}{
		"a metric":                   {query: `pods{set="a"}`, labels: []string{"set", "namespace"}},
		"a histogram":                {query: `histogram_quantile(0.9, sum by (le, verb) (rate(seconds_bucket[5m])))`, labels: []string{"verb"}},
		"the largest":                {query: `topk(3, pods)`, labels: []string{"set"}},
		"no query":                   {query: `sum(pods`, want: "parse error"},
		"an unknown metric":          {query: `sum(pads)`, want: "pads is no series"},
		"an unknown label":           {query: `pods{sat="a"}`, want: "no label sat"},
		"an unknown group":           {query: `sum by (sat) (pods)`, want: "no series has the label sat"},
		"a label that is summed up":  {query: `sum(pods)`, labels: []string{"set"}, want: "no series has the label set"},
		"a histogram as a number":    {query: `seconds`, want: "seconds is no series"},
		"a number as a histogram":    {query: `pods_bucket`, want: "pods_bucket is no series"},
		"an operand that is unknown": {query: `pods / pads`, want: "pads is no series"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkQuery(documented, tt.query, tt.labels...)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("checkQuery(%s) = %v, want %q", tt.query, err, tt.want)
			}
		})
	}
}
