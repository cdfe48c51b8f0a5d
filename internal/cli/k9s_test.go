// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/internal/cli/session"
)

// k9sPlugin is a plugin as k9s reads it.
type k9sPlugin struct {
	ShortCut    string   `json:"shortCut"`
	Description string   `json:"description"`
	Scopes      []string `json:"scopes"`
	Command     string   `json:"command"`
	Background  bool     `json:"background"`
	Confirm     bool     `json:"confirm"`
	Args        []string `json:"args"`
}

// verb returns the command line of the plugin that k9s would run, after "kubectl rollset".
func (p *k9sPlugin) verb() []string {
	args := p.Args
	if p.Command == "sh" && len(args) > 2 {
		line, _, _ := strings.Cut(args[1], " | ")
		for i, value := range args[3:] {
			line = strings.ReplaceAll(line, `"$`+string(rune('1'+i))+`"`, value)
		}
		args = strings.Fields(strings.TrimPrefix(line, "kubectl "))
	}
	return slices.Concat(args[1:])
}

// TestK9s checks that each key of the plugins for k9s runs an existing command line, and a different one.
func TestK9s(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../config/k9s/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Plugins map[string]k9sPlugin `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	keys := map[string]string{}
	for name, plugin := range file.Plugins {
		if other, taken := keys[plugin.ShortCut]; taken {
			t.Errorf("%s and %s have the key %s", name, other, plugin.ShortCut)
		}
		keys[plugin.ShortCut] = name
		if !slices.Equal(plugin.Scopes, []string{"rollsets"}) || plugin.Description == "" {
			t.Errorf("%s is described as %q for %v", name, plugin.Description, plugin.Scopes)
		}
		found, rest, err := New(session.New(streams, clocktesting.NewFakeClock(time.Time{}))).Find(plugin.verb())
		if err != nil || !found.HasParent() {
			t.Errorf("%s runs %q: %v", name, plugin.verb(), err)
			continue
		}
		if err := found.ParseFlags(rest); err != nil {
			t.Errorf("%s runs %q: %v", name, plugin.verb(), err)
		}
		if got := found.Flags().Args(); !slices.Equal(got, []string{"$NAME"}) {
			t.Errorf("%s is about %q", name, got)
		}
	}
	if len(keys) < 9 {
		t.Errorf("there are %d plugins", len(keys))
	}
}
