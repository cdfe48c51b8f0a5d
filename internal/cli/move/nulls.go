// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// withoutNulls removes the fields of a value that are null, as built-in kinds do. The API server may refuse them in a custom
// resource. An entry of a list gets its zero value, and so does a label. Other entries of maps stay null: kubectl apply drops
// them, while the API server takes them for zero values, in a RollSet as in a built-in kind.
func withoutNulls(value any, t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		if t == nil || t.Kind() != reflect.Map {
			maps.DeleteFunc(v, func(_ string, item any) bool { return item == nil })
		}
		for key, item := range v {
			withoutNulls(item, typeAt(t, key))
		}
		emptyNulls(v["labels"])
		emptyNulls(v["matchLabels"])
	case []any:
		of := typeAt(t, "")
		for i, item := range v {
			if item == nil && of != nil {
				v[i] = zero(of)
			}
			withoutNulls(item, of)
		}
	}
}

// emptyNulls gives the nulls in a map of strings the empty value.
func emptyNulls(value any) {
	entries, _ := value.(map[string]any)
	for key, item := range entries {
		if item == nil {
			entries[key] = ""
		}
	}
}

// typeAt returns the type of what a type has at a key of its JSON form; nil if the type is not known.
func typeAt(t reflect.Type, key string) reflect.Type {
	if t == nil {
		return nil
	}
	if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		return t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return fieldAt(t, key)
	}
	return nil
}

// fieldAt returns the type of the field with a JSON name, also of one in an embedded struct.
func fieldAt(t reflect.Type, key string) reflect.Type {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == key {
			return field.Type
		}
		if field.Anonymous && name == "" {
			if of := typeAt(field.Type, key); of != nil {
				return of
			}
		}
	}
	return nil
}

// zero returns the zero value of a type in its JSON form.
func zero(t reflect.Type) any {
	var value any
	if text, err := json.Marshal(reflect.Zero(t).Interface()); err == nil {
		_ = json.Unmarshal(text, &value)
	}
	return value
}
