// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	_ "embed"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// These are the measures of a picture, in its own units.
const (
	pictureWidth = 960
	laneLeft     = 210
	laneRight    = pictureWidth - 30
	curveTop     = 96
	curveHeight  = 130
	laneTop      = curveTop + curveHeight + 62
	labelRoom    = 8
)

// maxRows is the maximum number of rows of lanes in a picture. More lanes are folded.
const maxRows = 40

//go:embed picture.css
var pictureStyle string

// painter draws one picture.
type painter struct {
	strings.Builder

	forecast *Forecast
	length   time.Duration
	rows     []row
}

// row is a lane, or several that look alike.
type row struct {
	label  string
	spans  []Span
	lanes  int
	height int
}

// SVG writes the forecast as a picture: a lane for each pod, the curve of availability with its floor, and the steps. It is
// a single file, and follows the reader's choice of a light or a dark page.
func (f *Forecast) SVG(w io.Writer) error {
	_, err := io.WriteString(w, f.picture())
	return err
}

func (f *Forecast) picture() string {
	p := &painter{forecast: f, length: f.Takes + f.Takes/20}
	p.length = max(p.length, 5*time.Second)
	p.rows = rowsOf(f.Lanes, p.length)
	height := laneTop + 70
	for _, r := range p.rows {
		height += r.height + 3
	}
	fmt.Fprintf(p, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", pictureWidth, height, esc(p.title()))
	fmt.Fprintf(p, "<style>%s</style>\n", pictureStyle)
	p.WriteString("<defs><pattern id=\"stripes\" width=\"6\" height=\"6\" patternTransform=\"rotate(45)\" patternUnits=\"userSpaceOnUse\"><rect width=\"3\" height=\"6\" class=\"stripe\"/></pattern></defs>\n")
	fmt.Fprintf(p, "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", pictureWidth, height)
	p.text(20, 30, "title", p.title())
	p.text(20, 52, "note", p.subtitle())
	p.legend(74)
	p.steps(height - 46)
	p.curve()
	y := laneTop
	for _, r := range p.rows {
		p.lane(y, r)
		y += r.height + 3
	}
	p.axis(height - 40)
	p.WriteString("</svg>\n")
	return p.String()
}

func (p *painter) title() string {
	title := p.forecast.Set + ": " + string(p.forecast.Class)
	if p.forecast.Field != "" {
		title += ", " + p.forecast.Field
	}
	return title
}

func (p *painter) subtitle() string {
	f := p.forecast
	text := fmt.Sprintf("%s%s; at least %d of %d pods available (floor %d); at most %d pods at once", spelled(f.Takes), f.beside(), f.LowestAvailable, f.Replicas, f.Floor, f.MostPods)
	if n := len(f.IfBroken.BrokenPods); n > 0 {
		text += fmt.Sprintf("; if new pods never become ready: %d break, %d stay available", n, f.IfBroken.LowestAvailable)
	}
	return text
}

// x returns the position of a moment.
func (p *painter) x(at time.Duration) float64 {
	return laneLeft + float64(laneRight-laneLeft)*min(1, at.Seconds()/p.length.Seconds())
}

func (p *painter) text(x float64, y int, class, text string) {
	fmt.Fprintf(p, "<text x=\"%.1f\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, esc(text))
}

// legend names the revisions and the states.
func (p *painter) legend(y int) {
	x := 20.0
	item := func(class, text string) {
		fmt.Fprintf(p, "<rect x=\"%.1f\" y=\"%d\" width=\"14\" height=\"10\" rx=\"2\" class=\"%s\"/>\n", x, y-9, class)
		p.text(x+19, y, "small", text)
		x += 19 + 6.3*float64(len([]rune(text))) + 16
	}
	for i, r := range p.forecast.Revisions {
		if i == 4 { // there are no more colors
			break
		}
		name := r.Name
		if len(r.Images) > 0 {
			name = shortened(strings.Join(r.Images, ", "), 34)
		}
		item(fmt.Sprintf("rev%d", i), name)
	}
	item("any starting", "not ready")
	item("any ready", "ready")
	item("any updating", "out of service, in place")
	item("any terminating", "terminating")
}

func shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return text
}

// curve draws how many pods exist and are available.
func (p *painter) curve() {
	f := p.forecast
	top := max(f.MostPods, f.Replicas, 1)
	y := func(n int) float64 { return curveTop + curveHeight*(1-float64(n)/float64(top)) }
	fmt.Fprintf(p, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"plot\"/>\n", laneLeft, curveTop, laneRight-laneLeft, curveHeight)
	p.line("pods", y, func(q Point) int { return q.Pods })
	p.line("available", y, func(q Point) int { return q.Available })
	fmt.Fprintf(p, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"floor\"/>\n", laneLeft, laneRight, y(f.Floor), y(f.Floor))
	ticks := []struct {
		n    int
		text string
	}{{top, fmt.Sprintf("%d pods", top)}, {f.Floor, fmt.Sprintf("floor %d", f.Floor)}, {0, "0 available"}}
	last := -100.0
	for _, tick := range ticks {
		at := max(y(tick.n)+4, last+13)
		fmt.Fprintf(p, "<text x=\"%d\" y=\"%.1f\" class=\"label\">%s</text>\n", laneLeft-labelRoom, at, esc(tick.text))
		last = at
	}
}

// line draws one number of the curve in steps.
func (p *painter) line(class string, y func(int) float64, of func(Point) int) {
	if len(p.forecast.Curve) == 0 {
		return
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%d %.1f", laneLeft, y(of(p.forecast.Curve[0])))
	for _, q := range p.forecast.Curve {
		fmt.Fprintf(&path, "H%.1fV%.1f", p.x(q.At), y(of(q)))
	}
	fmt.Fprintf(&path, "H%d", laneRight)
	fmt.Fprintf(p, "<path d=\"%s\" class=\"line %s\"/>\n", path.String(), class)
}

// lane draws one row.
func (p *painter) lane(y int, r row) {
	fmt.Fprintf(p, "<text x=\"%d\" y=\"%d\" class=\"label\">%s</text>\n", laneLeft-labelRoom, y+r.height/2+4, esc(r.label))
	for _, span := range r.spans {
		from, to := p.x(span.From), p.x(span.To)
		if span.open {
			to = laneRight
		}
		rev := slices.IndexFunc(p.forecast.Revisions, func(v Revision) bool { return v.Name == span.Revision })
		class := fmt.Sprintf("rev%d %s", max(0, rev)%4, span.State)
		fmt.Fprintf(p, "<g><title>%s: %s, %s to %s</title><rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>",
			esc(r.label), span.State, spelled(span.From), spelled(min(span.To, p.length)), from, y, max(0.8, to-from), r.height, class)
		if span.State == Starting || span.State == Updating {
			fmt.Fprintf(p, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"url(#stripes)\"/>", from, y, max(0.8, to-from), r.height)
		}
		p.WriteString("</g>\n")
	}
}

// closest is the smallest distance between the marks of two steps.
const closest = 16

// steps marks where the controller writes after it waited.
func (p *painter) steps(bottom int) {
	for _, w := range p.forecast.Waits {
		x := p.x(w.At)
		fmt.Fprintf(p, "<g><title>%s</title><line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=\"wait\"/></g>\n", esc(w.Says), x, x, curveTop, bottom)
	}
	last := math.Inf(-1)
	for _, s := range stepsOf(p.forecast.Writes) {
		x := p.x(s.at)
		fmt.Fprintf(p, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=\"step\"/>\n", x, x, curveTop+curveHeight, bottom)
		if x-last < closest {
			continue
		}
		last = x
		fmt.Fprintf(p, "<text x=\"%.1f\" y=\"%d\" class=\"mark\">%d</text>\n", x, curveTop+curveHeight+32, s.number)
	}
	if len(p.forecast.Writes) > 0 {
		fmt.Fprintf(p, "<text x=\"%d\" y=\"%d\" class=\"label\">it waits until step</text>\n", laneLeft-labelRoom, curveTop+curveHeight+32)
	}
}

// ticks is the approximate number of moments on the axis.
const ticks = 6

// axis labels moments.
func (p *painter) axis(y int) {
	step := p.length / ticks
	for _, round := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
		10 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	} {
		if step <= round {
			step = round
			break
		}
	}
	for at := time.Duration(0); at <= p.length; at += step {
		fmt.Fprintf(p, "<text x=\"%.1f\" y=\"%d\" class=\"mark\">%s</text>\n", p.x(at), y+10, short(at))
	}
	if p.forecast.WaitsFor != "" {
		p.text(20, y+32, "note", "Then it waits: "+shortened(p.forecast.WaitsFor, 130))
	}
}

// short formats a time without units that are zero.
func short(d time.Duration) string {
	text := d.String()
	text = strings.TrimSuffix(text, "0s")
	if text == "" || strings.HasSuffix(text, "1") || text[len(text)-1] >= '0' && text[len(text)-1] <= '9' {
		text += "0s"
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// rowsOf returns the rows of a picture: one for each lane or, if there are too many, one for lanes that look alike.
func rowsOf(lanes []Lane, length time.Duration) []row {
	lanes = slices.Clone(lanes)
	slices.SortStableFunc(lanes, compareLanes)
	grain := length / 500
	var rows []row
	for _, lane := range lanes {
		rows = append(rows, row{label: shortened(lane.Name, 26), spans: lane.Spans, lanes: 1})
	}
	for len(rows) > maxRows && grain <= length {
		rows = folds(rows, grain)
		grain *= 2
	}
	room := min(24, max(9, 640/max(1, len(rows))))
	for i := range rows {
		rows[i].height = room
		if rows[i].lanes > 1 {
			rows[i].height = max(room, 14)
			rows[i].label += fmt.Sprintf(" +%d", rows[i].lanes-1)
		}
	}
	return rows
}

// compareLanes sorts lanes by what happens first.
func compareLanes(a, b Lane) int {
	for i := range min(len(a.Spans), len(b.Spans)) {
		x, y := a.Spans[i], b.Spans[i]
		if order := cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To)); order != 0 {
			return order
		}
	}
	return 0
}

// folds merges rows that differ by less than a grain of time.
func folds(rows []row, grain time.Duration) []row {
	var out []row
	for _, r := range rows {
		same := slices.IndexFunc(out, func(o row) bool { return alike(o.spans, r.spans, grain) })
		if same < 0 {
			out = append(out, r)
			continue
		}
		out[same].lanes += r.lanes
	}
	return out
}

func alike(a, b []Span, grain time.Duration) bool {
	return slices.EqualFunc(a, b, func(x, y Span) bool {
		return x.State == y.State && x.Revision == y.Revision && x.open == y.open &&
			(x.From-y.From).Abs() <= grain && (x.open || (x.To-y.To).Abs() <= grain)
	})
}

func esc(text string) string { return html.EscapeString(text) }

//go:embed page.css
var pageStyle string

// HTML writes the forecast as a page: the picture, and its content in words.
func (f *Forecast) HTML(w io.Writer) error {
	var words strings.Builder
	if err := f.Text(&words, false); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"+
		"<link rel=\"icon\" href=\"data:,\">\n<title>Plan of %s</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n<div class=\"picture\">\n%s</div>\n<pre>%s</pre>\n</main>\n</body>\n</html>\n",
		esc(f.Set), pageStyle, f.picture(), esc(words.String()))
	return err
}
