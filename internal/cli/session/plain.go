// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// plainWriter replaces control characters: text from the cluster must not steer the user's terminal.
type plainWriter struct {
	to io.Writer

	mu sync.Mutex
	// begun is the beginning of a character whose other bytes were not written yet.
	begun []byte
}

// Write implements io.Writer.
func (w *plainWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.begun, p...)
	whole := len(text)
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			whole = i
			break
		}
	}
	_, err := io.WriteString(w.to, Plain(string(text[:whole])))
	w.begun = append([]byte(nil), text[whole:]...)
	return len(p), err
}

// Plain returns a text with its control characters replaced, except for the ends of lines and tabulators.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return utf8.RuneError
		default:
			return r
		}
	}, text)
}

// colors matches the escape sequences that select colors.
var colors = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// Colored returns a text like Plain, with its colors. It is for the output of programs.
func Colored(text string) string {
	var b strings.Builder
	for from := 0; from < len(text); {
		match := colors.FindStringIndex(text[from:])
		if match == nil {
			b.WriteString(Plain(text[from:]))
			break
		}
		b.WriteString(Plain(text[from : from+match[0]]))
		b.WriteString(text[from+match[0] : from+match[1]])
		from += match[1]
	}
	return b.String()
}
