// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"rollset.dev/rollset/internal/cli/session"
)

const (
	// columns is the width of the narrowest terminal that is common.
	columns = 80
	// maxShown is how many names, and how many writes, are listed.
	maxShown = 4
)

// printAnswers prints what sets wait for.
func printAnswers(s *session.Session, answers []answer) error {
	if len(answers) == 0 {
		namespace, err := s.Namespace()
		if err != nil {
			return err
		}
		fmt.Fprintln(s.ErrOut, "No RollSets in namespace", namespace)
	}
	for i, a := range answers {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		if _, err := fmt.Fprint(s.Out, a.text()); err != nil {
			return err
		}
	}
	return nil
}

// text returns an answer, in lines that fit on a terminal.
func (a *answer) text() string {
	var b strings.Builder
	paragraph(&b, "rollset/"+a.Set+"  "+a.Waiting)
	for i, next := range a.Next {
		if i == maxShown {
			paragraph(&b, fmt.Sprintf("next: %d more writes", len(a.Next)-i))
			break
		}
		paragraph(&b, "next: "+next)
	}
	if len(a.Causes) == 0 && len(a.Next) == 0 {
		b.WriteString("nothing waits\n")
	}
	for _, c := range a.Causes {
		b.WriteString("\n")
		switch len(c.Pods) {
		case 0:
			paragraph(&b, c.Kind+": "+c.Reason)
		case 1:
			paragraph(&b, c.Kind+": "+c.Pods[0]+": "+c.Reason)
		default:
			paragraph(&b, fmt.Sprintf("%s: %d pods (%s): %s", c.Kind, len(c.Pods), some(c.Pods, ", "), c.Reason))
		}
		paragraph(&b, "  lifted by: "+c.LiftedBy)
	}
	return b.String()
}

// paragraph writes a text, broken into lines; those after the first are indented. It breaks at spaces, so that names and commands can
// be copied; only a word that is longer than a line is broken itself.
func paragraph(b *strings.Builder, text string) {
	const indent = "    "
	line, rest, more := strings.Cut(strings.ReplaceAll(text, "\n", " "), " ")
	for more {
		var word string
		word, rest, more = strings.Cut(rest, " ")
		if ansi.StringWidth(line+" "+word) > columns && strings.TrimSpace(line) != "" {
			b.WriteString(line + "\n")
			line = indent + word
		} else {
			line += " " + word
		}
		for ansi.StringWidth(line) > columns {
			b.WriteString(ansi.Truncate(line, columns, "") + "\n")
			line = indent + ansi.TruncateLeft(line, columns, "")
		}
	}
	b.WriteString(line + "\n")
}

// some returns the first of some names, and how many more there are.
func some(names []string, separator string) string {
	if len(names) <= maxShown {
		return strings.Join(names, separator)
	}
	return fmt.Sprintf("%s … and %d more", strings.Join(names[:maxShown], separator), len(names)-maxShown)
}
