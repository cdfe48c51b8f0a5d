// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"rollset.dev/rollset/api/v1alpha1"
)

// resourceActions is how Argo CD reads the actions of a kind.
type resourceActions struct {
	Discovery   string `json:"discovery.lua"`
	Definitions []struct {
		Name   string `json:"name"`
		Action string `json:"action.lua"`
	} `json:"definitions"`
}

func actions(t *testing.T) resourceActions {
	t.Helper()
	var a resourceActions
	decode(t, "config/argocd/actions.yaml", &a)
	return a
}

// offered are the actions that can be chosen for a set.
func offered(t *testing.T, set *unstructured.Unstructured) []string {
	t.Helper()
	state := newState(t)
	state.SetGlobal("obj", toLua(state, set.Object))
	if err := state.DoString(actions(t).Discovery); err != nil {
		t.Fatal(err)
	}
	found, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", state.Get(-1))
	}
	var names []string
	found.ForEach(func(name, action lua.LValue) {
		if table, ok := action.(*lua.LTable); ok && !lua.LVAsBool(table.RawGetString("disabled")) {
			names = append(names, name.String())
		}
	})
	slices.Sort(names)
	return names
}

// act is what an action makes of a set.
func act(t *testing.T, name string, set *unstructured.Unstructured) map[string]any {
	t.Helper()
	for _, d := range actions(t).Definitions {
		if d.Name != name {
			continue
		}
		state := newState(t)
		state.SetGlobal("obj", toLua(state, set.Object))
		if err := state.DoString(d.Action); err != nil {
			t.Fatal(err)
		}
		result, ok := fromLua(state.Get(-1)).(map[string]any)
		if !ok {
			t.Fatalf("the script returns %v", state.Get(-1))
		}
		return result
	}
	t.Fatalf("there is no action %s", name)
	return nil
}

// steps puts a set into a step of a rollout.
func steps(t *testing.T, set *unstructured.Unstructured, phase string) *unstructured.Unstructured {
	t.Helper()
	return atStep(t, set, 2, phase)
}

func atStep(t *testing.T, set *unstructured.Unstructured, step int64, phase string) *unstructured.Unstructured {
	t.Helper()
	rollout := map[string]any{"revision": "web-abc", "step": step, "steps": int64(4), "phase": phase}
	if err := unstructured.SetNestedMap(set.Object, rollout, "status", "rollout"); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestOfferedActions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  *unstructured.Unstructured
		want []string
	}{
		"new":                {toUnstructured(t, &v1alpha1.RollSet{}), []string{"pause", "restart"}},
		"complete":           {object(t, inState("random R=2 v1", "a:v1+ b:v1+")), []string{"pause", "restart"}},
		"rolling":            {object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), []string{"pause", "restart"}},
		"paused":             {object(t, inState("random R=2 paused v1>v2", "a:v1+ b:v2+")), []string{"restart", "resume"}},
		"in a step":          {steps(t, object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), "Rolling"), []string{"abort", "pause", "promote-full", "restart"}},
		"at a step's pause":  {steps(t, object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), "Paused"), []string{"abort", "pause", "promote", "promote-full", "restart"}},
		"after a failed one": {steps(t, object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), "Failed"), []string{"abort", "pause", "promote-full", "restart"}},
		"given up":           {atStep(t, object(t, inState("random R=2 rejected v1>v2", "a:v1+ b:v2.")), 0, "Failed"), []string{"pause", "restart", "retry"}},
		"after the last":     {atStep(t, object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), 5, "Rolling"), []string{"abort", "pause", "restart"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, offered(t, c.set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestActions runs each action, and compares what it changes with what is meant.
func TestActions(t *testing.T) {
	t.Parallel()
	annotation := func(key string) []string { return []string{"metadata", "annotations", key} }
	for name, c := range map[string]struct {
		set  *unstructured.Unstructured
		path []string
		want any
	}{
		"restart":      {object(t, inState("random R=2 v1", "a:v1+ b:v1+")), []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, "2026-01-01T00:00:00Z"},
		"pause":        {object(t, inState("random R=2 v1", "a:v1+ b:v1+")), []string{"spec", "updateStrategy", "rollingUpdate", "paused"}, true},
		"resume":       {object(t, inState("random R=2 paused v1>v2", "a:v1+ b:v2+")), []string{"spec", "updateStrategy", "rollingUpdate", "paused"}, false},
		"promote":      {steps(t, object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), "Paused"), annotation("apps.rollset.dev/promote"), "web-abc/2"},
		"promote-full": {steps(t, object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), "Rolling"), annotation("apps.rollset.dev/promote"), "web-abc/all"},
		"abort":        {steps(t, object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), "Rolling"), annotation("apps.rollset.dev/abort"), "web-abc"},
		"retry":        {atStep(t, object(t, inState("random R=2 rejected v1>v2", "a:v1+ b:v2.")), 0, "Failed"), annotation("apps.rollset.dev/retry"), "web-abc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(offered(t, c.set), name) {
				t.Error("it is not offered")
			}
			result := act(t, name, c.set)
			got, ok, err := unstructured.NestedFieldNoCopy(result, c.path...)
			if err != nil || !ok || got != c.want {
				t.Errorf("%v is %v (%v), want %v", c.path, got, err, c.want)
			}
			typed := &v1alpha1.RollSet{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result, typed); err != nil {
				t.Errorf("the result is no RollSet: %v", err)
			}
		})
	}
	if n := len(actions(t).Definitions); n != 7 {
		t.Errorf("%d actions are defined, and 7 tested", n)
	}
}
