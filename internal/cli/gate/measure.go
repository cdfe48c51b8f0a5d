// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/utils/clock"
)

// patience is how long to wait for one answer.
const patience = 30 * time.Second

// noAnswerError means that Prometheus did not answer. It wraps no error, because failures of requests are reported as the
// API server's.
type noAnswerError struct{ url, why string }

// Error returns which server did not answer, and why.
func (e noAnswerError) Error() string { return fmt.Sprintf("ask Prometheus at %s: %s", e.url, e.why) }

// measure is a query to Prometheus, and how long its answer must be good.
type measure struct {
	url, query       string
	window, interval time.Duration
}

// judge repeats the query until the window is over or an answer is not good. An error in between is no answer. There must be
// an answer at the end.
func (m *measure) judge(ctx context.Context, c clock.WithTicker) (finding, error) {
	client, err := api.NewClient(api.Config{Address: m.url})
	if err != nil {
		return finding{}, fmt.Errorf("reach Prometheus at %s: %w", m.url, err)
	}
	server := prometheus.NewAPI(client)
	end := c.Now().Add(m.window)
	for answers := 0; ; {
		why, err := m.ask(ctx, server, c.Now())
		if err == nil {
			answers++
		}
		over := !c.Now().Before(end)
		switch {
		case ctx.Err() != nil:
			return finding{}, ctx.Err()
		case err == nil && why != "":
			return finding{reason: reasonBad, message: fmt.Sprintf("%s: %s", m.query, why)}, nil
		case over && err != nil:
			return finding{}, noAnswerError{url: m.url, why: err.Error()}
		case over:
			return finding{good: true, reason: reasonGood, message: fmt.Sprintf("%s: good in %d answers over %v", m.query, answers, m.window)}, nil
		}
		select {
		case <-ctx.Done():
			return finding{}, ctx.Err()
		case <-c.After(min(m.interval, max(end.Sub(c.Now()), 0))):
		}
	}
}

// ask sends the query once. It returns why the answer is not good; empty if it is.
func (m *measure) ask(ctx context.Context, server prometheus.API, at time.Time) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, _, err := server.Query(ctx, m.query, at)
	if err != nil {
		return "", err
	}
	switch v := value.(type) {
	case model.Vector:
		return notGood(v, filters(m.query)), nil
	case *model.Scalar:
		return notGood(model.Vector{{Value: v.Value}}, false), nil
	default:
		return "", fmt.Errorf("the query returns a %s; it must be a vector or a scalar", value.Type())
	}
}

// notGood returns what is not good about an answer: it is empty, or it contains something that is not a number, or 0 where
// that means no.
func notGood(v model.Vector, zeroToo bool) string {
	if len(v) == 0 {
		return "it returns nothing"
	}
	for _, sample := range v {
		if sample.Value == 0 && !zeroToo || math.IsNaN(float64(sample.Value)) {
			return fmt.Sprintf("%s is %s", sample.Metric, sample.Value)
		}
	}
	return ""
}
