// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"encoding/json"
	"reflect"
	"strings"
)

// withoutNulls gives the nulls in a value of a type the meaning that they have in built-in kinds: a field is absent, an entry
// of a list or of a map is its zero value. The API server refuses nulls in custom resources.
func withoutNulls(value any, t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			of := typeAt(t, key)
			switch {
			case item != nil:
				withoutNulls(item, of)
			case of != nil && t.Kind() == reflect.Map:
				v[key] = zero(of)
			default:
				delete(v, key)
			}
		}
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

// typeAt returns the type of what a type has at a key of its JSON form; nil if the type is not known.
func typeAt(t reflect.Type, key string) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice:
		return t.Elem()
	case reflect.Struct:
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
