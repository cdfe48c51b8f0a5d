// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// explained is the page that explains every word in the manager's messages.
const explained = "docs/troubleshooting.md"

// TestReasons checks that the page has a row for every reason of a condition and every reason of an event, for each value of
// the metric rollset_blocked, and for no other word.
func TestReasons(t *testing.T) {
	root, _ := pages(t)
	text, err := os.ReadFile(filepath.Join(root, explained))
	if err != nil {
		t.Fatal(err)
	}
	reason := regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\|")
	wantReasons := append(constants(t, root, "api/v1beta1/conditions.go", "Reason"), constants(t, root, "internal/podcontrol/events.go", "")...)
	expectSame(t, "reasons", wantReasons, matches(reason, string(text)))

	_, metrics, found := strings.Cut(string(text), "`rollset_blocked{")
	if !found {
		t.Fatalf("%s does not explain rollset_blocked", explained)
	}
	word := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|")
	wantWords := append(constants(t, root, "internal/model/action/action.go", "HeldBy"), constants(t, root, "internal/status/blocker.go", "BlockedBy")...)
	expectSame(t, "words", wantWords, matches(word, metrics))
}

func expectSame(t *testing.T, what string, want, got []string) {
	t.Helper()
	sets := func(list []string) map[string]bool {
		set := map[string]bool{}
		for _, s := range list {
			set[s] = true
		}
		return set
	}
	if diff := cmp.Diff(sets(want), sets(got), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s in the code (-) and in %s (+):\n%s", what, explained, diff)
	}
}

func matches(pattern *regexp.Regexp, text string) (found []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// constants returns the values of a file's exported string constants whose names begin with the prefix.
func constants(t *testing.T, root, path, prefix string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !spec.Names[0].IsExported() || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) == 0 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants %s…", path, prefix)
	}
	return values
}
