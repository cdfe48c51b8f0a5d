// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Text writes the forecast for users. A wide one has a line for each write. Otherwise equal writes of a step, and repeated
// steps, are folded.
func (f *Forecast) Text(w io.Writer, wide bool) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s: %s", f.Set, f.Class)
	if f.Field != "" {
		fmt.Fprintf(b, " (%s)", f.Field)
	}
	b.WriteString("\n\n")
	if len(f.Writes) == 0 {
		b.WriteString("The controller will write nothing.\n")
	}
	if len(f.Writes)+len(f.Waits) > 0 {
		f.table(b, wide)
	}
	b.WriteString("\n")
	f.summary(b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *Forecast) table(b *strings.Builder, wide bool) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STEP\tAFTER\tWRITES\tREASON")
	told := 0
	for _, wait := range f.Waits {
		tableOf(t, f.Writes[told:wait.Writes], wide)
		told = wait.Writes
		fmt.Fprintf(t, "\t%s\t\t%s\n", spelled(wait.At), wait.Says)
	}
	tableOf(t, f.Writes[told:], wide)
	_ = t.Flush() // into memory
}

// tableOf prints the lines about some writes.
func tableOf(w io.Writer, writes []Write, wide bool) {
	if !wide {
		for _, l := range fold(writes) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.steps, l.after, l.what, l.why)
		}
		return
	}
	for _, one := range writes {
		fmt.Fprintf(w, "%d\t%s\t%s %s %s%s\t%s\n", one.Step, spelled(one.At), one.Verb, one.Resource, one.Name, within(one.Domain), one.Reason)
	}
}

func (f *Forecast) summary(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "Lowest availability:\t%d of %d pods; the set promises %d\n", f.LowestAvailable, f.Replicas, f.Floor)
	fmt.Fprintf(t, "Most pods at once:\t%d\n", f.MostPods)
	fmt.Fprintf(t, "Time:\t%s%s\n", spelled(f.Takes), f.beside())
	if f.WaitsFor != "" {
		fmt.Fprintf(t, "Then it waits:\t%s\n", f.WaitsFor)
	}
	if n := len(f.IfBroken.BrokenPods); n > 0 {
		fmt.Fprintf(t, "If new pods never become ready:\t%d break (%s), and %d stay available\n", n, some(f.IfBroken.BrokenPods), f.IfBroken.LowestAvailable)
		if f.IfBroken.StopsAt != "" {
			fmt.Fprintf(t, "It stops at:\t%s\n", f.IfBroken.StopsAt)
		}
	}
	for i, why := range f.InTheWay {
		fmt.Fprintf(t, "%s\t%s\n", heading(i, "In the way:"), why)
	}
	for i, why := range f.CannotKnow {
		fmt.Fprintf(t, "%s\t%s\n", heading(i, "Not known:"), why)
	}
	_ = t.Flush() // into memory
}

// asksOthers reports whether the rollout waits for gates or people on the way.
func (f *Forecast) asksOthers() bool {
	return slices.ContainsFunc(f.Waits, func(w Wait) bool { return w.Others })
}

// beside returns what takes further time that is not included.
func (f *Forecast) beside() string {
	if f.asksOthers() {
		return ", and what gates and people take"
	}
	return ""
}

func heading(i int, text string) string {
	if i > 0 {
		return ""
	}
	return text
}

// spelled formats a time for users.
func spelled(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// maxNames is the maximum number of names in a list.
const maxNames = 3

// some returns the first of some names, and how many more there are.
func some(names []string) string {
	if len(names) <= maxNames+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// folded is a line about several writes.
type folded struct{ steps, after, what, why string }

// group is the writes of one step to objects of one resource in one failure domain, with one reason.
type group struct {
	verb, resource, domain, why string
	names                       []string
}

// is reports whether a write with a reason belongs to the group.
func (g *group) is(w Write, why string) bool {
	return g.verb == w.Verb && g.resource == w.Resource && g.domain == w.Domain && g.why == why
}

// within returns where a write happens: " in zone a"; empty outside of failure domains.
func within(domain string) string {
	if domain == "" {
		return ""
	}
	return " in " + domain
}

// step is one moment at which the controller writes.
type step struct {
	number int
	at     time.Duration
	groups []group
}

// key is equal for steps with the same writes.
func (s step) key() string {
	var b strings.Builder
	for _, g := range s.groups {
		fmt.Fprintf(&b, "%s %s %d %s %s\n", g.verb, g.resource, len(g.names), g.domain, g.why)
	}
	return b.String()
}

func stepsOf(writes []Write) []step {
	var steps []step
	for _, w := range writes {
		if n := len(steps); n == 0 || steps[n-1].number != w.Step {
			steps = append(steps, step{number: w.Step, at: w.At})
		}
		s := &steps[len(steps)-1]
		why := strings.ReplaceAll(w.Reason, w.Name, "the pod")
		i := slices.IndexFunc(s.groups, func(g group) bool { return g.is(w, why) })
		if i < 0 {
			i = len(s.groups)
			s.groups = append(s.groups, group{verb: w.Verb, resource: w.Resource, domain: w.Domain, why: why})
		}
		s.groups[i].names = append(s.groups[i].names, w.Name)
	}
	return steps
}

// longestPeriod is the maximum number of steps in a folded pattern, and fewest how often it must repeat.
const (
	longestPeriod = 6
	fewest        = 3
)

// fold joins similar writes of a step, and repeated steps.
func fold(writes []Write) []folded {
	steps := stepsOf(writes)
	keys := make([]string, len(steps))
	for i := range steps {
		keys[i] = steps[i].key()
	}
	var lines []folded
	for i := 0; i < len(steps); {
		period, times := repetition(keys[i:])
		for _, s := range steps[i : i+period] {
			lines = append(lines, linesOf(s)...)
		}
		if times > 1 {
			first, last := steps[i+period], steps[i+period*times-1]
			lines = append(lines, folded{
				steps: fmt.Sprintf("%d-%d", first.number, last.number),
				after: spelled(first.at) + " to " + spelled(last.at),
				what:  fmt.Sprintf("the same %d times more: %s", times-1, throughout(steps[i+period:i+period*times])),
			})
		}
		i += period * times
	}
	return lines
}

// repetition returns the length of the pattern that repeats most often from here on, and how often it repeats.
func repetition(keys []string) (period, times int) {
	period, times = 1, 1
	for p := 1; p <= longestPeriod && p <= len(keys); p++ {
		n := 1
		for (n+1)*p <= len(keys) && slices.Equal(keys[:p], keys[n*p:(n+1)*p]) {
			n++
		}
		if n >= fewest && n*p > period*times {
			period, times = p, n
		}
	}
	return period, times
}

func linesOf(s step) []folded {
	lines := make([]folded, len(s.groups))
	for i, g := range s.groups {
		what := fmt.Sprintf("%s %s %s", g.verb, g.resource, some(g.names))
		if len(g.names) > 1 {
			what = fmt.Sprintf("%s %d %s: %s", g.verb, len(g.names), g.resource, some(g.names))
		}
		lines[i] = folded{what: what + within(g.domain), why: g.why}
		if i == 0 {
			lines[i].steps, lines[i].after = strconv.Itoa(s.number), spelled(s.at)
		}
	}
	return lines
}

// throughout returns the names of the first and the last object that steps write.
func throughout(steps []step) string {
	first, last := steps[0].groups[0].names[0], steps[len(steps)-1].groups
	names := last[len(last)-1].names
	return first + " … " + names[len(names)-1]
}
