// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"rollset.dev/rollset/internal/model/podstate"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"plain text stays":              {"0/10 nodes are available.", "0/10 nodes are available."},
		"other scripts stay":            {"größer als 512 Мб", "größer als 512 Мб"},
		"line breaks become spaces":     {" a\r\n\tb  \x00 c ", "a b c"},
		"other spaces become spaces":    {"a\u00a0b\u2028c", "a b c"},
		"colors go":                     {"\x1b[1;31mred\x1b[0m alert", "red alert"},
		"a title for the terminal goes": {"\x1b]0;owned\x07text", "text"},
		"an unfinished title goes":      {"text\x1b]0;owned", "text"},
		"an eight-bit sequence goes":    {"\u009b2Jtext", "text"},
		"a lone escape goes":            {"a\x1b", "a"},
		"direction marks go":            {"a\u202eb\u200bc\ufeff", "abc"},
		"invalid UTF-8 goes":            {"a\xff\xc3b", "ab"},
		"nothing":                       {"", ""},
		"exactly fits":                  {strings.Repeat("x", 40), strings.Repeat("x", 40)},
		"cut at the limit":              {strings.Repeat("x", 41), strings.Repeat("x", 37) + "…"},
		"cut between characters":        {strings.Repeat("ä", 21), strings.Repeat("ä", 18) + "…"},
		"cut without a trailing space":  {strings.Repeat("x", 36) + " yyyyyyyy", strings.Repeat("x", 36) + "…"},
		"an endless text":               {strings.Repeat("x", 1<<20), strings.Repeat("x", 37) + "…"},
		"an endless text of nothing":    {strings.Repeat(" ", 1<<20) + "x", "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := podstate.Printable(tc.in, 40); got != tc.want {
				t.Errorf("Printable(%.60q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

// checkPrintable reports what is wrong with a text that is to be shown.
func checkPrintable(t *testing.T, s string, limit int) {
	t.Helper()
	if len(s) > limit {
		t.Errorf("%d bytes, at most %d are allowed: %q", len(s), limit, s)
	}
	if !utf8.ValidString(s) {
		t.Errorf("not UTF-8: %q", s)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("not printable at %d: %q", i, s)
	}
	if s != strings.TrimSpace(s) {
		t.Errorf("spaces around %q", s)
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "text", "\x1b[31mred", "a\u202eb", "\xff\xfe", strings.Repeat("é\n", 500)} {
		f.Add(s, uint16(40))
	}
	f.Fuzz(func(t *testing.T, s string, limit uint16) {
		n := int(limit) + 8
		got := podstate.Printable(s, n)
		checkPrintable(t, got, n)
		if again := podstate.Printable(got, n); again != got {
			t.Errorf("Printable(%q) = %q, want it unchanged", got, again)
		}
	})
}
