// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package gitops tests what config provides for Argo CD, tools that use kstatus, and Karmada, on sets with the status that
// the controller writes.
package gitops

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// read reads a file of the project.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// decode reads a file of the project. It may not have unknown fields.
func decode(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(read(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// newState returns an interpreter without the libraries that reach out of it. It has the modules that Argo CD and Karmada give to
// scripts: os with a date, and kube.
func newState(t *testing.T) *lua.LState {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	t.Cleanup(state.Close)
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
		{lua.StringLibName, lua.OpenString},
		{lua.MathLibName, lua.OpenMath},
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(library.open), Protect: true}, lua.LString(library.name)); err != nil {
			t.Fatal(err)
		}
	}
	preload(state, "os", "date", func(l *lua.LState) lua.LValue {
		if l.CheckString(1) != "!%Y-%m-%dT%XZ" {
			l.RaiseError("an unknown format")
		}
		return lua.LString("2026-01-01T00:00:00Z")
	})
	preload(state, "kube", "accuratePodRequirements", func(l *lua.LState) lua.LValue { return l.CheckTable(1) })
	return state
}

// preload adds a module with one function for scripts.
func preload(state *lua.LState, module, name string, function func(*lua.LState) lua.LValue) {
	state.PreloadModule(module, func(l *lua.LState) int {
		table := l.NewTable()
		table.RawSetString(name, l.NewFunction(func(l *lua.LState) int {
			l.Push(function(l))
			return 1
		}))
		l.Push(table)
		return 1
	})
}

// toLua converts a JSON value to Lua.
func toLua(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, item := range v {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range v {
			table.Append(toLua(state, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

// fromLua converts a Lua value to JSON. A table with items is a list.
func fromLua(value lua.LValue) any {
	switch v := value.(type) {
	case *lua.LTable:
		if n := v.Len(); n > 0 {
			list := make([]any, 0, n)
			for i := 1; i <= n; i++ {
				list = append(list, fromLua(v.RawGetInt(i)))
			}
			return list
		}
		object := map[string]any{}
		v.ForEach(func(key, item lua.LValue) { object[key.String()] = fromLua(item) })
		return object
	case lua.LString:
		return string(v)
	case lua.LBool:
		return bool(v)
	case lua.LNumber:
		if n := float64(v); n != math.Trunc(n) {
			return n
		}
		return int64(v)
	default:
		return nil
	}
}
