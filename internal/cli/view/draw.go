// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// textLimit is the maximum length of a text of unknown origin that is shown.
const textLimit = 300

// row is a line of a tree: its branches, its text and the columns after it.
type row struct {
	stem    string
	mark    string
	name    string
	columns []string
	state   state
	isPod   bool
	// isTitle is true for a line about many pods, whose text is not aligned with theirs.
	isTitle bool
}

// lines draws a tree. If height is not 0, branches are folded so that it has no more lines, if possible. If width is not 0,
// lines are cut.
func (t *tree) lines(height, width int) []string {
	header := t.header()
	rows := t.rows(0)
	if height > 0 && len(header)+len(rows) > height {
		rows = t.rows(t.room(height - len(header)))
	}
	lines := append(header, align(rows)...)
	if width > 0 {
		for i := range lines {
			lines[i] = ansi.Truncate(lines[i], width, "…")
		}
	}
	return lines
}

// header returns the lines above the tree.
func (t *tree) header() []string {
	s := t.set.Status
	lines := []string{
		fmt.Sprintf("rollset/%s  %s  %d desired, %d updated, %d ready, %d available, %d total", t.set.Name, colored(t.reason, t.color()),
			t.limits.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.Replicas),
		podstate.Printable(t.message, textLimit),
	}
	if steps := t.steps(); steps != "" {
		lines = append(lines, steps)
	}
	return lines
}

// steps draws the steps of a rollout in one line: those that are done, the one at work with its phase, and those to come. It
// is empty without a rollout in steps, and while the status is about other steps than the spec has.
func (t *tree) steps() string {
	r, steps := t.set.Status.Rollout, t.set.Spec.UpdateStrategy.RollingUpdate.Steps
	if r == nil || int(r.Steps) != len(steps) {
		return ""
	}
	parts := []string{"steps"}
	for i := range len(steps) + 1 {
		size := "all"
		if i < len(steps) {
			size = steps[i].Updated.String()
		}
		parts = append(parts, stepMark(r, int32(i+1), size))
	}
	if r.Step == 0 {
		parts = append(parts, colored("given up", red))
	}
	return strings.Join(parts, "  ")
}

// stepMark draws one step.
func stepMark(r *v1beta1.RolloutStatus, step int32, size string) string {
	switch {
	case step < r.Step:
		return colored("✔ "+size, green)
	case step > r.Step:
		return colored("○ "+size, gray)
	case r.Phase == v1beta1.RolloutFailed:
		return colored("✖ "+size+" "+strings.ToLower(string(r.Phase)), red)
	default:
		return colored("▶ "+size+" "+strings.ToLower(string(r.Phase)), yellow)
	}
}

// color returns the color of the set: green if it is as it should be, red if nothing will move by itself.
func (t *tree) color() string {
	switch v := judge(t.set, 0); {
	case v.done:
		return green
	case v.failed:
		return red
	default:
		return yellow
	}
}

// room returns how many pods of a branch fit into a height.
func (t *tree) room(height int) int {
	n := len(t.branches)
	if n == 0 {
		return 1
	}
	return max(1, (height-2*n)/n) // each branch has a line of its own, and one for what is folded
}

// rows returns the rows of a tree, with at most limit pods in a branch; 0 is no limit. Unavailable pods are kept first,
// because the rollout waits for them.
func (t *tree) rows(limit int) []row {
	var rows []row
	for i := range t.branches {
		rows = append(rows, t.branchRows(&t.branches[i], i == len(t.branches)-1 && len(t.unused) == 0, limit)...)
	}
	if len(t.unused) > 0 {
		rows = append(rows, row{stem: "└─ ", name: "claims without a pod", columns: []string{strconv.Itoa(len(t.unused))}})
		if limit == 0 {
			for i, claim := range t.unused {
				rows = append(rows, claimRow(claim, "   ", i == len(t.unused)-1))
			}
		}
	}
	return rows
}

// stems returns what is drawn in front of an entry, and below it in front of its own.
func stems(last bool) (stem, below string) {
	if last {
		return "└─ ", "   "
	}
	return "├─ ", "│  "
}

