// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/hack/crdgen/schema"
	"rollset.dev/rollset/internal/testing/patience"
)

func TestTransitions(t *testing.T) {
	const (
		keep     = "cannot be changed"
		proceeds = "{labelsHandler: {example.com/a: b}, timeoutSeconds: 5, onTimeout: Proceed}"
	)
	tests := map[string]struct {
		from, to       fields
		field, message string // empty if the change is allowed
	}{
		"selector, another value":     {nil, fields{"spec.selector": "{matchLabels: {app: db}}", "spec.template.metadata.labels": "{app: db}"}, "spec.selector", keep},
		"selector, one label more":    {fields{"spec.template.metadata.labels": "{app: web, tier: a}"}, fields{"spec.selector": "{matchLabels: {app: web, tier: a}}"}, "spec.selector", keep},
		"selector, said otherwise":    {nil, fields{"spec.selector": "{matchExpressions: [{key: app, operator: In, values: [web]}]}"}, "spec.selector", keep},
		"selector, removed":           {nil, fields{"spec.selector": "-"}, "spec.selector", "Required value"},
		"identity, Random to Ordinal": {nil, fields{identity: "Ordinal"}, identity, keep},
		"identity, Ordinal to Random": {fields{identity: "Ordinal"}, fields{identity: "Random"}, identity, keep},
		"identity, removed":           {fields{identity: "Ordinal"}, fields{identity: "-"}, identity, keep},
		"identity, default removed":   {fields{identity: "Random"}, fields{identity: "-"}, "", ""},
		"service, another":            {fields{"spec.serviceName": "a"}, fields{"spec.serviceName": "b"}, "spec.serviceName", keep},
		"service, set":                {nil, fields{"spec.serviceName": "a"}, "spec.serviceName", keep},
		"service, removed":            {fields{"spec.serviceName": "a"}, fields{"spec.serviceName": "-"}, "spec.serviceName", keep},
		"service, emptied":            {fields{"spec.serviceName": "a"}, fields{"spec.serviceName": `""`}, "spec.serviceName", keep},
		"service, empty removed":      {fields{"spec.serviceName": `""`}, fields{"spec.serviceName": "-"}, "", ""},

		"labels, not the selector's": {nil, fields{"spec.template.metadata.labels": "{app: db}"}, "spec.template.metadata.labels", notItsPods},
		"ordinals, set for Random":   {nil, fields{"spec.ordinals.start": "1"}, "spec.ordinals", ordinalOnly},
		"surge, set for Ordinal":     {fields{identity: "Ordinal"}, fields{rolling + ".maxSurge": "1"}, "", ""},
		"surge, malformed":           {fields{identity: "Ordinal"}, fields{rolling + ".maxSurge": "1.5%"}, rolling + ".maxSurge", aSurge},
		"OrderedReady, for Random":   {nil, fields{"spec.podManagementPolicy": "OrderedReady"}, "spec.podManagementPolicy", "must be Parallel"},
		"minReadySeconds, too long":  {nil, fields{"spec.minReadySeconds": "600"}, "spec.progressDeadlineSeconds", "must be greater than minReadySeconds"},
		"minReadySeconds, up to it":  {nil, fields{"spec.minReadySeconds": "599"}, "", ""},
		"labels, more of them":       {nil, fields{"spec.template.metadata.labels": "{app: web, version: v2}"}, "", ""},
		"image":                      {nil, fields{"spec.template.spec.containers": "[{name: web, image: 'nginx:1.28'}]"}, "", ""},
		"ordinals, moved":            {fields{identity: "Ordinal"}, fields{"spec.ordinals.start": "5"}, "", ""},
		"ordinals, reserved":         {fields{identity: "Ordinal"}, fields{"spec.reserveOrdinals": "[0]"}, "", ""},
		"management policy":          {fields{identity: "Ordinal"}, fields{"spec.podManagementPolicy": "Parallel"}, "", ""},
		"claim templates, added":     {nil, fields{"spec.volumeClaimTemplates": "[{metadata: {name: data}}]"}, "", ""},
		"claim templates, removed":   {fields{"spec.volumeClaimTemplates": "[{metadata: {name: data}}]"}, fields{"spec.volumeClaimTemplates": "-"}, "", ""},
		"retention policy":           {nil, fields{"spec.persistentVolumeClaimRetentionPolicy": "{whenDeleted: Retain}"}, "", ""},
		"strategy":                   {nil, fields{"spec.updateStrategy.type": "Recreate"}, "", ""},
		"hook, to Proceed":           {fields{preDelete: "{finalizersHandler: [example.com/x], timeoutSeconds: 5}"}, fields{preDelete + ".onTimeout": "Proceed"}, preDelete + ".onTimeout", "must be Hold if finalizersHandler is set"},
		"hook, finalizers added":     {fields{preDelete: proceeds}, fields{preDelete + ".finalizersHandler": "[example.com/x]"}, preDelete + ".onTimeout", "must be Hold if finalizersHandler is set"},
		"hook, limit removed":        {fields{preDelete: proceeds}, fields{preDelete + ".timeoutSeconds": "-"}, preDelete + ".onTimeout", "must be Hold unless timeoutSeconds is set"},
		"hook, limit changed":        {fields{preDelete: proceeds}, fields{preDelete + ".timeoutSeconds": "1"}, "", ""},
		"lifecycle, added":           {nil, fields{"spec.lifecycle": "{preDelete: {labelsHandler: {example.com/a: b}}}"}, "", ""},
		"replicas":                   {nil, fields{"spec.replicas": "2147483647"}, "", ""},
		"annotations of the set":     {nil, fields{"metadata.annotations": "{apps.rollset.dev/a: b}"}, "", ""},
	}
	n := 0
	for name, tt := range tests {
		n++
		object := with(t, parse(t, manifest), fields{"metadata.name": fmt.Sprintf("transition-%d", n)})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := with(t, object, tt.from)
			if err := shared.Create(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			err := shared.Update(t.Context(), with(t, set, tt.to), client.FieldValidation("Strict"))
			switch {
			case tt.field != "":
				checkRejected(t, err, tt.field, tt.message)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// A later version may forbid what an earlier one allowed. In existing sets all other fields must stay changeable, because a
// set whose every update is rejected can neither be scaled nor repaired.
func TestOldViolationsAreTolerated(t *testing.T) {
	lax, strict := shippedCRD(t), shippedCRD(t)
	root, err := schema.Of(lax)
	if err != nil {
		t.Fatal(err)
	}
	schema.Walk(root, func(_ string, s *apiextensionsv1.JSONSchemaProps) { s.XValidations = nil })
	replace(t, lax, true)

	violations := map[string]fields{
		"name":            {"metadata.name": strings.Repeat("a", 53)},
		"partition":       {rolling + ".partition": "200%"},
		"template-labels": {"spec.template.metadata.labels": "{app: web, rollset.dev/x: z}"},
		"selector":        {"spec.selector": "{matchLabels: {app: db}}"},
		"expressions":     {"spec.selector": "{matchExpressions: [{key: app, operator: NotIn, values: [web]}]}"},
		"policy":          {"spec.podManagementPolicy": "OrderedReady"},
		"ordinals":        {"spec.ordinals.start": "1"},
		"reserved":        {"spec.reserveOrdinals": "[1]"},
		"deadline":        {"spec.minReadySeconds": "900"},
		"claims":          {"spec.volumeClaimTemplates": "[{metadata: {name: a}}, {metadata: {name: a}}]"},
		"hooks":           {preDelete: "{finalizersHandler: [x]}"},
		"hooks-proceed":   {preDelete: "{finalizersHandler: [example.com/x], timeoutSeconds: 5, onTimeout: Proceed}"},
	}
	sets := map[string]*unstructured.Unstructured{}
	for name, changes := range violations {
		sets[name] = with(t, with(t, parse(t, manifest), fields{"metadata.name": name}), changes)
		if err := shared.Create(t.Context(), sets[name]); err != nil {
			t.Errorf("%s: %v", name, err) // without an end to the test, because other tests need the strict CRD
		}
	}
	replace(t, strict, false)

	for name, set := range sets {
		if err := shared.admit(t.Context(), fresh(set)); err == nil {
			t.Errorf("%s: a new set with the violation is accepted", name)
		}
		changed := with(t, set, fields{"spec.replicas": "5", "spec.template.spec.containers": "[{name: web, image: 'nginx:2'}]"})
		if err := shared.Update(t.Context(), changed); err != nil {
			t.Errorf("%s: an old set with the violation cannot be changed elsewhere: %v", name, err)
		}
	}
}

// fresh returns a set like another one, as a user would write it, without what the API server has added.
func fresh(set *unstructured.Unstructured) *unstructured.Unstructured {
	u := set.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "metadata")
	u.SetName(set.GetName()[1:] + "z") // as long as before, but not taken
	u.SetNamespace("default")
	return u
}

// shippedCRD returns the CRD that users install.
func shippedCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

// replace replaces the CRD, and waits until the API server uses it: until a partition below 0 is admitted, or refused.
func replace(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, admitted bool) {
	t.Helper()
	current := &apiextensionsv1.CustomResourceDefinition{}
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(crd), current); err != nil {
		t.Fatal(err)
	}
	current.Spec = crd.Spec
	if err := shared.Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	invalid := with(t, parse(t, manifest), fields{rolling + ".partition": "-1"})
	for deadline := time.Now().Add(patience.Long()); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err := shared.Create(t.Context(), invalid.DeepCopy(), client.DryRunAll); (err == nil) == admitted {
			return
		}
	}
	t.Fatal("the API server does not go by the new CRD")
}
