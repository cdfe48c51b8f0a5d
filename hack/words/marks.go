// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// mark is a phrase that a translation leaves behind, why it is hard to read, and how English documentation says it.
type mark struct {
	name, reason, better string
	pattern              *regexp.Regexp
}

// allMarks returns the phrases to avoid.
func allMarks() []mark {
	return []mark{
		{"nobody", "hides the subject", "no client, no user, no other controller", phrase(`nobody`)},
		{"somebody", "hides the subject", "a user, another client", phrase(`(?:some|any)body`)},
		{"whoever", "hides the subject", "a user who, the client that", phrase(`who(?:so)?ever`)},
		{"of which", "puts the relative clause before its noun", "whose, or two sentences", phrase(`of (?:which|whom)`)},
		{", for", "reads as a purpose until the end of the sentence", "because", regexp.MustCompile(`(?i), for (?:a|an|all|any|he|it|its|no|none|nothing|one|that|the|then|there|these|they|this|those|we|what|who)\s`)},
		{"says whether", "gives a wish to a thing; Go's own documentation has another verb", "reports whether", phrase(`(?:says?|tells?) whether`)},
		{"as to", "is legal language", "about", regexp.MustCompile(`(?i)\bas to (?:how|its|the|what|when|where|which|who|why)\b`)},
		{"any more", "needs its negation far before it", "no longer", phrase(`any ?more`)},
		{"in vain", "is literary", "without effect", phrase(`in vain`)},
		{"thereby", "is legal language", "so, by this", phrase(`(?:t?here|where)by`)},
		{"for ever", "is literary", "without end, or how long", phrase(`for ever`)},
		{"what becomes of", "is literary", "what happens to", phrase(`what (?:becomes|became) of`)},
		{"goes wrong", "does not say what failed", "fails", phrase(`(?:go|goes|went) wrong`)},
		{"as good as", "is ambiguous", "almost", phrase(`as good as`)},
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
