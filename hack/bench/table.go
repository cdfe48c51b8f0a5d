// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// print prints a table for each work and number of pods, and the results of the targets.
func (r *results) print(out io.Writer) error {
	var table strings.Builder
	var last row
	for _, of := range r.rows() {
		if of.work != last.work || of.pods != last.pods {
			fmt.Fprintf(&table, "\n%s, %d pods\t", of.work, of.pods)
			for _, m := range metrics() {
				fmt.Fprintf(&table, "%s\t", m.title)
			}
			fmt.Fprintf(&table, "time ×minimal\tCPU ×minimal\t\n")
		}
		last = of
		r.printRow(&table, of)
	}
	return errors.Join(
		align(out, table.String(), tabwriter.AlignRight),
		align(out, r.judgment(), 0),
	)
}

// align writes a text whose columns end with tabs.
func align(out io.Writer, text string, flags uint) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', flags)
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return w.Flush()
}

func (r *results) printRow(w *strings.Builder, of row) {
	fmt.Fprintf(w, "%s\t", of.competitor)
	for _, m := range metrics() {
		value, _ := r.median(of, m)
		fmt.Fprintf(w, "%.*f%s\t", m.digits, value, spread(r.values(of, m), m.digits))
	}
	for _, m := range []metric{metricTime(), metricCPU()} {
		fmt.Fprintf(w, "%s\t", r.ratio(of, row{of.work, of.pods, nameMinimal}, m))
	}
	w.WriteByte('\n')
}

// spread formats the range of several values, in brackets.
func spread(values []float64, digits int) string {
	if len(values) < 2 || values[0] == values[len(values)-1] {
		return ""
	}
	return fmt.Sprintf(" (%.*f–%.*f)", digits, values[0], digits, values[len(values)-1])
}

func (r *results) ratio(of, to row, m metric) string {
	a, _ := r.median(of, m)
	if b, ok := r.median(to, m); ok && b > 0 {
		return fmt.Sprintf("%.2f", a/b)
	}
	return "–"
}

// rows returns the rows in the order in which they were first measured, those of one table together.
func (r *results) rows() []row {
	var rows []row
	seen := map[row]int{}
	tables := map[row]int{}
	for _, s := range r.Samples {
		of := row{s.Work, s.Pods, s.Competitor}
		if _, ok := seen[of]; ok {
			continue
		}
		seen[of] = len(seen)
		table := row{work: s.Work, pods: s.Pods}
		if _, ok := tables[table]; !ok {
			tables[table] = len(tables)
		}
		rows = append(rows, of)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return tables[row{work: a.work, pods: a.pods}] - tables[row{work: b.work, pods: b.pods}]
	})
	return rows
}

// judgment returns which targets were met, and how reliable the numbers are.
func (r *results) judgment() string {
	var w strings.Builder
	if len(r.Targets) > 0 {
		w.WriteString("\n\ttarget\tmeasured\tlimit\n")
	}
	for _, v := range r.Targets {
		mark := "ok"
		if !v.Met {
			mark = "MISSED"
		}
		fmt.Fprintf(&w, "%s\t%s\t%.2f\t%.2f\n", mark, v.What, v.Measured, v.Limit)
	}
	if noise := r.noisyRows(); len(noise) > 0 {
		list := strings.Join(noise, ", ")
		if len(noise) == len(r.rows()) {
			list = "everything"
		}
		fmt.Fprintf(&w, "\nOthers used more than %.0f%% of the machine in all samples of %s.\nSuch times say little; ratios within a run say something.\n",
			100*noisy, list)
	}
	return w.String()
}

// noisyRows returns the rows that have no quiet sample.
func (r *results) noisyRows() (names []string) {
	for _, of := range r.rows() {
		quiet := slices.ContainsFunc(r.Samples, func(s *sample) bool {
			return (row{s.Work, s.Pods, s.Competitor}) == of && s.Foreign <= noisy
		})
		if !quiet {
			names = append(names, fmt.Sprintf("%s/%d/%s", of.work, of.pods, of.competitor))
		}
	}
	return names
}
