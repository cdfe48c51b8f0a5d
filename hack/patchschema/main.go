// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Patchschema writes the OpenAPI schema from which kustomize learns how to merge patches of a RollSet's pod template: which
// lists are merged, and by which keys. kustomize reads neither the schema of a CRD nor its list types, so the schema is
// taken from Kubernetes' own OpenAPI document, where pod templates have merge keys.
//
// It is run by make manifests. The result stands alone: every definition that it refers to is part of it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	prefix   = "#/definitions/"
	template = "io.k8s.api.core.v1.PodTemplateSpec"
	rollSet  = "dev.rollset.apps.v1beta1.RollSet"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "patchschema:", err)
		os.Exit(1)
	}
}

// run reads Kubernetes' OpenAPI document and writes the schema.
func run(args []string) error {
	flags := flag.NewFlagSet("patchschema", flag.ContinueOnError)
	from := flags.String("from", "", "Kubernetes' OpenAPI document, version 2")
	to := flags.String("o", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from == "" || *to == "" || flags.NArg() > 0 {
		return errors.New("usage: patchschema -from swagger.json -o schema.json")
	}
	in, err := os.Open(*from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	written, err := schema(in)
	if err != nil {
		return fmt.Errorf("%s: %w", *from, err)
	}
	return os.WriteFile(*to, written, 0o644)
}

// schema returns the definition of a RollSet, and all definitions that it refers to.
func schema(in io.Reader) ([]byte, error) {
	var document struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.NewDecoder(in).Decode(&document); err != nil {
		return nil, err
	}
	picked := map[string]any{rollSet: definition()}
	for names := []string{template}; len(names) > 0; {
		name := names[0]
		names = names[1:]
		if _, ok := picked[name]; ok {
			continue
		}
		found, ok := document.Definitions[name]
		if !ok {
			return nil, fmt.Errorf("there is no definition of %s", name)
		}
		described := without(found)
		picked[name] = described
		names = append(names, references(described)...)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(map[string]any{
		"swagger":     "2.0",
		"info":        map[string]any{"title": "RollSet", "version": "v1beta1"},
		"paths":       map[string]any{},
		"definitions": picked,
	})
	return out.Bytes(), err
}

// definition describes the fields of a RollSet that patches need. kustomize merges the other fields as it would without a
// schema.
func definition() map[string]any {
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"spec": map[string]any{
				"type":       "object",
				"properties": map[string]any{"template": map[string]any{"$ref": prefix + template}},
			},
		},
		"x-kubernetes-group-version-kind": []any{
			map[string]any{"group": "apps.rollset.dev", "version": "v1beta1", "kind": "RollSet"},
			map[string]any{"group": "apps.rollset.dev", "version": "v1alpha1", "kind": "RollSet"},
		},
	}
}

// without returns a schema without descriptions and defaults, which merging does not need.
func without(s map[string]any) map[string]any {
	kept := map[string]any{}
	for key, value := range s {
		inner, isMap := value.(map[string]any)
		switch {
		case isMap && key == "properties":
			properties := map[string]any{}
			for name, property := range inner {
				if property, ok := property.(map[string]any); ok {
					properties[name] = without(property)
				}
			}
			kept[key] = properties
		case isMap && (key == "items" || key == "additionalProperties"):
			kept[key] = without(inner)
		case key == "$ref", key == "type", key == "format",
			strings.HasPrefix(key, "x-kubernetes-patch-"), strings.HasPrefix(key, "x-kubernetes-list-"):
			kept[key] = value
		}
	}
	return kept
}

// references returns the names of the definitions that a schema refers to.
func references(value any) (names []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if name, ok := inner.(string); ok && key == "$ref" {
				names = append(names, strings.TrimPrefix(name, prefix))
				continue
			}
			names = append(names, references(inner)...)
		}
	case []any:
		for _, inner := range value {
			names = append(names, references(inner)...)
		}
	}
	return names
}
