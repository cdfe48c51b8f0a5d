// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "strings"

// filters says whether all that a query returns has passed a comparison in it, as of "errors:ratio < 0.01": then the samples
// have their own values, and 0 is one like others. Of "errors:ratio < bool 0.01", or "up", 0 means no. Where it is not sure, the
// answer is false.
func filters(query string) bool {
	for _, operand := range split(query, "or") {
		if !passes(strings.TrimSpace(split(operand, "and", "unless")[0])) {
			return false
		}
	}
	return true
}

// passes says whether a query without and, or and unless is a comparison that filters.
func passes(query string) bool {
	if inner, ok := inParentheses(query); ok {
		return filters(inner)
	}
	found := false
	tokens := outermost(query)
	for i, t := range tokens {
		if !isComparison(t.text) {
			continue
		}
		if i+1 < len(tokens) && strings.EqualFold(tokens[i+1].text, "bool") {
			return false
		}
		found = true
	}
	return found
}

func isComparison(text string) bool { return text != "" && strings.Trim(text, "<>=!") == "" }

// split splits a query at operators that stand outside of all brackets.
func split(query string, operators ...string) []string {
	var parts []string
	start := 0
	for _, t := range outermost(query) {
		for _, operator := range operators {
			if strings.EqualFold(t.text, operator) {
				parts = append(parts, query[start:t.at])
				start = t.at + len(t.text)
			}
		}
	}
	return append(parts, query[start:])
}

// inParentheses returns what is in the parentheses around a query; not ok if there are none around all of it.
func inParentheses(query string) (inner string, ok bool) {
	tokens := outermost(query)
	if len(tokens) != 1 || tokens[0].text != "(" || !strings.HasSuffix(query, ")") {
		return "", false
	}
	return query[1 : len(query)-1], true
}

// token is a word, an operator or an opening bracket of a query.
type token struct {
	at   int
	text string
}

// outermost returns the tokens of a query that stand outside of all brackets. Strings and comments are none.
func outermost(query string) []token {
	var tokens []token
	depth := 0
	for at := 0; at < len(query); {
		n := length(query[at:])
		text := query[at : at+n]
		switch c := text[0]; {
		case strings.IndexByte("([{", c) >= 0:
			if depth == 0 {
				tokens = append(tokens, token{at, text})
			}
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && strings.TrimSpace(text) != "" && strings.IndexByte("\"'`#", c) < 0:
			tokens = append(tokens, token{at, text})
		}
		at += n
	}
	return tokens
}

// length is the length of the token at the beginning of a query.
func length(query string) int {
	switch c := query[0]; {
	case strings.IndexByte("\"'`", c) >= 0:
		for i := 1; i < len(query); i++ {
			switch {
			case query[i] == '\\' && c != '`':
				i++
			case query[i] == c:
				return i + 1
			}
		}
		return len(query)
	case c == '#':
		if end := strings.IndexByte(query, '\n'); end >= 0 {
			return end
		}
		return len(query)
	case strings.IndexByte("<>=!", c) >= 0:
		return run(query, func(c byte) bool { return strings.IndexByte("<>=!", c) >= 0 })
	case inWord(c):
		return run(query, inWord)
	default:
		return 1
	}
}

// run is for how many bytes a query begins with those of a kind.
func run(query string, of func(byte) bool) int {
	n := 0
	for n < len(query) && of(query[n]) {
		n++
	}
	return n
}

func inWord(c byte) bool {
	return c == '_' || c == ':' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
