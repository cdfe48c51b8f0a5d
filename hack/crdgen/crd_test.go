// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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
)

var shippedPath = filepath.Join("..", "..", "config", "crd", "bases", "apps.rollset.dev_rollsets.yaml")

// read returns the shipped CRD, and its schema.
func read(t *testing.T) ([]byte, *apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	raw, err := os.ReadFile(shippedPath)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		t.Fatal(err)
	}
	root, err := schema.Of(crd)
	if err != nil {
		t.Fatal(err)
	}
	return raw, crd, root
}

// own reports whether a path is RollSet's own: not inside a template or a condition, and not the object's metadata.
func own(path string) bool {
	for _, foreign := range []string{"metadata", "spec.template", "spec.volumeClaimTemplates[]", "status.conditions[]"} {
		if schema.Depth(path, foreign) > 0 {
			return false
		}
	}
	return path != "metadata"
}

// everyOwn calls check for every field of RollSet's own.
func everyOwn(t *testing.T, check func(path string, s *apiextensionsv1.JSONSchemaProps)) {
	t.Helper()
	_, _, root := read(t)
	n := 0
	schema.Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if path != "" && own(path) {
			n++
			check(path, s)
		}
	})
	if n < 50 {
		t.Errorf("only %d fields are ours: they were not found", n)
	}
}

// kubectl apply keeps the whole object in an annotation, and rejects what exceeds 256 KiB.
func TestSize(t *testing.T) {
	raw, _, _ := read(t)
	compact, err := yaml.YAMLToJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(compact) > 250<<10 {
		t.Errorf("the CRD has %d bytes of JSON, want at most 250 KiB", len(compact))
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	everyOwn(t, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		switch last := path[strings.LastIndex(path, ".")+1:]; {
		case strings.HasSuffix(last, "]"), strings.HasSuffix(last, "}"), path == "apiVersion", path == "kind":
		case !strings.HasPrefix(s.Description, last+" ") && !strings.HasPrefix(path, "spec.selector") && !strings.Contains(path, "matchSelector"):
			t.Errorf("the description of %s does not begin with its name: %q", path, s.Description)
		case len(s.Description) < 20:
			t.Errorf("%s is not described: %q", path, s.Description)
		}
		if strings.Contains(s.Description, "+kubebuilder") || strings.Contains(s.Description, "---") {
			t.Errorf("the description of %s holds what is not for users: %q", path, s.Description)
		}
	})
}

func TestEverythingIsBounded(t *testing.T) {
	everyOwn(t, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		switch {
		case path == "apiVersion", path == "kind":
		case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0, s.XIntOrString && s.MaxLength == nil:
			t.Errorf("%s has no maxLength", path)
		case s.Type == "array" && s.MaxItems == nil:
			t.Errorf("%s has no maxItems", path)
		case s.Type == "array" && s.XListType == nil:
			t.Errorf("%s has no list type", path)
		case s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil:
			t.Errorf("%s has no maxProperties", path)
		case s.Type == "integer" && s.Maximum == nil && s.Format != "int64":
			t.Errorf("%s has no maximum", path)
		case s.Type == "number":
			t.Errorf("%s is a floating point number", path)
		}
	})
}

func TestRulesExplainThemselves(t *testing.T) {
	_, _, root := read(t)
	schema.Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range s.XValidations {
			if len(rule.Message) < 15 || strings.HasSuffix(rule.Message, ".") {
				t.Errorf("%s: the message of %s does not continue the sentence that the API server begins: %q", path, rule.Rule, rule.Message)
			}
			if path == "spec" && (rule.FieldPath == "" || rule.OptionalOldSelf == nil || !*rule.OptionalOldSelf) {
				t.Errorf("the rule %s on spec must name a field, and tolerate what the old spec did", rule.Rule)
			}
			if strings.Contains(rule.Rule, "replicas") {
				t.Errorf("%s: the rule %s makes validity depend on replicas", path, rule.Rule)
			}
		}
	})
}

