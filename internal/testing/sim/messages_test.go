// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// explained is the page that explains the messages of the condition Progressing.
const explained = "../../../docs/troubleshooting.md"

// TestMessagesAreExplained plays all scenarios and finds each message of Progressing in the page: how it begins in one table,
// and what it goes on with in the next. It also finds each row of the tables in a message.
func TestMessagesAreExplained(t *testing.T) {
	t.Parallel()
	beginnings, rests := explainedMessages(t)
	all := scenarios(t)
	for name, text := range map[string]string{
		"a webhook is down": "replicas 3\nsettle\nrefuse create pods webhook\nimage app:v2\nrun 1m",
		"a zone is down":    "replicas 3\nsettle\nzone-down a\nrun 1m",
	} {
		all[name] = scenario{tidy: tidily(mustParse(t, text))}
	}
	t.Run("scenarios", func(t *testing.T) {
		for name, s := range all {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if err := s.tidy().err; err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	told := map[string]bool{}
	for _, s := range all {
		for text := range s.tidy().told {
			if _, message, ok := strings.Cut(text, ": "); ok {
				told[message] = true
			}
		}
	}
	whole := regexp.MustCompile(`^(?:` + strings.Join(beginnings, "|") + `)(?:; (?:` + strings.Join(rests, "|") + `))*$`)
	for message := range told {
		if !whole.MatchString(message) {
			t.Errorf("%s does not explain %q", explained, message)
		}
	}
	for _, row := range append(beginnings, rests...) {
		pattern, found := regexp.MustCompile(`(?:^|; )`+row+`(?:$|; )`), false
		for message := range told {
			found = found || pattern.MatchString(message)
		}
		if !found {
			t.Errorf("%s explains what no scenario shows: %s", explained, row)
		}
	}
}

// explainedMessages returns the examples in the first columns of the two tables about messages, as regular expressions.
func explainedMessages(t *testing.T) (beginnings, rests []string) {
	t.Helper()
	text, err := os.ReadFile(explained)
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	// What differs from message to message: any text, names of pods and revisions, numbers.
	varies := strings.NewReplacer("…", ".*", "web-87kkbf9bdm", `\S+`, "data-a", `\S+`, "data-web-a", `\S+`, "web-a", `\S+(?: and \d+ more)?(?: of zone \S+)?`,
		"web-1", `\S+`, "zone a", `zone \S+`, "zone b", `zone \S+`, "redis:8", `\S+`, "ErrorRate", `\S+`, "08:31:07Z", `[-:TZ0-9]+`, "preDelete", `\w+`, "preNormal", `\w+`)
	number := regexp.MustCompile(`(^| )\d+( |:|$)`)
	table := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.SplitN(line, " | ", 2)
		switch {
		case !strings.HasPrefix(line, "|"):
			table = ""
		case strings.HasPrefix(line, "| the message begins with"), strings.HasPrefix(line, "| then it says"):
			table = cells[0]
		}
		for _, m := range code.FindAllStringSubmatch(cells[0], -1) {
			row := number.ReplaceAllString(varies.Replace(regexp.QuoteMeta(m[1])), `${1}\d+${2}`)
			switch table {
			case "| the message begins with":
				beginnings = append(beginnings, row)
			case "| then it says":
				rests = append(rests, row)
			}
		}
	}
	if len(beginnings) == 0 || len(rests) == 0 {
		t.Fatalf("%s has no tables of messages", explained)
	}
	return beginnings, rests
}
