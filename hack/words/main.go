// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command words measures how easily the project's prose is read.
//
// For each Markdown page it prints the number of words, the mean length of a sentence, and the Flesch-Kincaid grade: the
// years of school a reader needs. Then it counts the phrases of marks, in pages and in the comments of Go files. Usage:
//
//	words [-where] [folder]
//
// # The rule
//
// Only prose is measured: headings, code blocks, tables, comments and addresses are left out. A list item ends a sentence.
// Code inside a sentence counts as one word of two syllables, however long it is.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	where := flag.Bool("where", false, "print the place of every mark")
	flag.Parse()
	text, places, err := run(os.DirFS(cmp.Or(flag.Arg(0), ".")))
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
	fmt.Print(text)
	if *where {
		fmt.Print(places)
	}
}

// run measures the files of a folder. It returns the tables, and the place of every mark.
func run(root fs.FS) (text, places string, err error) {
	pages, err := read(root, ".md")
	if err != nil {
		return "", "", err
	}
	sources, err := read(root, ".go")
	if err != nil {
		return "", "", err
	}
	var out, where strings.Builder
	report(&out, pages)
	var inPages, inComments []found
	marks := allMarks()
	for _, p := range pages {
		inPages = append(inPages, search(marks, p.path, prose(p.text))...)
	}
	for _, s := range sources {
		inComments = append(inComments, search(marks, s.path, comments(s.text))...)
	}
	fmt.Fprintf(&out, "\n%-16s %6s %9s   %s\n", "mark", "pages", "comments", "better")
	for _, m := range marks {
		fmt.Fprintf(&out, "%-16s %6d %9d   %s\n", m.name, count(inPages, m.name), count(inComments, m.name), m.better)
	}
	fmt.Fprintf(&out, "%-16s %6d %9d\n", "total", len(inPages), len(inComments))
	for _, f := range slices.Concat(inPages, inComments) {
		fmt.Fprintf(&where, "%s: %s: %s\n", f.path, f.mark, f.context)
	}
	return out.String(), where.String(), nil
}

// report prints the measure of each page, and of each group of pages.
func report(out *strings.Builder, pages []file) {
	const format = "%-52s %6d %14.1f %7.1f\n"
	fmt.Fprintf(out, "%-52s %6s %14s %7s\n", "page", "words", "words/sentence", "grade")
	groups := []struct {
		name string
		has  func(path string) bool
	}{
		{"README and docs", func(path string) bool {
			return path == "README.md" || strings.HasPrefix(path, "docs/") && !strings.HasPrefix(path, "docs/adr/")
		}},
		{"docs/adr", func(path string) bool { return strings.HasPrefix(path, "docs/adr/") }},
		{"other pages", func(path string) bool { return path != "README.md" && !strings.HasPrefix(path, "docs/") }},
	}
	for _, g := range groups {
		var total measure
		for _, p := range pages {
			if g.has(p.path) {
				m := measureOf(prose(p.text))
				total = total.plus(m)
				fmt.Fprintf(out, format, p.path, m.words, m.sentenceLength(), m.grade())
			}
		}
		fmt.Fprintf(out, format, "= "+g.name, total.words, total.sentenceLength(), total.grade())
	}
}

// file is a file of the project.
type file struct{ path, text string }

// read returns the files whose name ends as given, without those that are hidden or built.
func read(root fs.FS, extension string) (files []file, err error) {
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "dist"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != extension || strings.HasPrefix(entry.Name(), "zz_generated"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		files = append(files, file{path: name, text: string(text)})
		return err
	})
	return files, err
}
