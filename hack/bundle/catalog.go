// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"sigs.k8s.io/yaml"
)

// channelName is the only channel.
const channelName = "candidate"

// writeCatalog writes a file-based catalog: what the catalog before offered, and the bundle as the new head of the channel. OLM
// goes by the edges of the channel's entries, and not by what a ClusterServiceVersion says.
func (r *release) writeCatalog(bundle, before, folder string) error {
	csv, err := readCSV(bundle)
	if err != nil {
		return err
	}
	if csv.Name != name(r.version) {
		return fmt.Errorf("the bundle in %s is %s, not %s: write it with make bundle first", bundle, csv.Name, name(r.version))
	}
	catalog := &declcfg.DeclarativeConfig{}
	if before != "" {
		file, err := os.Open(before)
		if err != nil {
			return fmt.Errorf("read the catalog before: %w", err)
		}
		defer func() { _ = file.Close() }()
		if catalog, err = declcfg.LoadReader(file); err != nil {
			return fmt.Errorf("read the catalog before, %s: %w", before, err)
		}
	}
	if err := r.add(catalog, csv); err != nil {
		return err
	}
	if _, err := declcfg.ConvertToModel(*catalog); err != nil {
		return fmt.Errorf("the catalog would not be valid: %w", err)
	}
	var text bytes.Buffer
	if err := declcfg.WriteYAML(*catalog, &text); err != nil {
		return err
	}
	labels := map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	return writeFiles(folder, map[string]any{
		"configs/" + packageName + "/catalog.yaml": text.Bytes(),
		"Dockerfile": dockerfile(labels, "configs"),
	})
}

// readCSV returns the ClusterServiceVersion of a bundle.
func readCSV(bundle string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	text, err := os.ReadFile(filepath.Join(bundle, "manifests", packageName+".clusterserviceversion.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no bundle in %s: write it with make bundle first", bundle)
	}
	if err != nil {
		return nil, err
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(text, csv); err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	return csv, nil
}

// add makes a version the head of the channel. A version that is the head already is written again.
func (r *release) add(catalog *declcfg.DeclarativeConfig, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if len(catalog.Packages) == 0 {
		catalog.Packages = []declcfg.Package{{
			Schema: declcfg.SchemaPackage, Name: packageName, DefaultChannel: channelName,
			Description: csv.Spec.Description, Icon: &declcfg.Icon{Data: icon, MediaType: csv.Spec.Icon[0].MediaType},
		}}
		catalog.Channels = []declcfg.Channel{{Schema: declcfg.SchemaChannel, Name: channelName, Package: packageName}}
	}
	at := slices.IndexFunc(catalog.Channels, func(c declcfg.Channel) bool { return c.Package == packageName && c.Name == channelName })
	if at < 0 {
		return fmt.Errorf("the catalog before has no channel %s of %s", channelName, packageName)
	}
	entry := declcfg.ChannelEntry{Name: csv.Name, SkipRange: r.skips()}
	channel := &catalog.Channels[at]
	channel.Entries = slices.DeleteFunc(channel.Entries, func(e declcfg.ChannelEntry) bool { return e.Name == entry.Name })
	catalog.Bundles = slices.DeleteFunc(catalog.Bundles, func(b declcfg.Bundle) bool { return b.Name == entry.Name })
	head, err := newest(channel.Entries)
	if err != nil {
		return err
	}
	switch {
	case head != nil && head.GT(r.version):
		return fmt.Errorf("the catalog before has %s: %s would not be the newest", name(*head), entry.Name)
	case head != nil && r.replaces != nil && head.NE(*r.replaces):
		return fmt.Errorf("the newest of the catalog before is %s, and %s replaces %s", name(*head), entry.Name, name(*r.replaces))
	case head != nil: // without it the channel would have two heads
		entry.Replaces = name(*head)
	case r.replaces != nil:
		entry.Replaces = name(*r.replaces)
	}
	channel.Entries = append(channel.Entries, entry)
	catalog.Bundles = append(catalog.Bundles, r.bundle(csv))
	return nil
}

// newest returns the newest version of a channel, or nil if there is none.
func newest(entries []declcfg.ChannelEntry) (*semver.Version, error) {
	var head *semver.Version
	for _, e := range entries {
		v, err := semver.Parse(strings.TrimPrefix(e.Name, packageName+".v"))
		if err != nil {
			return nil, fmt.Errorf("the entry %s of the catalog before: %w", e.Name, err)
		}
		if head == nil || v.GT(*head) {
			head = &v
		}
	}
	return head, nil
}

// bundle returns what a catalog says of the bundle.
func (r *release) bundle(csv *operatorsv1alpha1.ClusterServiceVersion) declcfg.Bundle {
	b := declcfg.Bundle{
		Schema: declcfg.SchemaBundle, Name: csv.Name, Package: packageName, Image: r.image,
		Properties: []property.Property{
			property.MustBuildPackage(packageName, r.version.String()),
			property.MustBuildCSVMetadata(*csv),
		},
		RelatedImages: []declcfg.RelatedImage{{Image: r.image}},
	}
	for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
		_, group, _ := strings.Cut(crd.Name, ".")
		b.Properties = append(b.Properties, property.MustBuildGVK(group, crd.Version, crd.Kind))
	}
	for _, image := range csv.Spec.RelatedImages {
		b.RelatedImages = append(b.RelatedImages, declcfg.RelatedImage{Name: image.Name, Image: image.Image})
	}
	return b
}
