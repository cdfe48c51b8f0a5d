// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// mark is a phrase that a translation leaves behind, and how English documentation says it.
type mark struct {
	name, better string
	pattern      *regexp.Regexp
}

// allMarks returns the phrases to avoid.
func allMarks() []mark {
	return []mark{
		{"nobody", "no one; or name the subject: no client, no user", phrase(`nobody`)},
		{"somebody", "a user, another client", phrase(`(?:some|any)body`)},
		{"whoever", "anyone who, the client that", phrase(`who(?:so)?ever`)},
		{"of which", "whose, or two sentences", phrase(`of (?:which|whom)`)},
		{", for", "because", regexp.MustCompile(`(?i), for (?:a|an|all|any|he|it|its|no|none|nothing|one|that|the|then|there|these|they|this|those|we|what|who)\s`)},
		{"says whether", "reports whether", phrase(`(?:says?|tells?) whether`)},
		{"as to", "about", regexp.MustCompile(`(?i)\bas to (?:how|its|the|what|when|where|which|who|why)\b`)},
		{"any more", "no longer", phrase(`any ?more`)},
		{"in vain", "without effect", phrase(`in vain`)},
		{"thereby", "so, by this", phrase(`(?:t?here|where)by`)},
		{"for ever", "forever, or how long", phrase(`for ever`)},
		{"what becomes of", "what happens to", phrase(`what (?:becomes|became) of`)},
		{"goes wrong", "fails", phrase(`(?:go|goes|went) wrong`)},
		{"as good as", "almost", phrase(`as good as`)},
	}
}

func phrase(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b` + words + `\b`) }

// found is one mark in a text.
type found struct{ path, mark, context string }

// search finds the marks of a text.
func search(marks []mark, path, text string) (all []found) {
	for _, m := range marks {
		for _, at := range m.pattern.FindAllStringIndex(text, -1) {
			context := strings.ReplaceAll(strings.TrimSpace(text[max(at[0]-40, 0):min(at[1]+40, len(text))]), "\n", " ")
			all = append(all, found{path: path, mark: m.name, context: strings.ToValidUTF8(context, "")})
		}
	}
	return all
}

// count returns how often a mark was found.
func count(all []found, mark string) (n int) {
	for _, f := range all {
		if f.mark == mark {
			n++
		}
	}
	return n
}

// comments returns the comments of a Go file, one paragraph a line. A file that does not parse has none.
func comments(source string) string {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
	if err != nil {
		return ""
	}
	var text strings.Builder
	for _, group := range parsed.Comments {
		text.WriteString(strings.ReplaceAll(strings.TrimSpace(group.Text()), "\n", " ") + "\n")
	}
	return text.String()
}
