// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/hack/crdgen/schema"
	"rollset.dev/rollset/internal/cli"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/test/metricsdoc"
)

// updatePromises rewrites the list of what is promised.
var updatePromises = flag.Bool("update-promises", false, "write testdata/promises.txt")

// TestPromises compares what docs/api-promises.md promises with the list of what was promised: a line for each name. A line that
// is new is a new promise. One that goes, or becomes another, breaks one.
func TestPromises(t *testing.T) {
	root, _ := pages(t)
	var lines []string
	for _, part := range [][]string{
		promisedFields(t, root), promisedWords(t, root), promisedMetrics(t, root), promisedOptions(t, root), promisedVerbs(),
	} {
		if len(part) < 15 {
			t.Errorf("only %d promises of a kind were found: %q", len(part), part)
		}
		lines = append(lines, part...)
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	path := filepath.Join("testdata", "promises.txt")
	if *updatePromises {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("what is promised (-) is not what there is (+). docs/api-promises.md says how a promise ends; "+
			"for a new one, run this test with -update-promises:\n%s", diff)
	}
}

// promisedFields returns a line for each field of RollSet's own, with what the CRD requires of it, for each column, for the names of
// the resource and for its subresource scale.
func promisedFields(t *testing.T, root string) (lines []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "config/crd/bases/apps.rollset.dev_rollsets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, crd); err != nil {
		t.Fatal(err)
	}
	object, err := schema.Of(crd)
	if err != nil {
		t.Fatal(err)
	}
	names := crd.Spec.Names
	for _, name := range slices.Concat([]string{names.Kind, names.ListKind, names.Plural, names.Singular}, names.ShortNames, names.Categories) {
		lines = append(lines, "resource "+name)
	}
	for _, version := range crd.Spec.Versions {
		lines = append(lines, fmt.Sprintf("version %s/%s", crd.Spec.Group, version.Name))
		if scale := version.Subresources.Scale; scale != nil {
			lines = append(lines, fmt.Sprintf("scale: %s %s %s", scale.SpecReplicasPath, scale.StatusReplicasPath, *scale.LabelSelectorPath))
		}
		for _, column := range version.AdditionalPrinterColumns {
			lines = append(lines, fmt.Sprintf("column %s: %s", column.Name, column.JSONPath))
		}
	}
	required := map[string]bool{}
	schema.Walk(object, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		for _, name := range s.Required {
			required[strings.TrimPrefix(path+"."+name, ".")] = true
		}
		for _, template := range []string{"spec.template", "spec.volumeClaimTemplates[]", "metadata"} {
			if schema.Depth(path, template) > 0 { // that is Kubernetes' API
				return
			}
		}
		if path != "" {
			lines = append(lines, "field "+path+": "+shape(s, required[path]))
		}
	})
	return lines
}

// shape returns what a client can rely on in a field.
func shape(s *apiextensionsv1.JSONSchemaProps, required bool) string {
	text := []string{s.Type}
	if s.XIntOrString {
		text[0] = "int-or-string"
	}
	if required {
		text = append(text, "required")
	}
	if s.Default != nil {
		text = append(text, "default "+string(s.Default.Raw))
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			values = append(values, string(value.Raw))
		}
		text = append(text, "one of "+strings.Join(values, " "))
	}
	if s.Pattern != "" {
		text = append(text, "pattern "+s.Pattern)
	}
	for name, limit := range map[string]*int64{
		"at least items": s.MinItems, "at least characters": s.MinLength, "at least keys": s.MinProperties,
		"at most items": s.MaxItems, "at most characters": s.MaxLength, "at most keys": s.MaxProperties,
	} {
		if limit != nil {
			text = append(text, fmt.Sprintf("%s %d", name, *limit))
		}
	}
	for name, limit := range map[string]*float64{"minimum": s.Minimum, "maximum": s.Maximum} {
		if limit != nil {
			text = append(text, fmt.Sprintf("%s %v", name, int64(*limit)))
		}
	}
	if s.XListType != nil {
		text = append(text, "list "+*s.XListType+" "+strings.Join(s.XListMapKeys, ","))
	}
	slices.Sort(text[1:])
	return strings.TrimSpace(strings.Join(text, ", "))
}

// promisedWords returns a line for each condition, reason, label, annotation and gate, and for each value of the label and of the
// metric that programs compare.
func promisedWords(t *testing.T, root string) (lines []string) {
	t.Helper()
	api := filepath.Dir(apiFile(t, root))
	for kind, words := range map[string][]string{
		"condition":       constants(t, root, filepath.Join(api, "conditions.go"), "Condition"),
		"reason":          constants(t, root, filepath.Join(api, "conditions.go"), "Reason"),
		"reason of event": constants(t, root, "internal/podcontrol/events.go", ""),
		"key":             constants(t, root, filepath.Join(api, "labels.go"), ""),
		"lifecycle state": constants(t, root, filepath.Join(api, "lifecycle.go"), "Lifecycle"),
		"reason of rollset_blocked": append(constants(t, root, "internal/model/action/action.go", "HeldBy"),
			constants(t, root, "internal/status/blocker.go", "BlockedBy")...),
	} {
		for _, word := range words {
			lines = append(lines, kind+" "+word)
		}
	}
	return lines
}

// apiFile returns the path of the API's conditions, relative to the root: those of the newest version, which has the constants.
func apiFile(t *testing.T, root string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "api", "v*", "conditions.go"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no conditions of an API: %v", err)
	}
	relative, err := filepath.Rel(root, slices.Max(found))
	if err != nil {
		t.Fatal(err)
	}
	return relative
}

// promisedMetrics returns a line for each metric of RollSet's own. Another test compares the page with what a manager serves.
func promisedMetrics(t *testing.T, root string) (lines []string) {
	t.Helper()
	metrics, err := metricsdoc.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, metric := range metrics {
		if strings.Contains(name, "rollset_") {
			lines = append(lines, fmt.Sprintf("metric %s: %s %s", name, metric.Type, strings.Join(metric.Labels, " ")))
		}
	}
	return lines
}

// promisedOptions returns a line for each flag of the manager, with its variable and default. `make generate` writes the table.
func promisedOptions(t *testing.T, root string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(--[a-z-]+)` \\| (?:`([A-Z_]+)`)? ?\\| (?:`([^`]*)`)? ?\\|")
	for _, cells := range row.FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, joined("manager", cells[1], cells[2], cells[3]))
	}
	return lines
}

// joined returns the words that are not empty, with spaces between them.
func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

// promisedVerbs returns a line for each verb of the plugin and for each flag that kubectl does not have, with its default.
func promisedVerbs() (lines []string) {
	var walk func(*cobra.Command)
	walk = func(verb *cobra.Command) {
		lines = append(lines, "verb "+verb.CommandPath())
		verb.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			lines = append(lines, joined("verb", verb.CommandPath(), "--"+f.Name, f.Shorthand, f.Value.Type(), f.DefValue))
		})
		for _, next := range verb.Commands() {
			walk(next)
		}
	}
	walk(cli.New(session.New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{})))
	return lines
}

// TestDeprecations checks that a field whose description calls it deprecated says since when, and what replaces it.
func TestDeprecations(t *testing.T) {
	root, _ := pages(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "api-reference.md"))
	if err != nil {
		t.Fatal(err)
	}
	complete := regexp.MustCompile(`Deprecated since [0-9.]+: use `)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "eprecated") && !complete.MatchString(line) {
			t.Errorf("a deprecation must read \"Deprecated since 1.2: use …\": %s", line)
		}
	}
}
