// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// index is the page that lists the decision records.
const index = "docs/adr/README.md"

var (
	// record matches the beginning of a decision record: number, title, date and status.
	record = regexp.MustCompile(`^# (\d+)\. (.+)\n\nDate: (\d{4}-\d\d-\d\d)\. Status: (.+)\.\n\n## Context\n`)
	status = regexp.MustCompile(`^(?:superseded by LINK|accepted(?:; (?:amends|amended by|supersedes) LINK)*)$`)
	toADR  = regexp.MustCompile(`\[(\d+)\]\((\d{4})-[a-z-]+\.md\)`)
)

// TestDecisions checks that all decision records have the same form and at most 180 lines, that links between them lead back,
// and that the index lists them.
func TestDecisions(t *testing.T) {
	_, all := pages(t)
	rows, claims := []string{}, map[string]bool{}
	listed := ""
	for _, p := range all {
		if p.path == index {
			listed = p.text
		}
		if filepath.Dir(p.path) != "docs/adr" || p.path == index {
			continue
		}
		m := record.FindStringSubmatch(p.text)
		if m == nil {
			t.Errorf("%s does not begin like a decision record:\n%.200s", p.path, p.text)
			continue
		}
		if !strings.HasSuffix("000"+m[1], filepath.Base(p.path)[:4]) {
			t.Errorf("%s has number %s", p.path, m[1])
		}
		checkForm(t, p, m[4])
		for clause := range strings.SplitSeq(m[4], "; ") {
			if link := toADR.FindStringSubmatch(clause); link != nil {
				claims[m[1]+" "+strings.Fields(clause)[0]+" "+link[1]] = true
			}
		}
		rows = append(rows, fmt.Sprintf("| [%s](%s) | %s | %s | %s |", m[1], filepath.Base(p.path), m[2], m[3], m[4]))
	}
	back := map[string]string{"amends": "amended", "amended": "amends", "supersedes": "superseded", "superseded": "supersedes"}
	for claim := range claims {
		words := strings.Fields(claim)
		if inverse := words[2] + " " + back[words[1]] + " " + words[0]; !claims[inverse] {
			t.Errorf("decision %s, but not: %s", claim, inverse)
		}
	}
	slices.Sort(rows)
	got := regexp.MustCompile(`(?m)^\| \[.*$`).FindAllString(listed, -1)
	slices.Sort(got)
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", index, diff)
	}
}

// checkForm checks that a record has three sections, a known status, and at most 180 lines.
func checkForm(t *testing.T, p *page, says string) {
	t.Helper()
	if !status.MatchString(toADR.ReplaceAllString(says, "LINK")) {
		t.Errorf("%s: status %q", p.path, says)
	}
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(p.text, -1) {
		sections = append(sections, m[1])
	}
	if diff := cmp.Diff([]string{"Context", "Decision", "Consequences"}, sections); diff != "" {
		t.Errorf("%s: sections (-want +got):\n%s", p.path, diff)
	}
	if n := strings.Count(p.text, "\n"); n > 180 {
		t.Errorf("%s has %d lines, want 180 at most", p.path, n)
	}
}
