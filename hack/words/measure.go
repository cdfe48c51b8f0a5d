// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// codeWord stands for code inside a sentence: one word of two syllables.
const codeWord = "kubectl"

var (
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	image    = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	code     = regexp.MustCompile("`[^`]*`")
	address  = regexp.MustCompile(`https?://\S+`)
	item     = regexp.MustCompile(`^ *(?:[*+-]|\d+\.) `)
	sentence = regexp.MustCompile(`[.!?]["')*_]*(?:\s+|$)`)
	word     = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}'’.,/%-]*`)
	vowels   = regexp.MustCompile(`[aeiouy]+`)
)

// prose returns the paragraphs of a Markdown page, one a line. A list item is a paragraph.
func prose(page string) string {
	page = comment.ReplaceAllString(page, "")
	var paragraphs []string
	open, fenced := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced, open = !fenced, false
		case fenced:
		case trimmed == "", strings.HasPrefix(trimmed, "|"), strings.HasPrefix(line, "#"), strings.HasPrefix(trimmed, "<"):
			open = false
		case open && !item.MatchString(line):
			paragraphs[len(paragraphs)-1] += " " + trimmed
		default:
			paragraphs, open = append(paragraphs, item.ReplaceAllString(line, "")), true
		}
	}
	text := strings.Join(paragraphs, "\n")
	text = link.ReplaceAllString(image.ReplaceAllString(text, ""), "$1")
	return address.ReplaceAllString(code.ReplaceAllString(text, codeWord), "")
}

// measure counts what the grade of a text is computed from.
type measure struct{ words, sentences, syllables int }

func (m measure) plus(other measure) measure {
	return measure{m.words + other.words, m.sentences + other.sentences, m.syllables + other.syllables}
}

// sentenceLength returns the mean number of words in a sentence.
func (m measure) sentenceLength() float64 { return float64(m.words) / float64(max(m.sentences, 1)) }

// grade returns the Flesch-Kincaid grade level.
func (m measure) grade() float64 {
	if m.words == 0 {
		return 0
	}
	return 0.39*m.sentenceLength() + 11.8*float64(m.syllables)/float64(m.words) - 15.59
}

// measureOf measures paragraphs as prose returns them.
func measureOf(text string) (m measure) {
	for paragraph := range strings.Lines(text) {
		for _, s := range sentence.Split(paragraph, -1) {
			words := word.FindAllString(s, -1)
			if len(words) == 0 {
				continue
			}
			m.sentences++
			m.words += len(words)
			for _, w := range words {
				m.syllables += syllables(w)
			}
		}
	}
	return m
}

// syllables estimates the syllables of an English word: groups of vowels, without a silent e at the end.
func syllables(w string) int {
	w = strings.ToLower(strings.Trim(w, ".,'’/%-"))
	n := len(vowels.FindAllString(w, -1))
	switch {
	case strings.HasSuffix(w, "le") && !strings.HasSuffix(w, "ole"):
	case strings.HasSuffix(w, "e") && !endsInVowels(w), silentEd(w), strings.HasSuffix(w, "es") && !sibilant(w):
		n--
	}
	return max(n, 1)
}

// endsInVowels tells "see" and "true" from "one".
func endsInVowels(w string) bool {
	return len(w) > 1 && strings.ContainsRune("aeiouy", rune(w[len(w)-2]))
}

// silentEd tells "scaled" from "updated".
func silentEd(w string) bool {
	return strings.HasSuffix(w, "ed") && len(w) > 3 && !strings.ContainsRune("dtaeiouy", rune(w[len(w)-3]))
}

// sibilant tells "changes" from "names".
func sibilant(w string) bool {
	for _, end := range []string{"ses", "zes", "ces", "ges", "xes", "ches", "shes", "ies", "oes"} {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}
