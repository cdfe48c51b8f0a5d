// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis marks a text that was cut.
const ellipsis = "…"

// escape matches what makes a terminal do something: control sequences, operating system commands, and other escapes.
var escape = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?`)

// Printable returns a text of unknown origin as one line of at most limit bytes that is safe to print: valid UTF-8 without
// line breaks, terminal escapes, or characters that are invisible or change the direction of the text. A text that does not
// fit is cut between two characters and ends in an ellipsis.
func Printable(s string, limit int) string {
	whole := len(s)
	if bound := 4*limit + 256; whole > bound { // a status may hold a megabyte, and only its beginning will be shown
		s = s[:bound]
	}
	truncated := len(s) < whole
	s = strings.ToValidUTF8(s, "")
	if strings.ContainsAny(s, "\x1b\u009b") { // looking for escapes directly is slow, and they are rare
		s = escape.ReplaceAllString(s, "")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		default:
			return -1
		}
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit && !truncated {
		return s
	}
	return cut(s, limit-len(ellipsis)) + ellipsis
}

// cut returns the longest prefix of s that is valid UTF-8, has at most limit bytes and does not end in a space.
func cut(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:max(limit, 0)]
	}
	return strings.TrimRight(s, " ")
}
