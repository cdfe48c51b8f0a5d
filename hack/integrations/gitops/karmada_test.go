// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// script is a script in Karmada's customization of a kind.
type script struct {
	Lua string `json:"luaScript"`
}

// call runs a function of the interpreter and returns its first result.
func call(t *testing.T, operation, function string, args ...any) any {
	t.Helper()
	var customization struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       struct {
			Target         map[string]string `json:"target"`
			Customizations map[string]script `json:"customizations"`
		} `json:"spec"`
	}
	decode(t, "config/karmada/interpreter.yaml", &customization)
	if customization.Spec.Target["kind"] != "RollSet" {
		t.Fatalf("it is about %v", customization.Spec.Target)
	}
	state := newState(t)
	if err := state.DoString(customization.Spec.Customizations[operation].Lua); err != nil {
		t.Fatal(err)
	}
	var values []lua.LValue
	for _, arg := range args {
		values = append(values, toLua(state, arg))
	}
	if err := state.CallByParam(lua.P{Fn: state.GetGlobal(function), NRet: 1, Protect: true}, values...); err != nil {
		t.Fatal(err)
	}
	return fromLua(state.Get(-1))
}

func TestKarmadaReplicas(t *testing.T) {
	t.Parallel()
	set := object(t, inState("random R=3 v1", "a:v1+")).Object
	if got := call(t, "replicaResource", "GetReplicas", set); got != int64(3) {
		t.Errorf("there are %v replicas", got)
	}
	revised, ok := call(t, "replicaRevision", "ReviseReplica", set, int64(2)).(map[string]any)
	if !ok {
		t.Fatal("the revised set is none")
	}
	if n, _, err := unstructured.NestedInt64(revised, "spec", "replicas"); n != 2 || err != nil {
		t.Errorf("the revised set has %d replicas: %v", n, err)
	}
	unstructured.RemoveNestedField(set, "spec", "replicas")
	if got := call(t, "replicaResource", "GetReplicas", set); got != int64(1) {
		t.Errorf("a set without replicas has %v", got)
	}
}

func TestKarmadaHealth(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"a:v1+ b:v1+": true, "a:v1+ b:v1.": false, "": false} {
		set := object(t, inState("random R=2 v1", state))
		if got := call(t, "healthInterpretation", "InterpretHealth", set.Object); got != want {
			t.Errorf("%q is healthy: %v", state, got)
		}
		set.SetGeneration(generation + 1)
		if got := call(t, "healthInterpretation", "InterpretHealth", set.Object); got != any(false) {
			t.Errorf("%q is healthy before it was looked at", state)
		}
	}
}

// TestKarmadaStatus reflects the status of two clusters, and aggregates it.
func TestKarmadaStatus(t *testing.T) {
	t.Parallel()
	reflected := func(state string) map[string]any {
		member := object(t, inState("random R=2 v1", state))
		member.SetAnnotations(map[string]string{"resourcetemplate.karmada.io/generation": "7"})
		status, ok := call(t, "statusReflection", "ReflectStatus", member.Object).(map[string]any)
		if !ok {
			t.Fatal("no status is reflected")
		}
		return status
	}
	desired := object(t, inState("random R=4 v1", ""))
	desired.SetGeneration(7)
	items := []any{map[string]any{"status": reflected("a:v1+ b:v1+")}, map[string]any{"status": reflected("a:v1+ b:v1.")}}
	aggregated := func(items []any) map[string]any {
		result, ok := call(t, "statusAggregation", "AggregateStatus", desired.Object, items).(map[string]any)
		if !ok {
			t.Fatal("no object is returned")
		}
		status, _, err := unstructured.NestedMap(result, "status")
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	status := aggregated(items)
	want := map[string]any{"replicas": int64(4), "readyReplicas": int64(3), "availableReplicas": int64(3), "updatedReplicas": int64(4), "observedGeneration": int64(7)}
	got := map[string]any{}
	for key := range want {
		got[key] = status[key]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status = aggregated(append(items, map[string]any{"status": nil}))
	if status["observedGeneration"] == int64(7) {
		t.Error("it is observed, though a cluster has not looked yet")
	}
}