// A rule stands on the field that it judges: on a parent of the only field that it reads it would be judged again whenever something
// else in that parent changes, and no later release could add one.
func TestRulesStandOnTheirField(t *testing.T) {
	reads := regexp.MustCompile(`\bself\.(\??[A-Za-z]+)`)
	everyOwn(t, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range s.XValidations {
			fields := map[string]bool{}
			for _, match := range reads.FindAllStringSubmatch(rule.Rule, -1) {
				name := strings.TrimPrefix(match[1], "?")
				if _, ok := s.Properties[name]; ok {
					fields[name] = true
				}
			}
			if len(fields) == 1 {
				t.Errorf("%s: the rule %s reads nothing but %v, and belongs there", path, rule.Rule, fields)
			}
		}
	})
}

// A later version may add conditions, and no rule about gates.
func TestOwnConditionsAreReserved(t *testing.T) {
	_, _, root := read(t)
	var patterns []*regexp.Regexp
	err := schema.Change(root, "spec.updateStrategy.rollingUpdate.steps[].gates[].conditionType", func(s *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range s.XValidations {
			if pattern, ok := strings.CutPrefix(rule.Rule, "!self.matches('"); ok {
				patterns = append(patterns, regexp.MustCompile(strings.TrimSuffix(pattern, "')")))
			}
		}
	})
	if err != nil || len(patterns) != 1 {
		t.Fatalf("%d patterns, %v", len(patterns), err)
	}
	source, err := os.ReadFile(filepath.Join("..", "..", "api", "v1beta1", "conditions.go"))
	if err != nil {
		t.Fatal(err)
	}
	types := regexp.MustCompile(`\tCondition[A-Za-z]+ = "([^"]+)"`).FindAllSubmatch(source, -1)
	if len(types) < 6 {
		t.Errorf("found only %d types", len(types))
	}
	for _, match := range types {
		if !patterns[0].Match(match[1]) {
			t.Errorf("the condition %s is not reserved: call it ...Ready, ...Available, ...Progressing, ...Failure or ...Stalled", match[1])
		}
	}
	for _, name := range []string{"ErrorRate", "example.com/Ready", "ReadyForMore"} {
		if patterns[0].MatchString(name) {
			t.Errorf("%s is reserved", name)
		}
	}
}

func TestStatusIsOptionalAndLooksUnfinished(t *testing.T) {
	_, crd, root := read(t)
	if slices.Contains(root.Required, "status") || len(root.Properties["status"].Required) > 0 {
		t.Error("status, or something in it, is required")
	}
	if got := root.Properties["status"].Default; got == nil || string(got.Raw) != `{"observedGeneration":-1}` {
		t.Errorf("status defaults to %v", got)
	}
	want := &apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: new(".status.labelSelector"),
		},
	}
	if diff := cmp.Diff(want, crd.Spec.Versions[0].Subresources); diff != "" {
		t.Errorf("subresources (-want +got):\n%s", diff)
	}
}

// The API server converts between versions by changing apiVersion, which loses nothing only if they have the same fields and rules.
func TestTheVersionBeforeHasTheSameShape(t *testing.T) {
	_, crd, _ := read(t)
	if len(crd.Spec.Versions) != 2 {
		t.Fatalf("there are %d versions", len(crd.Spec.Versions))
	}
	now, before := crd.Spec.Versions[0], crd.Spec.Versions[1]
	if now.Name != "v1beta1" || !now.Served || !now.Storage || now.Deprecated {
		t.Errorf("v1beta1 is not the first, or not served and stored: %s, %t, %t, %t", now.Name, now.Served, now.Storage, now.Deprecated)
	}
	if before.Name != "v1alpha1" || !before.Served || before.Storage || !before.Deprecated || !strings.Contains(*before.DeprecationWarning, "v1beta1") {
		t.Errorf("v1alpha1 is not served with a warning: %s, %t, %t, %t", before.Name, before.Served, before.Storage, before.Deprecated)
	}
	schema.Walk(now.Schema.OpenAPIV3Schema, func(_ string, s *apiextensionsv1.JSONSchemaProps) { s.Description = "" })
	before.Name, before.Storage, before.Deprecated, before.DeprecationWarning = now.Name, true, false, nil
	if diff := cmp.Diff(now, before); diff != "" {
		t.Errorf("v1alpha1 is not v1beta1 without descriptions:\n%.2000s", diff)
	}
}

