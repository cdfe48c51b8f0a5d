// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// accepted reads the manifests of testdata/accepted by name. They are StatefulSets and CloneSets. The test turns them into
// RollSets with the only edits that a user has to make.
func accepted(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob("testdata/accepted/*.yaml")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d manifests are fewer than the contract asks for: %v", len(paths), err)
	}
	sets := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		u := parse(t, string(text))
		if u.GetKind() == "StatefulSet" {
			u = with(t, u, fields{"spec.podIdentity": "Ordinal"})
		}
		u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("RollSet"))
		sets[strings.TrimSuffix(filepath.Base(path), ".yaml")] = u
	}
	return sets
}

func TestManifestsOfOtherKindsAreAccepted(t *testing.T) {
	for name, u := range accepted(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := shared.admit(t.Context(), u); err != nil {
				t.Error(err)
			}
		})
	}
}

// These values are at the edge of a rule, on the right side of it.
func TestEdgesAreAccepted(t *testing.T) {
	edges := map[string]fields{
		"a name of 52 characters":           {"metadata.name": strings.Repeat("a", 52)},
		"a name of one digit":               {"metadata.name": `"1"`},
		"no replicas":                       {"spec.replicas": "0"},
		"as many replicas as there can be":  {"spec.replicas": "2147483647"},
		"replicas as null":                  {"spec.replicas": "null"},
		"a partition above replicas":        {rolling + ".partition": "2147483647"},
		"a partition of 0%":                 {rolling + ".partition": "0%"},
		"a partition of 100%":               {rolling + ".partition": "100%"},
		"a maxSurge of 99999%":              {rolling + ".maxSurge": "99999%"},
		"neither unavailable nor surge":     {rolling + ".maxUnavailable": "0", rolling + ".maxSurge": "0"},
		"equal steps, and of both forms":    {rolling + ".steps": "[{updated: 1}, {updated: 1}, {updated: 5%}, {updated: 2147483647}, {updated: 10%}, {updated: 100%}]"},
		"steps of more than replicas":       {"spec.replicas": "0", rolling + ".steps": "[{updated: 7, soakSeconds: 2147483647, pause: true, gates: [{conditionType: example.com/A, timeoutSeconds: 2147483647}, {conditionType: A}]}]"},
		"a gate of a type of one's own":     {rolling + ".steps": "[{updated: 1, gates: [{conditionType: example.com/Ready}, {conditionType: ReadyForMore}, {conditionType: ErrorRate}]}]"},
		"zones":                             {rolling + ".domains": "{labelKey: topology.kubernetes.io/zone, soakSeconds: 2147483647}"},
		"domains of a short label":          {rolling + ".domains": "{labelKey: rack}", rolling + ".steps": "[{updated: 1}]"},
		"no steps under OnDelete":           {"spec.updateStrategy.type": "OnDelete", rolling + ".steps": "[]"},
		"no strategy":                       {"spec.updateStrategy": "null"},
		"an empty strategy":                 {"spec.updateStrategy": "{}"},
		"a null rolling update":             {"spec.updateStrategy": "{type: OnDelete, rollingUpdate: null}"},
		"Parallel for Random":               {"spec.podManagementPolicy": "Parallel"},
		"no deadline":                       {"spec.progressDeadlineSeconds": "2147483647", "spec.minReadySeconds": "2147483646"},
		"a surge of nothing for Ordinal":    {identity: "Ordinal", rolling + ".maxSurge": "0%"},
		"surge for Ordinal":                 {identity: "Ordinal", rolling + ".maxSurge": "2147483647", rolling + ".maxUnavailable": "0"},
		"surge in percent for OrderedReady": {identity: "Ordinal", rolling + ".maxSurge": "10%", "spec.podManagementPolicy": "OrderedReady"},
		"surge at the last ordinal":         {identity: "Ordinal", rolling + ".maxSurge": "1", "spec.ordinals.start": "1000000000"},
		"the last start":                    {identity: "Ordinal", "spec.ordinals.start": "1000000000"},
		"ordinals and ranges":               {identity: "Ordinal", "spec.reserveOrdinals": `[0, "3-5", 7, "9-9", 1000000000, "999990001-1000000000", "0-9999"]`},
		"no reserved ordinals for Random":   {"spec.reserveOrdinals": "[]"},
		"64 claim templates":                {"spec.volumeClaimTemplates": manyTemplates(64)},
		"a claim template of 63 characters": {"spec.volumeClaimTemplates": "[{metadata: {name: " + strings.Repeat("a", 63) + "}}]"},
		"a domain that only ends like ours": {"spec.template.metadata.labels": "{app: web, notrollset.dev/x: z, rollset.dev.example.com/x: z, rollset.dev: z}"},
		"a selector of an absent label":     {"spec.selector": "{matchLabels: {app: web}, matchExpressions: [{key: x, operator: DoesNotExist}, {key: z, operator: NotIn, values: [z]}]}"},
		"a selector of expressions only":    {"spec.selector": "{matchExpressions: [{key: app, operator: In, values: [db, web]}, {key: app, operator: Exists}]}"},
		"a hook on 16 labels":               {"spec.lifecycle.preDelete": "{labelsHandler: {" + manyLabels(16) + "}}"},
		"a hook on nothing":                 {"spec.lifecycle.preDelete": "{}"},
		"a hook with a limit":               {"spec.lifecycle.preDelete": "{finalizersHandler: [example.com/x], timeoutSeconds: 1}"},
		"a hook that proceeds":              {"spec.lifecycle.preDelete": "{labelsHandler: {a: b}, finalizersHandler: [], timeoutSeconds: 2147483647, onTimeout: Proceed}"},
		"a hook that holds without a limit": {"spec.lifecycle.preDelete": "{labelsHandler: {a: b}, onTimeout: Hold}"},
		"an empty scatter value":            {rolling + ".scatterStrategy": "[{key: zone, value: ''}]"},
	}
	for name, changes := range edges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := shared.admit(t.Context(), with(t, parse(t, manifest), changes)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Built-in kinds accept a number for every quantity. It means the same as the string.
func TestQuantitiesAreNumbersOrStrings(t *testing.T) {
	for number, want := range map[string]string{"0.5": "500m", "1": "1", "0.1": "100m", "1e3": "1e3", "0": "0", "2.0": "2", `"0.5"`: "500m", "1.5": "1500m"} {
		set := with(t, parse(t, manifest), fields{
			"spec.template.spec.containers": "[{name: a, image: i, resources: {requests: {cpu: " + number + "}}}]",
			"spec.template.spec.volumes":    "[{name: v, emptyDir: {sizeLimit: " + number + "}}]",
			"spec.volumeClaimTemplates":     "[{metadata: {name: data}, spec: {resources: {requests: {storage: " + number + "}}}}]",
		})
		if err := shared.admit(t.Context(), set); err != nil {
			t.Errorf("%s: %v", number, err)
			continue
		}
		typed := &v1beta1.RollSet{}
		raw, err := set.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, typed)
		}
		if err != nil {
			t.Errorf("%s: %v", number, err)
			continue
		}
		for _, got := range []resource.Quantity{
			typed.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU],
			*typed.Spec.Template.Spec.Volumes[0].EmptyDir.SizeLimit,
			typed.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage],
		} {
			if got.Cmp(resource.MustParse(want)) != 0 {
				t.Errorf("%s is read as %s, want %s", number, got.String(), want)
			}
		}
	}
}

