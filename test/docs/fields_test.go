// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// places are where a field of the spec must be known, as the list in docs/contributing/changes.md names them. A Go file names the
// field as Go does, every other file as JSON does.
var places = []string{
	"config/crd/bases", "docs/api-reference.md", "test/admission", "internal", "internal/testing/sim", "internal/cli/move/back_test.go", "docs",
}

// elsewhere are fields that a place knows under another name, or needs not know, and why.
var elsewhere = map[string]string{
	"internal serviceName":             "no decision depends on it",
	"internal drainTaints":             "it is read by a method of the API",
	"internal/testing/sim serviceName": "no decision depends on it",
}

// field is a field of the spec, under its names in JSON and in Go.
type field struct{ json, golang string }

// fieldsOf lists the fields of a type of the API, down to those whose parts belong together.
func fieldsOf(of reflect.Type) (all []field) {
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, field{json: name, golang: f.Name})
		in := f.Type
		for in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		switch in {
		case reflect.TypeFor[v1beta1.UpdateStrategy](), reflect.TypeFor[v1beta1.RollingUpdate](), reflect.TypeFor[v1beta1.ScaleStrategy](),
			reflect.TypeFor[v1beta1.Lifecycle](), reflect.TypeFor[v1beta1.Disruption]():
			all = append(all, fieldsOf(in)...)
		}
	}
	return all
}

// missing returns the places that do not know a field.
func missing(words map[string]map[string]bool, f field) (unknown []string) {
	for _, place := range places {
		name := f.json
		if place == "internal" || place == "internal/testing/sim" {
			name = f.golang
		}
		if _, exempt := elsewhere[place+" "+f.json]; !words[place][name] && !exempt {
			unknown = append(unknown, place)
		}
	}
	return unknown
}

// read returns the words of each place.
func read(t *testing.T) map[string]map[string]bool {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	between := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := map[string]map[string]bool{}
	for _, place := range places {
		words[place] = map[string]bool{}
		err := filepath.WalkDir(filepath.Join(root, place), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && place == "internal" && slices.Contains([]string{"testing", "cli", "simulator"}, entry.Name()) {
				return fs.SkipDir
			}
			generated := place == "docs" && strings.HasSuffix(path, "api-reference.md")
			if err != nil || entry.IsDir() || generated || !slices.Contains([]string{".go", ".md", ".yaml"}, filepath.Ext(path)) {
				return err
			}
			content, err := os.ReadFile(path)
			for word := range strings.FieldsFuncSeq(string(content), between) {
				words[place][word] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return words
}

// TestFieldsAreKnown looks for each field of the spec in each place of the list.
func TestFieldsAreKnown(t *testing.T) {
	words := read(t)
	for _, f := range fieldsOf(reflect.TypeFor[v1beta1.RollSetSpec]()) {
		for _, place := range missing(words, f) {
			t.Errorf("%s does not know the field %s: see \"A field\" in docs/contributing/changes.md", place, f.json)
		}
	}
}

// TestListOfAField adds a field to the spec and follows the list: each place lacks it until it is there, and the list names each.
func TestListOfAField(t *testing.T) {
	fields := []reflect.StructField{{Name: "ToyOfTheTest", Type: reflect.TypeFor[*int32](), Tag: `json:"toyOfTheTest,omitempty"`}}
	for f := range reflect.TypeFor[v1beta1.RollSetSpec]().Fields() {
		fields = append(fields, f)
	}
	toy := fieldsOf(reflect.StructOf(fields))[0]
	words := read(t)
	if diff := cmp.Diff(places, missing(words, toy)); diff != "" {
		t.Errorf("places that lack a new field (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile("../../docs/contributing/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "### A field\n")
	list, _, _ = strings.Cut(list, "\n### ")
	for i, place := range places {
		if !strings.Contains(list, "`"+place) {
			t.Errorf("the list does not name %s", place)
		}
		words[place][toy.json], words[place][toy.golang] = true, true
		if diff := cmp.Diff(places[i+1:], missing(words, toy), cmp.Transformer("none", func(s []string) int { return len(s) })); diff != "" {
			t.Errorf("after %s:\n%s", place, diff)
		}
	}
}
