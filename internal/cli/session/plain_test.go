// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"testing"
)

func TestControlCharactersDoNotPass(t *testing.T) {
	t.Parallel()
	const replaced = "\ufffd"
	for text, want := range map[string]string{
		"plain ✔ text\n\ttab":      "plain ✔ text\n\ttab",
		"\x1b[31mred\x1b[0m":       replaced + "[31mred" + replaced + "[0m",
		"\x1b]0;title\a":           replaced + "]0;title" + replaced,
		"a\rb\bc\x7f":              "a" + replaced + "b" + replaced + "c" + replaced,
		"\u009b31m one byte: \x9b": replaced + "31m one byte: " + replaced,
		"\u202egnp.exe":            replaced + "gnp.exe",
	} {
		var whole, pieces bytes.Buffer
		w := &plainWriter{to: &whole}
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: wrote %d bytes, %v", text, n, err)
		}
		w = &plainWriter{to: &pieces}
		for i := range len(text) { // a character may be written in pieces
			if _, err := w.Write([]byte{text[i]}); err != nil {
				t.Error(err)
			}
		}
		if whole.String() != want || pieces.String() != want {
			t.Errorf("%q: %q, in pieces %q; want %q", text, &whole, &pieces, want)
		}
	}
	if got, want := Colored("\x1b[1;31mred\x1b[0m \x1b[2J"), "\x1b[1;31mred\x1b[0m "+replaced+"[2J"; got != want {
		t.Errorf("colored: %q, want %q", got, want)
	}
}
