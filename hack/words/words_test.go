// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package words keeps phrases out of comments that are hard to read.
package words

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// phrases maps each phrase to avoid to its replacement.
var phrases = map[string]string{
	`nobody`:                     "no client, no user, no other controller",
	`(?:some|any)body`:           "a user, another client",
	`who(?:so)?ever`:             "a user who, the client that",
	`of (?:which|whom)`:          "whose, or two sentences",
	`says? whether`:              "reports whether",
	`tells? whether`:             "reports whether",
	`any ?more`:                  "no longer",
	`in vain`:                    "without effect",
	`(?:t?here|where)by`:         "so, by this",
	`for ever`:                   "without end, or how long",
	`what (?:becomes|became) of`: "happens to",
	`(?:go|goes|went) wrong`:     "fails",
	`as good as`:                 "almost",
	`as to (?:how|its|the|what|when|where|which|who|why)`:                                                              "about",
	`[a-z)], for (?:a|an|all|any|he|it|its|no|none|nothing|one|that|the|then|there|these|they|this|those|we|what|who)`: "because",
}

// TestPhrases reads the comments of all Go files of the project.
func TestPhrases(t *testing.T) {
	patterns := map[string]*regexp.Regexp{}
	for phrase := range phrases {
		patterns[phrase] = regexp.MustCompile(`(?i)\b` + phrase + `\b`)
	}
	files := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "dist" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range parsed.Comments {
			text := strings.ReplaceAll(group.Text(), "\n", " ")
			for phrase, pattern := range patterns {
				if at := pattern.FindStringIndex(text); at != nil {
					t.Errorf("%s: write %q instead of %q in: %s", name, phrases[phrase], text[at[0]:at[1]], text)
				}
			}
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d Go files were read, which is not the whole project: %v", files, err)
	}
}
