// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Difference returns the path of the first field in which two specs of pods differ, and how; empty if they mean the same.
func Difference(path string, from, to *corev1.PodSpec) string {
	return firstDifference(path, reflect.ValueOf(*from), reflect.ValueOf(*to))
}

// firstDifference returns the path of the first field in which two values of one type differ, and how, in the order in
// which the API declares fields: "spec.containers[web].ports: changed". It returns "" if the two mean the same. Elements
// of lists are compared by name where they have one.
func firstDifference(path string, a, b reflect.Value) string {
	if equality.Semantic.DeepEqual(a.Interface(), b.Interface()) {
		return ""
	}
	switch {
	case isNothing(a):
		return path + ": added"
	case isNothing(b):
		return path + ": removed"
	}
	deeper := ""
	switch a.Kind() {
	case reflect.Pointer:
		deeper = firstDifference(path, a.Elem(), b.Elem())
	case reflect.Struct:
		deeper = firstFieldDifference(path, a, b)
	case reflect.Map:
		deeper = firstKeyDifference(path, a, b)
	case reflect.Slice:
		deeper = firstElementDifference(path, a, b)
	default:
	}
	if deeper != "" {
		return deeper
	}
	return path + ": changed"
}

// isNothing reports whether a value stands for a field that is not set.
func isNothing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil()
	case reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	default:
		return false
	}
}

func firstFieldDifference(path string, a, b reflect.Value) string {
	// Quantities, times and the like are single values to the API.
	if _, single := reflect.TypeAssert[json.Marshaler](a); single {
		return ""
	}
	for i := range a.NumField() {
		field := a.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if difference := firstDifference(join(path, name), a.Field(i), b.Field(i)); difference != "" {
			return difference
		}
	}
	return ""
}

// join appends the name of a field to a path. Fields of an embedded struct have no name between.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

func firstKeyDifference(path string, a, b reflect.Value) string {
	keys := make(map[string]reflect.Value, a.Len())
	for _, key := range slices.Concat(a.MapKeys(), b.MapKeys()) {
		keys[key.String()] = key
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		old, now := a.MapIndex(keys[name]), b.MapIndex(keys[name])
		at := path + "[" + name + "]"
		switch {
		case !old.IsValid():
			return at + ": added"
		case !now.IsValid():
			return at + ": removed"
		}
		if difference := firstDifference(at, old, now); difference != "" {
			return difference
		}
	}
	return ""
}

func firstElementDifference(path string, a, b reflect.Value) string {
	before, after := elementNames(a), elementNames(b)
	if before == nil || after == nil {
		return ""
	}
	for _, name := range before {
		if !slices.Contains(after, name) {
			return path + "[" + name + "]: removed"
		}
	}
	for _, name := range after {
		if !slices.Contains(before, name) {
			return path + "[" + name + "]: added"
		}
	}
	if !slices.Equal(before, after) {
		return path + ": reordered"
	}
	for i, name := range before {
		if difference := firstDifference(path+"["+name+"]", a.Index(i), b.Index(i)); difference != "" {
			return difference
		}
	}
	return ""
}

// elementNames returns the names of the elements of a list, or nil if they have none, or one comes twice.
func elementNames(list reflect.Value) []string {
	if list.Type().Elem().Kind() != reflect.Struct {
		return nil
	}
	field, ok := list.Type().Elem().FieldByName("Name")
	if !ok || field.Type.Kind() != reflect.String {
		return nil
	}
	var names []string
	for i := range list.Len() {
		name := list.Index(i).FieldByIndex(field.Index).String()
		if name == "" || slices.Contains(names, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}
