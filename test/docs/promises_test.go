// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/hack/crdgen/schema"
	"rollset.dev/rollset/test/metricsdoc"
)

// updatePromises rewrites the list of what is promised.
var updatePromises = flag.Bool("update-promises", false, "write testdata/promises.txt")

// TestPromises compares what docs/api-promises.md promises with the list of what was promised: a line for each field, condition,
// reason, label, annotation and metric. A line that is new is a new promise. One that goes, or becomes another, breaks one.
func TestPromises(t *testing.T) {
	root, _ := pages(t)
	var lines []string
	for _, part := range [][]string{promisedFields(t, root), promisedWords(t, root), promisedMetrics(t, root)} {
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

// promisedFields returns a line for each field of RollSet's own, with what the CRD requires of it, and for each column.
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
	for _, version := range crd.Spec.Versions {
		lines = append(lines, fmt.Sprintf("version %s/%s", crd.Spec.Group, version.Name))
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
	for name, limit := range map[string]*int64{"at most items": s.MaxItems, "at most characters": s.MaxLength, "at most keys": s.MaxProperties} {
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

// promisedWords returns a line for each condition, reason, label, annotation and gate.
func promisedWords(t *testing.T, root string) (lines []string) {
	t.Helper()
	api := filepath.Dir(apiFile(t, root))
	for kind, words := range map[string][]string{
		"condition":       constants(t, root, filepath.Join(api, "conditions.go"), "Condition"),
		"reason":          constants(t, root, filepath.Join(api, "conditions.go"), "Reason"),
		"reason of event": constants(t, root, "internal/podcontrol/events.go", ""),
		"key":             constants(t, root, filepath.Join(api, "labels.go"), ""),
	} {
		if len(words) == 0 {
			t.Errorf("no %s was found", kind)
		}
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

// promisedMetrics returns a line for each metric of the manager. Another test compares the page with what a manager serves.
func promisedMetrics(t *testing.T, root string) (lines []string) {
	t.Helper()
	metrics, err := metricsdoc.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		lines = append(lines, fmt.Sprintf("metric %s: %s %s", name, metrics[name].Type, strings.Join(metrics[name].Labels, " ")))
	}
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