func TestUnknownFieldsAreReported(t *testing.T) {
	for path, changes := range map[string]fields{
		"spec.replica": {"spec.replica": "3"},
		"spec.template.spec.containers[0].imagee": {"spec.template.spec.containers": "[{name: a, imagee: i}]"},
		"spec.updateStrategy.maxUnavailable":      {"spec.updateStrategy.maxUnavailable": "1"},
	} {
		err := shared.admit(t.Context(), with(t, parse(t, manifest), changes))
		if want := `unknown field "` + path + `"`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	set := with(t, parse(t, manifest), fields{"metadata.name": "defaults"})
	if err := shared.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	spec := specOf(t, set)
	delete(spec, "selector")
	delete(spec, "template")
	want := map[string]any{
		"replicas": int64(1), "podIdentity": "Random", "serviceName": "", "minReadySeconds": int64(0),
		"revisionHistoryLimit": int64(10), "progressDeadlineSeconds": int64(600),
		"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
			"partition": int64(0), "maxSurge": int64(0), "podUpdatePolicy": "Recreate", "onDeadlineExceeded": "Hold", "onStepFailed": "Hold",
		}},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	none := map[string]any{
		"observedGeneration": int64(-1),
		"replicas":           int64(0), "readyReplicas": int64(0), "availableReplicas": int64(0), "currentReplicas": int64(0),
		"updatedReplicas": int64(0), "updatedReadyReplicas": int64(0), "updatedAvailableReplicas": int64(0),
		"expectedUpdatedReplicas": int64(0),
	}
	if diff := cmp.Diff(none, set.Object["status"]); diff != "" {
		t.Errorf("a new set must not look finished, and shows every count: status (-want +got):\n%s", diff)
	}
}

