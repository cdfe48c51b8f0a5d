// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs tests what the documentation says: links lead somewhere, manifests are accepted, every reason is explained,
// and commands do what the pages promise.
//
// # Pages whose commands are run
//
// A page with the comment "commands run by test/docs" is run from top to bottom against a local cluster, in a namespace of
// its own and with the repository's config folder at hand:
//
//   - A sh block has to succeed.
//   - A console block is a transcript. Lines that begin with "$ " are commands, and indented lines go on with them; the
//     lines below are their output. "…" stands for any text, and alone on a line for any lines. Spaces, ages, random
//     names and hashes need not be equal. What kubectl get and kubectl events print is waited for. A command may fail if
//     the page shows how.
//   - A yaml block with a file name behind the word yaml is written to that file.
//   - A comment that begins with the word "run" is a sh block that readers do not see.
//   - A comment that begins with "not run:" says why the next block is not.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// runMark makes the commands of a page a test.
const runMark = "<!-- commands run by test/docs -->"

// page is a Markdown file.
type page struct {
	// path is relative to the repository's root.
	path   string
	text   string
	blocks []block
}

// block is a fenced block of a page, or a hidden one.
type block struct {
	line int // of its content, counted from 1
	// language is the first word after the fence, and file the second, if there is one.
	language, file string
	text           string
	// skip is why the block is not run; empty if it is.
	skip string
}

var (
	// opening matches the line that opens a fenced block; it may be indented, in a list.
	opening = regexp.MustCompile("^( *)```([a-z]*) *(\\S*)$")
	notRun  = regexp.MustCompile(`^ *<!-- not run: (.+) -->$`)
)

// name returns the path in the form of a namespace's name.
func (p *page) name() string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(p.path, ".md"), "/", "-"))
}

// isRun reports whether the commands of the page are a test.
func (p *page) isRun() bool { return strings.Contains(p.text, runMark) }

// prose returns the page without its blocks, and without code in lines.
func (p *page) prose() string {
	text := p.text
	for _, b := range p.blocks {
		text = strings.ReplaceAll(text, b.text, "")
	}
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
}

// parse finds the blocks of a page.
func (p *page) parse(t *testing.T) {
	t.Helper()
	lines := strings.Split(p.text, "\n")
	skip := ""
	for i := 0; i < len(lines); i++ {
		if m := notRun.FindStringSubmatch(lines[i]); m != nil {
			skip = m[1]
			continue
		}
		b := block{line: i + 2, skip: skip}
		var end string
		switch m := opening.FindStringSubmatch(lines[i]); {
		case m != nil:
			b.language, b.file, end = m[2], m[3], m[1]+"```"
		case lines[i] == "<!-- run":
			b.language, end = "sh", "-->"
		default:
			continue
		}
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " "))]
		for i++; i < len(lines) && lines[i] != end; i++ {
			b.text += strings.TrimPrefix(lines[i], indent) + "\n"
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: the block has no end", p.path, b.line)
		}
		p.blocks = append(p.blocks, b)
		skip = ""
	}
}

// pages reads all of the project's pages.
func pages(t *testing.T) (root string, all []*page) {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "dist"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		p := &page{path: relative, text: string(text)}
		p.parse(t)
		all = append(all, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("%d pages below %s, want all of the documentation", len(all), root)
	}
	return root, all
}
