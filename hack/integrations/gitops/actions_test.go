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

	"rollset.dev/rollset/api/v1beta1"
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

// offered returns the actions that a user can choose for a set.
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

// act returns the set after an action.
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

func TestOfferedActions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  *unstructured.Unstructured
		want []string
	}{
		"new":                {toUnstructured(t, &v1beta1.RollSet{}), []string{"pause", "restart"}},
		"complete":           {object(t, inState("random R=2 v1", "a:v1+ b:v1+")), []string{"pause", "restart"}},
		"rolling":            {object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), []string{"pause", "restart"}},
		"paused":             {object(t, inState("random R=2 paused v1>v2", "a:v1+ b:v2+")), []string{"restart", "resume"}},
		"in a step":          {object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v1+ 3:v2.", nil)), []string{"abort", "pause", "promote-full", "restart"}},
		"waiting for a gate": {object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v2+ 3:v2+", nil)), []string{"abort", "pause", "promote-full", "restart"}},
		"paused in a step":   {object(t, inStep(t, four, "0:v1+ 1:v2+ 2:v2+ 3:v2+", nil, "paused")), []string{"abort", "promote", "promote-full", "restart", "resume"}},
		"at a step's pause":  {object(t, inStep(t, four, "0:v1+ 1:v2+ 2:v2+ 3:v2+", nil)), []string{"abort", "pause", "promote", "promote-full", "restart"}},
		"after a failed one": {object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v2+ 3:v2+", judged("False"))), []string{"abort", "pause", "promote-full", "restart"}},
		"given up":           {object(t, inStep(t, four+" rejected", "0:v1+ 1:v1+ 2:v1+ 3:v2.", nil)), []string{"pause", "restart", "retry"}},
		"after the last":     {object(t, inStep(t, four, "0:v2. 1:v2+ 2:v2+ 3:v2+", nil)), []string{"abort", "pause", "restart"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, offered(t, c.set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestActions runs each action, and checks what it changes.
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
		"promote":      {object(t, inStep(t, four, "0:v1+ 1:v2+ 2:v2+ 3:v2+", nil)), annotation("apps.rollset.dev/promote"), "v2/3"},
		"promote-full": {object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v1+ 3:v2.", nil)), annotation("apps.rollset.dev/promote"), "v2/all"},
		"abort":        {object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v1+ 3:v2.", nil)), annotation("apps.rollset.dev/abort"), "v2"},
		"retry":        {object(t, inStep(t, four+" rejected", "0:v1+ 1:v1+ 2:v1+ 3:v2.", nil)), annotation("apps.rollset.dev/retry"), "v2"},
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
			typed := &v1beta1.RollSet{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result, typed); err != nil {
				t.Errorf("the result is no RollSet: %v", err)
			}
		})
	}
	if n := len(actions(t).Definitions); n != 7 {
		t.Errorf("%d actions are defined, and 7 tested", n)
	}
}
