// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package integrations

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/status"
)

// stateMetrics returns the configuration of kube-state-metrics.
func stateMetrics(t *testing.T) customresourcestate.Resource {
	t.Helper()
	var config struct {
		Kind                        string `json:"kind"`
		customresourcestate.Metrics `json:",inline"`
	}
	decode(t, "config/kube-state-metrics/config.yaml", &config)
	if config.Kind != "CustomResourceStateMetrics" || len(config.Spec.Resources) != 1 {
		t.Fatalf("%s of %d resources", config.Kind, len(config.Spec.Resources))
	}
	return config.Spec.Resources[0]
}

// inRollout returns a set in the middle of a rollout, with the status that the controller writes.
func inRollout(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	observed := snapshottest.Parse("random R=3 p=1 mu=2 v1>v2", "a:v1+ b:v1+ c:v2.")
	report := status.Compute(status.Input{Snap: observed, Generation: 3, Plan: plan.Next(observed)})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Generation: 3},
		Spec:       *observed.Spec,
		Status:     report.Status,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// TestStateMetrics runs kube-state-metrics on a set in the middle of a rollout, and compares its output with the
// documentation.
func TestStateMetrics(t *testing.T) {
	t.Parallel()
	factory, err := customresourcestate.NewCustomResourceMetrics(stateMetrics(t))
	if err != nil {
		t.Fatal(err)
	}
	set := inRollout(t)
	everywhere := regexp.MustCompile(`(customresource_\w+|namespace|rollset)="[^"]+",?`)
	var got []string
	types := map[string]string{}
	for _, family := range factory.MetricFamilyGenerators() {
		types[family.Name] = string(family.Type)
		for line := range strings.Lines(string(family.Generate(set).ByteSlice())) {
			got = append(got, strings.ReplaceAll(everywhere.ReplaceAllString(strings.TrimSpace(line), ""), ",}", "}"))
		}
	}
	slices.Sort(got)
	want := []string{
		`kube_rollset_info{current_revision="v1",update_revision="v2"} 1`,
		`kube_rollset_metadata_generation{} 3`,
		`kube_rollset_spec_paused{} 0`,
		`kube_rollset_spec_replicas{} 3`,
		`kube_rollset_status_condition{condition="Available",status="False"} 0`,
		`kube_rollset_status_condition{condition="Available",status="True"} 1`,
		`kube_rollset_status_condition{condition="Available",status="Unknown"} 0`,
		`kube_rollset_status_condition{condition="Progressing",status="False"} 0`,
		`kube_rollset_status_condition{condition="Progressing",status="True"} 1`,
		`kube_rollset_status_condition{condition="Progressing",status="Unknown"} 0`,
		`kube_rollset_status_condition{condition="Ready",status="False"} 1`,
		`kube_rollset_status_condition{condition="Ready",status="True"} 0`,
		`kube_rollset_status_condition{condition="Ready",status="Unknown"} 0`,
		`kube_rollset_status_observed_generation{} 3`,
		`kube_rollset_status_replicas_available{} 2`,
		`kube_rollset_status_replicas_expected_updated{} 2`,
		`kube_rollset_status_replicas_ready{} 2`,
		`kube_rollset_status_replicas_updated{} 1`,
		`kube_rollset_status_replicas{} 3`,
		`kube_rollset_status_revision_replicas{revision="v1"} 2`,
		`kube_rollset_status_revision_replicas{revision="v2"} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}

	wantTypes := map[string]string{}
	labels := map[string][]string{}
	for name, m := range documented(t) {
		if strings.HasPrefix(name, "kube_rollset_") {
			wantTypes[name] = m.Type
			labels[name] = m.Labels
		}
	}
	if diff := cmp.Diff(wantTypes, types); diff != "" {
		t.Errorf("documented metrics (-documented +served):\n%s", diff)
	}
	served := regexp.MustCompile(`^(\w+)\{`)
	for _, line := range got {
		name := served.FindStringSubmatch(line)
		for _, label := range labels[name[1]] {
			if !strings.Contains(line, label+`="`) {
				t.Errorf("%s has no label %s: %s", name[1], label, line)
			}
		}
	}
}

// TestStateMetricsPaths looks up each path of the configuration in the CRD.
func TestStateMetricsPaths(t *testing.T) {
	t.Parallel()
	var crd apiextensionsv1.CustomResourceDefinition
	decode(t, "config/crd/bases/apps.rollset.dev_rollsets.yaml", &crd)
	resource := stateMetrics(t)
	if gvk := resource.GroupVersionKind; gvk.Group != crd.Spec.Group || gvk.Version != crd.Spec.Versions[0].Name || gvk.Kind != crd.Spec.Names.Kind {
		t.Fatalf("the CRD has no %v", gvk)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	check := func(in *apiextensionsv1.JSONSchemaProps, paths map[string][]string) {
		for label, path := range paths {
			if _, err := follow(in, path); err != nil {
				t.Errorf("label %s: %v", label, err)
			}
		}
	}
	check(schema, resource.LabelsFromPath)
	for _, metric := range resource.Metrics {
		switch each := metric.Each; {
		case each.Gauge != nil:
			at, err := follow(schema, each.Gauge.Path)
			if err != nil {
				t.Fatalf("%s: %v", metric.Name, err)
			}
			value, err := follow(at, each.Gauge.ValueFrom)
			if err != nil || value.Type != "integer" && value.Type != "boolean" {
				t.Errorf("%s: %v is no number: %v", metric.Name, each.Gauge.Path, err)
			}
			check(at, each.Gauge.LabelsFromPath)
		case each.StateSet != nil:
			at, err := follow(schema, each.StateSet.Path)
			if err != nil {
				t.Fatalf("%s: %v", metric.Name, err)
			}
			value, err := follow(at, each.StateSet.ValueFrom)
			if err != nil {
				t.Fatalf("%s: %v", metric.Name, err)
			}
			var states []string
			for _, state := range value.Enum {
				states = append(states, strings.Trim(string(state.Raw), `"`))
			}
			if diff := cmp.Diff(states, each.StateSet.List); diff != "" {
				t.Errorf("%s (-CRD +configuration):\n%s", metric.Name, diff)
			}
			check(at, each.StateSet.LabelsFromPath)
		case each.Info != nil:
			check(schema, each.Info.LabelsFromPath)
		default:
			t.Errorf("%s has no value", metric.Name)
		}
	}
}

// follow returns the schema at the end of a path. For a list it is that of the items.
func follow(schema *apiextensionsv1.JSONSchemaProps, path []string) (*apiextensionsv1.JSONSchemaProps, error) {
	at := schema
	for i, name := range path {
		if i == 0 && name == "metadata" && at == schema && at.Properties["spec"].Type != "" { // every object has it
			return &apiextensionsv1.JSONSchemaProps{Type: map[string]string{"generation": "integer"}[path[1]]}, nil
		}
		next, ok := at.Properties[name]
		if !ok {
			return nil, fmt.Errorf("the CRD has no %s of %v", name, path)
		}
		at = &next
		if next.Items != nil {
			at = next.Items.Schema
		}
	}
	return at, nil
}
