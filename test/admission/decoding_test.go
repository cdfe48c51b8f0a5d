// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/hack/crdgen/schema"
)

// An object that the API server stores and Go cannot decode would fail the controller's watch for every set, in every
// namespace. So every admitted value must be decodable. The test puts the strangest values of each type into each field
// separately.
func TestWhateverIsAdmittedIsDecoded(t *testing.T) {
	root, err := schema.Of(shippedCRD(t))
	if err != nil {
		t.Fatal(err)
	}
	c := rawClient(t)
	var mu sync.Mutex
	admitted := map[string]int{}
	var group errgroup.Group
	group.SetLimit(8)
	schema.Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if !strings.HasPrefix(path, "spec.") || repeated(path) {
			return
		}
		for _, value := range strange(s) {
			body := sample(t, root, path, value)
			group.Go(func() error {
				ok, err := decodes(t.Context(), c, body)
				if err != nil {
					t.Errorf("%s: %s: %v", path, value, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if ok {
					admitted[path]++
				} else {
					admitted[path] += 0 // tried
				}
				return nil
			})
		}
	})
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(admitted) < 150 {
		t.Errorf("only %d fields were tried", len(admitted))
	}
	for path, n := range admitted {
		if n == 0 && path != "spec.template.spec.activeDeadlineSeconds" { // which admits nothing
			t.Errorf("no value of %s is admitted: the samples do not try it", path)
		}
	}
}

// repeated reports whether a path lies in the init containers, whose schema is that of ordinary ones.
func repeated(path string) bool { return strings.Contains(path, "initContainers") }

// strange returns values, in JSON, at the limits of a type and beyond.
func strange(s *apiextensionsv1.JSONSchemaProps) []string {
	numbers := []string{"0", "1000", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "1e20", "0.5"}
	switch {
	case s.XPreserveUnknownFields != nil: // a quantity
		numbers = append(numbers, "0.1", "-0.5", "1e-9", "1e-10", "1e-300", "1e18", "1e19", "1e300", "1E+2", "-0.0", "null", "true", "false", "{}", `{"a":1}`, "[]", "[1]")
		fallthrough
	case s.XIntOrString:
		return append(numbers, `""`, `"1e99"`, `"1e1.5"`, `"1e2000000000"`, `"+.5"`, `"."`, `"1E"`, `"٣"`, `"`+strings.Repeat("9", 64)+`"`, `"`+strings.Repeat("9", 65)+`"`)
	case s.Type == "integer":
		return numbers
	case s.Format == "date-time":
		return []string{"null", `""`, `"2026-01-01T00:00:00Z"`, `"2026-01-01"`, `"2026-13-01T00:00:00Z"`, `"2026-02-30T00:00:00Z"`, `"2026-01-01T24:00:00Z"`, `"2026-01-01T23:59:60Z"`, `"2026-01-01t00:00:00z"`}
	case s.Type == "boolean":
		return []string{"null", `"true"`, "1"}
	default:
		return nil
	}
}

// sample returns the smallest set that has a value at a path. It is text, because a parser would change the numbers.
func sample(t *testing.T, root *apiextensionsv1.JSONSchemaProps, path, value string) []byte {
	t.Helper()
	const placeholder = "PLACEHOLDER"
	set := with(t, parse(t, manifest), fields{
		identity:                      "Ordinal",
		rolling + ".priorityStrategy": "{weightPriority: [{weight: 1, matchSelector: {matchLabels: {a: b}}}]}",
	}).Object
	graft(set, root, steps(path), placeholder)
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(raw), `"`+placeholder+`"`, value, 1))
}

// steps splits a path such as a.b[].c{} into a, b, [], c, {}.
func steps(path string) []string {
	return strings.FieldsFunc(strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(path), func(r rune) bool { return r == '.' })
}

// graft returns an object with a value at a path, and the other fields that the schema requires along the way.
func graft(into any, s *apiextensionsv1.JSONSchemaProps, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch path[0] {
	case "[]":
		list, _ := into.([]any)
		var first any
		if len(list) > 0 {
			first = list[0]
		}
		return []any{graft(first, s.Items.Schema, path[1:], value)}
	case "{}":
		return map[string]any{"key": graft(nil, s.AdditionalProperties.Schema, path[1:], value)}
	}
	object, ok := into.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	property := s.Properties[path[0]]
	object[path[0]] = graft(object[path[0]], &property, path[1:], value)
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			object[name] = smallest(new(s.Properties[name]))
		}
	}
	return object
}

// smallest returns the smallest value that a schema admits.
func smallest(s *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case len(s.Enum) > 0:
		var value any
		_ = json.Unmarshal(s.Enum[0].Raw, &value)
		return value
	case s.Type == "object":
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = smallest(new(s.Properties[name]))
		}
		return object
	case s.Type == "array":
		return []any{}
	case s.Type == "integer", s.XIntOrString, s.XPreserveUnknownFields != nil:
		return 1
	case s.Type == "boolean":
		return true
	default:
		return "a"
	}
}

// decodes sends a set and decodes it as it would be stored. It returns false if the API server does not admit it.
func decodes(ctx context.Context, c *rest.RESTClient, body []byte) (bool, error) {
	stored, err := c.Post().Namespace("default").Resource("rollsets").Param("dryRun", "All").Body(body).DoRaw(ctx)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create: %w", err)
	}
	var set v1beta1.RollSet
	if err := json.Unmarshal(stored, &set); err != nil {
		return true, fmt.Errorf("admitted, but not decoded: %w", err)
	}
	return true, nil
}

// rawClient sends bodies as they are.
func rawClient(t *testing.T) *rest.RESTClient {
	t.Helper()
	config := rest.CopyConfig(shared.env.Config)
	config.GroupVersion = &v1beta1.GroupVersion
	config.APIPath = "/apis"
	config.ContentType = "application/json"
	config.QPS = -1
	config.NegotiatedSerializer = serializer.NewCodecFactory(shared.Scheme()).WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