// A reference into another namespace would let one tenant use another's objects.
func TestNothingNamesANamespace(t *testing.T) {
	everyOwn(t, func(path string, _ *apiextensionsv1.JSONSchemaProps) {
		if strings.HasSuffix(strings.ToLower(path), "namespace") {
			t.Errorf("%s names a namespace", path)
		}
	})
}

func TestTemplatesKeepTheirMetadata(t *testing.T) {
	_, _, root := read(t)
	for _, path := range []string{"spec.template.metadata", "spec.volumeClaimTemplates[].metadata"} {
		for _, field := range []string{"labels", "annotations", "finalizers", "name", "creationTimestamp"} {
			if err := schema.Change(root, path+"."+field, func(*apiextensionsv1.JSONSchemaProps) {}); err != nil {
				t.Error(err)
			}
		}
	}
}

// Go cannot decode an int-or-string, or a date, beyond its bounds.
func TestWhatDecodingCanRefuseIsBounded(t *testing.T) {
	_, _, root := read(t)
	quantities := 0
	schema.Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		switch {
		case s.Pattern == quantity && s.MaxProperties != nil && s.MaxItems != nil && s.Maximum != nil:
			quantities++
		case s.XIntOrString && (s.Minimum == nil || s.Maximum == nil):
			t.Errorf("%s is not bounded", path)
		case s.Type != "integer" && s.Format != "" && s.Pattern == "":
			t.Errorf("%s has the format %s and no pattern", path, s.Format)
		case s.XPreserveUnknownFields != nil:
			t.Errorf("%s keeps unknown fields", path)
		}
	})
	if quantities == 0 {
		t.Error("no quantity was found")
	}
}

func TestFinishingTwiceChangesNothing(t *testing.T) {
	raw, _, _ := read(t)
	var again bytes.Buffer
	if err := run(nil, bytes.NewReader(raw), &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), again.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOutputFlag(t *testing.T) {
	raw, _, _ := read(t)
	path := filepath.Join(t.TempDir(), "crd.yaml")
	if err := run([]string{"-o", path}, bytes.NewReader(raw), nil); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(written)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	raw, _, _ := read(t)
	tests := map[string]struct {
		args []string
		in   string
		want string
	}{
		"an argument":       {[]string{"crd.yaml"}, string(raw), `unexpected argument "crd.yaml"`},
		"an unknown flag":   {[]string{"-x"}, string(raw), "not defined: -x"},
		"not a CRD":         {nil, "kind: [", "read the CRD"},
		"no versions":       {nil, "metadata: {name: x}", "x has no schema of a stored version"},
		"no schema":         {nil, "{metadata: {name: x}, spec: {versions: [{name: v1}]}}", "x has no schema"},
		"another kind":      {nil, "{metadata: {name: x}, spec: {versions: [{storage: true, schema: {openAPIV3Schema: {type: object}}}]}}", `metadata: no field "metadata"`},
		"no place to write": {[]string{"-o", filepath.Join(t.TempDir(), "no", "folder")}, string(raw), "no such file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := run(tt.args, strings.NewReader(tt.in), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("run() = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTemplatesAllowNulls checks that optional fields of templates may be null, and that those which rules read may not.
func TestTemplatesAllowNulls(t *testing.T) {
	_, _, root := read(t)
	nullable := map[string]bool{}
	schema.Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) { nullable[path] = s.Nullable })
	for path, want := range map[string]bool{
		"spec.template.metadata.annotations":                 true,
		"spec.template.spec.containers[].env":                true,
		"spec.template.spec.containers[].resources":          true,
		"spec.template.spec.containers[].resources.limits{}": true,
		"spec.template.spec.nodeSelector{}":                  true,
		"spec.volumeClaimTemplates[].spec.storageClassName":  true,
		"spec.template.metadata.labels":                      false,
		"spec.template.metadata.labels{}":                    false,
		"spec.template.spec.containers":                      false, // required
		"spec.template.spec.containers[].ports[].protocol":   false, // with a default
		"spec.volumeClaimTemplates[].metadata.name":          false,
		"spec.updateStrategy.rollingUpdate.priorityStrategy": false, // ours
	} {
		if got, ok := nullable[path]; !ok || got != want {
			t.Errorf("%s: nullable is %v, want %v (the field exists: %v)", path, got, want, ok)
		}
	}
}
