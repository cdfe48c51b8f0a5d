// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	// notInAnchor matches the characters that GitHub removes from a heading to make its anchor.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks follows every link from one file of the project to another, and checks that every page is reachable from the
// README.
func TestLinks(t *testing.T) {
	root, all := pages(t)
	byPath := map[string]*page{}
	for _, p := range all {
		byPath[p.path] = p
	}
	linked := map[string][]string{}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.path
			if file != "" {
				target = filepath.Join(filepath.Dir(p.path), file)
			}
			linked[p.path] = append(linked[p.path], target)
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: link to %s: there is no such file", p.path, m[1])
			} else if to := byPath[target]; anchor != "" && (to == nil || !to.anchors()[anchor]) {
				t.Errorf("%s: link to %s: there is no such heading", p.path, m[1])
			}
		}
	}
	reached := map[string]bool{}
	reach("README.md", linked, reached)
	for _, p := range all {
		if !reached[p.path] && !strings.HasPrefix(p.path, "docs/adr/") { // the README leads to their folder
			t.Errorf("%s: no way leads there from README.md", p.path)
		}
	}
}

// TestIndexNamesPagesThatAreNotRun compares what the index of pages says of commands that no test runs with the pages.
func TestIndexNamesPagesThatAreNotRun(t *testing.T) {
	_, all := pages(t)
	named, notRun := map[string]bool{}, map[string]bool{}
	for _, p := range all {
		if p.path == "docs/README.md" {
			_, rest, ok := strings.Cut(p.text, "They do not run those of")
			if !ok {
				t.Fatal("the index does not say which commands are not run")
			}
			sentence, _, _ := strings.Cut(rest, "\n\n")
			for _, m := range link.FindAllStringSubmatch(sentence, -1) {
				named[filepath.Join("docs", m[1])] = true
			}
		}
		if !p.isRun() && slices.ContainsFunc(p.blocks, func(b block) bool { return b.language == "sh" || b.language == "console" }) {
			notRun[p.path] = true
		}
	}
	if diff := cmp.Diff(notRun, named); diff != "" {
		t.Errorf("pages with commands that no test runs, and those that the index names:\n%s", diff)
	}
}

// TestPaths checks that the files and folders on the pages for contributors exist.
func TestPaths(t *testing.T) {
	root, all := pages(t)
	named := regexp.MustCompile("`((?:api|cmd|config|docs|hack|internal|test)/[a-zA-Z0-9_/.-]+)`")
	for _, p := range all {
		if p.path != "CONTRIBUTING.md" && filepath.Dir(p.path) != "docs/contributing" {
			continue
		}
		found := named.FindAllStringSubmatch(p.text, -1)
		if filepath.Base(p.path) == "map.md" && len(found) < 10 {
			t.Errorf("%s names %d paths, want a map of the project", p.path, len(found))
		}
		for _, m := range found {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s: there is no such file", p.path, m[1])
			}
		}
	}
}

func reach(path string, linked map[string][]string, reached map[string]bool) {
	if reached[path] {
		return
	}
	reached[path] = true
	for _, to := range linked[path] {
		reach(to, linked, reached)
	}
}

// anchors returns what a link can name in the page.
func (p *page) anchors() map[string]bool {
	text := p.text
	for _, b := range p.blocks {
		text = strings.ReplaceAll(text, b.text, "")
	}
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		words := link.ReplaceAllString(m[1], "]")
		anchors[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(words), ""), " ", "-")] = true
	}
	return anchors
}