// specOf returns a copy of a set's spec.
func specOf(t *testing.T, set *unstructured.Unstructured) map[string]any {
	t.Helper()
	spec, _, err := unstructured.NestedMap(set.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// The template's metadata must be kept. Without an option of the generator, the API server would prune it.
func TestEmbeddedMetadataIsKept(t *testing.T) {
	set := with(t, parse(t, manifest), fields{
		"spec.template.metadata":    "{labels: {app: web}, annotations: {example.com/a: b}, finalizers: [example.com/f]}",
		"spec.volumeClaimTemplates": "[{metadata: {name: data, labels: {example.com/l: v}}}]",
	})
	want := specOf(t, set)
	if err := shared.Create(t.Context(), set, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	got := specOf(t, set)
	for _, field := range []string{"template", "volumeClaimTemplates"} {
		if diff := cmp.Diff(want[field], got[field]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
}

// create creates a set and returns it as the controller sees it.
func create(t *testing.T, u *unstructured.Unstructured) *v1beta1.RollSet {
	t.Helper()
	if err := shared.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	set := &v1beta1.RollSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// Scaling goes through a subresource, which is validated like everything else. A valid set must stay valid.
func TestScalingNeverInvalidates(t *testing.T) {
	sets := accepted(t)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := create(t, with(t, sets[name], fields{"metadata.name": "scaled-" + name}))
			for _, replicas := range []int32{0, 1, 2, 1000, math.MaxInt32, 3} {
				scale := &autoscalingv1.Scale{}
				if err := shared.SubResource("scale").Get(t.Context(), set, scale); err != nil {
					t.Fatal(err)
				}
				scale.Spec.Replicas = replicas
				if err := shared.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)); err != nil {
					t.Errorf("%d replicas: %v", replicas, err)
				}
			}
		})
	}
}

// Disruption budgets and autoscalers find the pods of a set by the selector in /scale.
func TestScaleShowsReplicasAndSelector(t *testing.T) {
	set := create(t, with(t, parse(t, manifest), fields{"metadata.name": "scale", "spec.replicas": "7"}))
	set.Status.Replicas, set.Status.LabelSelector = 5, "app=web"
	if err := shared.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	got := &autoscalingv1.Scale{}
	if err := shared.SubResource("scale").Get(t.Context(), set, got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Replicas != 7 || got.Status.Replicas != 5 || got.Status.Selector != "app=web" {
		t.Errorf("scale shows %d of %d replicas of %q, want 5 of 7 of app=web", got.Status.Replicas, got.Spec.Replicas, got.Status.Selector)
	}
	if got.UID != set.GetUID() {
		t.Errorf("scale has UID %s, the set %s", got.UID, set.GetUID())
	}
}

// TestEmptyFieldsAreAccepted applies templates with nulls, which mean absent, as charts write them. Built-in kinds take them by
// every way; for custom resources the ways differ.
func TestEmptyFieldsAreAccepted(t *testing.T) {
	text := `
apiVersion: apps.rollset.dev/v1beta1
kind: RollSet
metadata: {namespace: default, name: empty, annotations: }
spec:
  podIdentity: Ordinal
  selector: {matchLabels: {app: empty}}
  template:
    metadata: {labels: {app: empty}, annotations: }
    spec:
      nodeSelector:
      tolerations:
      affinity: {podAffinity: , nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: }}
      securityContext:
      terminationGracePeriodSeconds:
      priorityClassName:
      initContainers:
      volumes:
      - {name: v, emptyDir: {medium: , sizeLimit: }}
      containers:
      - name: c
        image: web:1
        command:
        resources: {limits: {cpu: , memory: 1Gi}, requests: }
        env: [{name: A, value: , valueFrom: }]
        envFrom:
        ports: [{containerPort: 80, name: }]
        livenessProbe:
        readinessProbe: {httpGet: {port: 80}, timeoutSeconds: }
  volumeClaimTemplates:
  - metadata: {name: data, labels: {a: b}, annotations: {note: }}
    spec: {accessModes: [ReadWriteOnce], storageClassName: , resources: {requests: {storage: 1Gi}, limits: }}
`
	for way, write := range map[string]func(*unstructured.Unstructured) error{
		"create": func(u *unstructured.Unstructured) error { return shared.Create(t.Context(), u) },
		"apply": func(u *unstructured.Unstructured) error {
			return shared.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"))
		},
	} {
		t.Run(way, func(t *testing.T) {
			u := parse(t, text)
			u.SetName("empty-" + way)
			if err := write(u); err != nil {
				t.Fatal(err)
			}
			set := &v1beta1.RollSet{}
			if err := shared.Get(t.Context(), client.ObjectKeyFromObject(u), set); err != nil {
				t.Fatal(err)
			}
			c := set.Spec.Template.Spec.Containers[0]
			if c.Command != nil || c.LivenessProbe != nil || c.Env[0].Value != "" || set.Spec.Template.Spec.Tolerations != nil {
				t.Errorf("the template is read as %+v", set.Spec.Template)
			}
			if err := shared.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		})
	}
}
