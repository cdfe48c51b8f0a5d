// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// basePods is the number of pods that targets are set for.
const basePods = 1000

// target is a goal for RollSet: a median, or its ratio to another one, must not exceed a limit.
type target struct {
	of     row
	metric metric
	// against is the row to divide by; nil for none.
	against *row
	limit   float64
}

// verdict is the result of a target.
type verdict struct {
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`
	Met      bool    `json:"met"`
}

// judge compares the samples with the targets that they are about.
func (r *results) judge() {
	r.Targets = nil
	for _, t := range targets() {
		measured, ok := r.median(t.of, t.metric)
		what := fmt.Sprintf("%s of %s, %s, %d pods", t.metric.title, t.of.competitor, t.of.work, t.of.pods)
		if t.against != nil {
			divisor, found := r.median(*t.against, t.metric)
			if !found || divisor == 0 {
				continue
			}
			measured /= divisor
			what += " / " + t.difference()
		}
		if ok {
			r.Targets = append(r.Targets, verdict{What: what, Measured: measured, Limit: t.limit, Met: measured <= t.limit})
		}
	}
	for _, f := range r.Facts {
		if f.Limit == noLimit {
			continue
		}
		r.Targets = append(r.Targets, verdict{What: f.Name + ", " + f.Unit, Measured: f.Value, Limit: f.Limit, Met: f.Value <= f.Limit})
	}
}

// difference describes how the two rows differ.
func (t target) difference() string {
	switch {
	case t.of.competitor != t.against.competitor:
		return t.against.competitor
	case t.of.work != t.against.work:
		return t.against.work
	default:
		return fmt.Sprintf("%d pods", t.against.pods)
	}
}

func targets() []target {
	list := slices.Concat(ratios(), largeTargets())
	for work, writes := range map[string]float64{
		workCreate: 1, workRecreate: 2, workInPlace: 3, workMetadata: 1, workScaleIn: 1, workNoop: 0,
	} {
		for _, by := range []string{nameRollSet, nameOrdinal} {
			// Half of the last digit in the table may be lost in rounding.
			list = append(list, target{of: row{work, basePods, by}, metric: metricWrites(), limit: writes + 0.005})
			list = append(list, target{of: row{work, basePods, by}, metric: metricStatusRate(), limit: 2})
		}
	}
	const foreign, growth = 1.1, 1.15
	for _, by := range []string{nameRollSet, nameOrdinal} {
		list = append(list, target{of: row{workForeign, basePods, by}, metric: metricCPU(), against: &row{workSets, basePods, by}, limit: foreign})
		for _, work := range []string{workCreate, workRecreate, workInPlace, workMetadata, workScaleIn, workNoop} {
			list = append(list, target{of: row{work, 3000, by}, metric: metricCPU(), against: &row{work, basePods, by}, limit: growth})
		}
	}
	return list
}

// largeTargets returns the targets for sets of an order of magnitude more.
func largeTargets() (list []target) {
	const pods, growth, noopGrowth = 10_000, 1.15, 1.5
	of := func(work, by string) row { return row{work, pods, by} }
	for _, work := range []string{workCreate, workRecreate, workScaleIn} {
		list = append(list,
			target{of: of(work, nameRollSet), metric: metricCPU(), against: &row{work, basePods, nameRollSet}, limit: growth},
			target{of: of(work, nameRollSet), metric: metricCPU(), against: new(of(work, nameMinimal)), limit: 1.2},
			target{of: of(work, nameRollSet), metric: metricTime(), against: new(of(work, nameMinimal)), limit: 1})
	}
	return append(list,
		target{of: of(workNoop, nameRollSet), metric: metricCPU(), against: &row{workNoop, basePods, nameRollSet}, limit: noopGrowth},
		target{of: of(workNoop, nameRollSet), metric: metricCPU(), against: new(of(workNoop, nameReplicaSet)), limit: 0.35})
}

// ratios returns the targets that compare with other competitors at the same work.
func ratios() (list []target) {
	add := func(work string, m metric, limit float64, by, against string) {
		list = append(list, target{of: row{work, basePods, by}, metric: m, against: &row{work, basePods, against}, limit: limit})
	}
	add(workCreate, metricTime(), 1.15, nameRollSet, nameMinimal)
	add(workCreate, metricTime(), 1, nameRollSet, nameReplicaSet)
	add(workCreate, metricCPU(), 0.8, nameRollSet, nameReplicaSet)
	add(workCreate, metricCPU(), 0.4, nameRollSet, nameStatefulSet)
	add(workCreate, metricCPU(), 0.4, nameOrdinal, nameStatefulSet)
	add(workRecreate, metricTime(), 1.1, nameRollSet, nameMinimal)
	add(workRecreate, metricTime(), 1, nameRollSet, nameStatefulSet)
	add(workRecreate, metricTime(), 1, nameOrdinal, nameStatefulSet)
	add(workRecreate, metricCPU(), 0.8, nameRollSet, nameStatefulSet)
	add(workRecreate, metricCPU(), 0.8, nameOrdinal, nameStatefulSet)
	add(workInPlace, metricTime(), 1.1, nameRollSet, nameMinimal)
	add(workInPlace, metricCPU(), 1.1, nameRollSet, nameMinimal)
	add(workMetadata, metricTime(), 1.2, nameRollSet, nameMinimal)
	add(workMetadata, metricCPU(), 1.5, nameRollSet, nameMinimal)
	add(workScaleIn, metricTime(), 1.2, nameRollSet, nameMinimal)
	add(workScaleIn, metricTime(), 1, nameRollSet, nameReplicaSet)
	add(workScaleIn, metricCPU(), 0.6, nameRollSet, nameReplicaSet)
	add(workNoop, metricCPU(), 0.4, nameRollSet, nameReplicaSet)
	return list
}
