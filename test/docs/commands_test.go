// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// glance is the time between the first two looks at something that is waited for.
const glance = 250 * time.Millisecond

// run runs a page from top to bottom in its own namespace.
func (c *cluster) run(t *testing.T, p *page) {
	t.Helper()
	s := c.newShell(t, p.name())
	for i := range p.blocks {
		b := &p.blocks[i]
		where := fmt.Sprintf("%s:%d", p.path, b.line)
		switch {
		case b.skip != "":
		case b.language == "yaml" && b.file != "":
			if err := os.WriteFile(filepath.Join(s.dir, b.file), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		case b.language == "sh":
			if out, err := s.run(t.Context(), b.text); err != nil {
				t.Fatalf("%s: %v\n%s\n%s", where, err, out, s.describe(t.Context()))
			}
		case b.language == "console":
			for _, e := range transcript(b.text) {
				if failure := s.expect(t.Context(), e); failure != "" {
					t.Fatalf("%s: %s\n%s", where, failure, s.describe(t.Context()))
				}
			}
		}
	}
}

// exchange is a command of a transcript with its output; empty if the page does not show it.
type exchange struct{ command, output string }

// transcript parses a console block. Indented lines below a command belong to it.
func transcript(text string) (exchanges []exchange) {
	continues := false
	for line := range strings.Lines(text) {
		command, begins := strings.CutPrefix(line, "$ ")
		continues = begins || continues && strings.HasPrefix(line, "  ")
		switch last := len(exchanges) - 1; {
		case begins:
			exchanges = append(exchanges, exchange{command: command})
		case last >= 0 && continues:
			exchanges[last].command += line
		case last >= 0:
			exchanges[last].output += line
		}
	}
	return exchanges
}

// polled matches commands whose output is waited for, because they only read.
var polled = regexp.MustCompile(`^kubectl (get|events) `)

var (
	// random matches the ids of pods and the hashes of revisions: no vowels, and no digits that look like letters.
	random  = regexp.MustCompile(`-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|[bcdfghjklmnpqrstvwxz2456789]{8,10})\b`)
	age     = regexp.MustCompile(`\b(?:\d+d|(?:\d+m)?\d+s)\b`)
	spaces  = regexp.MustCompile(`[ \t]+`)
	anyLine = regexp.MustCompile(`(?m)^…\n`)
	// logLine matches a line of kubectl's log. kubectl wait may log that it ended its watch.
	logLine = regexp.MustCompile(`(?m)^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n`)
)

// normalize replaces what need not be equal.
func normalize(text string) string {
	text = random.ReplaceAllString(logLine.ReplaceAllString(text, ""), "-?")
	text = spaces.ReplaceAllString(age.ReplaceAllString(text, "?s"), " ")
	return strings.ReplaceAll(text, " \n", "\n")
}

// pattern matches the output of a command that a page shows.
func pattern(output string) *regexp.Regexp {
	text := anyLine.ReplaceAllString(normalize(output), "\x00")
	text = regexp.QuoteMeta(text)
	text = strings.NewReplacer("\x00", `(?:.*\n)*?`, "…", ".*").Replace(text)
	return regexp.MustCompile(`^` + text + `$`)
}

// TestLogOfKubectl compares what kubectl prints beside its log, which pages do not show.
func TestLogOfKubectl(t *testing.T) {
	t.Parallel()
	want := pattern("rollset.apps.rollset.dev/db condition met\n")
	warning := `I1127 19:49:41.385356   25787 reflector.go:664] "Warning: watch ended with error" err="context canceled"` + "\n"
	if printed := warning + "rollset.apps.rollset.dev/db condition met\n"; !want.MatchString(normalize(printed)) {
		t.Errorf("the page's line does not match\n%s", normalize(printed))
	}
	if printed := warning + "error: timed out waiting for the condition\n"; want.MatchString(normalize(printed)) {
		t.Errorf("the page's line matches\n%s", printed)
	}
}

// lines adds a line break to a text without one, such as kubectl's output for jsonpath.
func lines(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