// branchRows returns the rows of a revision and its pods.
func (t *tree) branchRows(b *branch, last bool, limit int) []row {
	stem, below := stems(last)
	title := fmt.Sprintf("revision %d %s%s", b.number, b.name, b.role)
	if b.number == 0 {
		title = "revision unknown"
	}
	rows := []row{{stem: stem, name: title, isTitle: true, columns: []string{cmp.Or(counts(b.leaves), "no pods") + "  " + b.images}}}
	shown, folded := fold(b.leaves, limit)
	for j := range shown {
		rows = append(rows, t.podRows(&shown[j], below, j == len(shown)-1 && len(folded) == 0)...)
	}
	if len(folded) > 0 {
		rows = append(rows, row{stem: below + "└─ ", name: fmt.Sprintf("… %d more", len(folded)), columns: []string{counts(folded)}})
	}
	return rows
}

// fold splits pods into those to show and those to count.
func fold(leaves []leaf, limit int) (shown, folded []leaf) {
	if limit == 0 || len(leaves) <= limit {
		return leaves, nil
	}
	for s := ended; s >= available; s-- {
		for i := range leaves {
			if leaves[i].state != s {
				continue
			}
			if len(shown) < limit {
				shown = append(shown, leaves[i])
			} else {
				folded = append(folded, leaves[i])
			}
		}
	}
	return shown, folded
}

// podRows returns the rows of a pod and its claims.
func (t *tree) podRows(l *leaf, below string, last bool) []row {
	stem, deeper := stems(last)
	status := l.state.String()
	if snapshot.Surges(l.pod) {
		status += " (surge)"
	}
	rows := []row{{
		stem: below + stem, mark: l.state.mark(), name: l.pod.Name, state: l.state, isPod: true,
		columns: []string{
			status, age(t.now, l.pod.CreationTimestamp), fmt.Sprintf("%d restarts", podstate.Restarts(l.pod)),
			cmp.Or(l.pod.Spec.NodeName, "<none>"), podstate.Printable(l.why, textLimit),
		},
	}}
	for i, claim := range l.claims {
		rows = append(rows, claimRow(claim, below+deeper, i == len(l.claims)-1))
	}
	return rows
}

func claimRow(claim *corev1.PersistentVolumeClaim, below string, last bool) row {
	stem, _ := stems(last)
	size := claim.Status.Capacity[corev1.ResourceStorage]
	if size.IsZero() {
		size = claim.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	return row{stem: below + stem, name: "claim " + claim.Name, columns: []string{string(claim.Status.Phase), size.String()}}
}

// align draws rows with aligned columns.
func align(rows []row) []string {
	widths := widthsOf(rows)
	lines := make([]string, len(rows))
	for i := range rows {
		var b strings.Builder
		for k, cell := range rows[i].cells() {
			text := cell
			if k < 2 {
				text = rows[i].paint(cell)
			}
			b.WriteString(text + "  ")
			if k < len(widths) && !rows[i].isTitle {
				b.WriteString(strings.Repeat(" ", max(0, widths[k]-ansi.StringWidth(cell))))
			}
		}
		lines[i] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// widthsOf returns the widths of columns. Only the first column of claims is aligned, and titles are not.
func widthsOf(rows []row) []int {
	var widths []int
	for i := range rows {
		cells := rows[i].cells()
		switch {
		case rows[i].isTitle:
			continue
		case !rows[i].isPod:
			cells = cells[:1]
		}
		for k, cell := range cells {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], ansi.StringWidth(cell))
		}
	}
	return widths
}

// cells returns the columns of a row. The first is the tree.
func (r *row) cells() []string {
	first := r.stem + r.name
	if r.mark != "" {
		first = r.stem + r.mark + " " + r.name
	}
	return append([]string{first}, r.columns...)
}

// paint colors a cell of a pod by its state.
func (r *row) paint(cell string) string {
	if !r.isPod {
		return cell
	}
	rest := strings.TrimPrefix(cell, r.stem)
	stem := cell[:len(cell)-len(rest)]
	return stem + colored(rest, [...]string{green, yellow, blue, yellow, gray, red}[r.state])
}

// These are the colors, by their numbers in a terminal.
const (
	red    = "1"
	green  = "2"
	yellow = "3"
	blue   = "4"
	gray   = "8"
)

func colored(text, color string) string {
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Render(text)
}
