// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// These are measures in pixels.
const (
	left   = 44
	top    = 96
	column = 30
	row    = 24
	right  = 24
	bottom = 64
)

const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.claim { font-size: 14px; font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.mark { font-size: 11px; text-anchor: middle; fill: #ffffff; }
.pod { text-anchor: end; font-family: ui-monospace, monospace; }
.user { stroke: #cf222e; stroke-width: 1.4; }
.tick { stroke: #8c959f; stroke-width: 0.6; stroke-dasharray: 2 3; }
.page { fill: #ffffff; }
.rev0 { fill: #6e7781; } .rev1 { fill: #cf222e; } .rev2 { fill: #0969da; } .rev3 { fill: #8250df; }
.starting { opacity: 0.5; } .ready { opacity: 0.75; } .updating { opacity: 0.75; } .terminating { opacity: 0.25; } .failed { opacity: 0.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .page { fill: #0d1117; }
  .tick { stroke: #6e7681; }
}
</style>
`

// marks returns the states in the log, and how they are drawn.
func marks() map[byte]struct{ class, sign, name string } {
	return map[byte]struct{ class, sign, name string }{
		'+': {"available", "●", "available"},
		'r': {"ready", "◐", "ready"},
		'.': {"starting", "○", "not ready"},
		'~': {"updating", "↻", "updating in place"},
		'x': {"terminating", "×", "terminating"},
		'!': {"failed", "!", "failed"},
	}
}

// draw returns the picture of a film.
func draw(f *film) string {
	width, height := max(left+column*len(f.frames)+right, 24+8*len(f.claim)), top+row*len(f.pods)+bottom
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", width, height, html.EscapeString(f.claim))
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text class="claim" x="12" y="26">%s</text>`+"\n", html.EscapeString(f.claim))
	drawTimes(&b, f)
	drawPods(&b, f)
	drawLegend(&b, f, height-16)
	b.WriteString("</svg>\n")
	return b.String()
}

// drawTimes draws a line where the time changes, and one with a word for each user action.
func drawTimes(b *strings.Builder, f *film) {
	below := top + row*len(f.pods)
	last, high := "", false
	for i, fr := range f.frames {
		x := left + column*i
		if fr.time != last {
			fmt.Fprintf(b, `<path class="tick" d="M%d %dV%d"/><text class="small" x="%d" y="%d">%s</text>`+"\n", x, top, below+6, x, below+18, fr.time)
			last = fr.time
		}
		if fr.actor == "user" {
			y := 54
			if high = !high; !high {
				y = 72
			}
			fmt.Fprintf(b, `<path class="user" d="M%d %dV%d"/><text x="%d" y="%d">%s</text>`+"\n", x, y+4, below, x, y, html.EscapeString(fr.event))
		}
	}
}

// drawPods draws a row for each pod. Equal states that follow each other are one box.
func drawPods(b *strings.Builder, f *film) {
	known := marks()
	for y, id := range f.pods {
		at := top + row*y
		fmt.Fprintf(b, `<text class="pod" x="%d" y="%d">%s</text>`+"\n", left-10, at+16, id)
		for i := 0; i < len(f.frames); {
			s, there := f.frames[i].pods[id]
			n := i + 1
			for n < len(f.frames) && f.frames[n].pods[id] == s {
				n++
			}
			if there {
				m := known[s.mark]
				x, width := left+column*i, column*(n-i)
				fmt.Fprintf(b, `<rect class="rev%d %s" x="%d" y="%d" width="%d" height="%d" rx="4"><title>%s at %s: %s</title></rect>`,
					slices.Index(f.revisions, s.revision)%4, m.class, x+1, at+2, width-2, row-4, id, s.revision, m.name)
				fmt.Fprintf(b, `<text class="mark" x="%d" y="%d">%s</text>`+"\n", x+width/2, at+16, m.sign)
			}
			i = n
		}
	}
}

// drawLegend lists the revisions, and the states in the film.
func drawLegend(b *strings.Builder, f *film, y int) {
	x := left
	for i, revision := range f.revisions {
		fmt.Fprintf(b, `<rect class="rev%d" x="%d" y="%d" width="14" height="14" rx="3"/><text x="%d" y="%d">%s</text>`+"\n", i%4, x, y-11, x+20, y, revision)
		x += 60
	}
	known := marks()
	for _, mark := range []byte("+r.~x!") {
		if m := known[mark]; f.has(mark) {
			fmt.Fprintf(b, `<text x="%d" y="%d">%s %s</text>`+"\n", x, y, m.sign, m.name)
			x += 40 + 7*len(m.name)
		}
	}
}

// has reports whether a pod is in a state at any time.
func (f *film) has(mark byte) bool {
	return slices.ContainsFunc(f.frames, func(fr frame) bool {
		for _, s := range fr.pods {
			if s.mark == mark {
				return true
			}
		}
		return false
	})
}
