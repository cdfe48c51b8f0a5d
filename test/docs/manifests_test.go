// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// smallest is the set into which a part of a manifest is put.
const smallest = `
apiVersion: apps.rollset.dev/v1beta1
kind: RollSet
metadata:
  name: web
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - {name: web, image: "nginx:1.29"}
`

// admit asks the API server whether it would accept every RollSet on a page. A block that begins with spec is a part of a
// RollSet; a part of another kind would fail here.
func (c *cluster) admit(t *testing.T, all []*page) {
	t.Helper()
	dir, shown := t.TempDir(), 0
	for _, p := range all {
		for i := range p.blocks {
			if b := &p.blocks[i]; b.language == "yaml" {
				where := fmt.Sprintf("%s-%d", p.name(), b.line)
				for document := range strings.SplitSeq(b.text, "\n---\n") {
					set, err := asRollSet(document)
					if err != nil {
						t.Errorf("%s: %v", where, err)
					} else if set != nil {
						shown++
						if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", where, shown)), set, 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	}
	// One kubectl costs less than one for each. It goes on after a refusal, and names the file: page, line, number.
	kubectl := exec.CommandContext(t.Context(), c.BinDir+"/kubectl", "--kubeconfig="+c.Kubeconfig,
		"create", "--dry-run=server", "--validate=strict", "-f", dir)
	var refusals strings.Builder
	kubectl.Stderr = &refusals
	if err := kubectl.Run(); err != nil {
		t.Errorf("%v\n%s", err, refusals.String())
	}
	if shown < 10 {
		t.Errorf("%d RollSets in the documentation, want those of all pages", shown)
	}
}

// asRollSet returns the RollSet in a document, completed if it is only a part; nil if the document has another kind.
func asRollSet(document string) ([]byte, error) {
	var object map[string]any
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	switch kind, named := object["kind"]; {
	case named && kind != "RollSet":
		return nil, nil
	case named && object["spec"].(map[string]any)["template"] != nil: //nolint:forcetypeassert // a panic names the page
		return []byte(document), nil
	case object["spec"] == nil:
		return nil, fmt.Errorf("neither an object nor a part of a RollSet that begins with spec:\n%s", document)
	}
	var whole map[string]any
	if err := yaml.Unmarshal([]byte(smallest), &whole); err != nil {
		return nil, err
	}
	merge(whole, object)
	return yaml.Marshal(whole)
}

// merge puts the fields of one object into another one.
func merge(into, from map[string]any) {
	for key, value := range maps.All(from) {
		below, isObject := value.(map[string]any)
		if there, ok := into[key].(map[string]any); ok && isObject {
			merge(there, below)
			continue
		}
		into[key] = value
	}
}
