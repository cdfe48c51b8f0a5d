// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/hack/crdgen/schema"
)

// TestLimits compares the table of limits with the CustomResourceDefinition.
func TestLimits(t *testing.T) {
	root, all := pages(t)
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
	limits := map[string]string{"metadata.name": nameLimit(t, object)}
	schema.Walk(object, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		for _, limit := range []*int64{s.MaxItems, s.MaxProperties, s.MaxLength} {
			if limit != nil {
				limits[path] = strconv.FormatInt(*limit, 10)
			}
		}
		if s.Maximum != nil {
			limits[path] = strconv.FormatFloat(*s.Maximum, 'f', -1, 64)
		}
	})
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .* \\| ([0-9]+) \\|$")
	for _, p := range all {
		if p.path != "docs/limits.md" {
			continue
		}
		rows := row.FindAllStringSubmatch(p.text, -1)
		if len(rows) < 20 {
			t.Errorf("%s: only %d rows were understood", p.path, len(rows))
		}
		for _, r := range rows {
			if limits[r[1]] != r[2] {
				t.Errorf("%s: the limit of %s is %s there, and %q in the CRD", p.path, r[1], r[2], limits[r[1]])
			}
		}
	}
}

// nameLimit reads the limit of the name from its rule.
func nameLimit(t *testing.T, object *apiextensionsv1.JSONSchemaProps) string {
	t.Helper()
	for _, rule := range object.XValidations {
		if _, limit, ok := strings.Cut(rule.Rule, "size(self.metadata.name) <= "); ok {
			return limit
		}
	}
	t.Fatal("no rule limits the name")
	return ""
}
