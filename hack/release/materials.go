// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/hex"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// materials returns the bill of materials of a binary: the modules that were linked into it, and the standard library.
func materials(b binary) *cyclonedx.BOM {
	self := component(&b.info.Main, cyclonedx.ComponentTypeApplication)
	self.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	std := component(&debug.Module{Path: "std", Version: b.info.GoVersion}, cyclonedx.ComponentTypeLibrary)
	components := []cyclonedx.Component{std}
	refs := []string{std.BOMRef}
	for _, module := range b.info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := component(module, cyclonedx.ComponentTypeLibrary)
		components = append(components, c)
		refs = append(refs, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: b.setting("vcs.time"), // not the clock: the same commit has the same bill
		Component: &self,
		Properties: &[]cyclonedx.Property{
			{Name: "goos", Value: b.setting("GOOS")}, {Name: "goarch", Value: b.setting("GOARCH")},
		},
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
	return bom
}

// component returns a module as a CycloneDX component.
func component(module *debug.Module, kind cyclonedx.ComponentType) cyclonedx.Component {
	url := "pkg:golang/" + module.Path + "@" + strings.ReplaceAll(module.Version, "+", "%2B")
	c := cyclonedx.Component{BOMRef: url, Type: kind, Name: module.Path, Version: module.Version, PackageURL: url}
	// go.sum's hash is a SHA-256 of the names and hashes of the module's files.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}
