// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command bundle writes what the Operator Lifecycle Manager installs from:
//
//	go run . bundle -version 1.2.3 -image <registry>/<name>@sha256:… -o DIR     a bundle, of what kustomize builds from config/manifests
//	go run . catalog -bundle DIR -image <registry>/<name>@sha256:… -o DIR       a catalog that offers it, and what was offered before
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/blang/semver/v4"
)

// packageName is the name of the operator in catalogs.
const packageName = "rollset"

// release holds the values that differ between bundles.
type release struct {
	version semver.Version
	// image is the image, by its digest: of the manager in a bundle, of the bundle in a catalog.
	image string
	// replaces is the version before, if an upgrade must not skip it.
	replaces *semver.Version
	// created is when the commit was made.
	created time.Time
}

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader) error {
	if len(args) == 0 || args[0] != "bundle" && args[0] != "catalog" {
		return errors.New("say bundle or catalog")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := flags.String("version", "", "the `version`, without a v")
	image := flags.String("image", "", "the `image` of the manager, or of the bundle for a catalog, by its digest")
	replaces := flags.String("replaces", "", "the `version` before, without a v, if no version may be skipped")
	created := flags.String("created", "", "the `time` of the commit, as in RFC 3339")
	bundle := flags.String("bundle", "bundle", "the `folder` of the bundle for a catalog")
	before := flags.String("before", "", "the `file` of the catalog before, which the new one continues")
	out := flags.String("o", args[0], "the `folder` to write to")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	r, err := newRelease(*version, *image, *replaces, *created)
	if err != nil {
		return err
	}
	if args[0] == "bundle" {
		if r.created.IsZero() {
			return errors.New("-created is missing: the time of the commit")
		}
		return r.write(in, *out)
	}
	return r.writeCatalog(*bundle, *before, *out)
}

// newRelease checks what users give. The time is optional: a catalog has none.
func newRelease(version, image, replaces, created string) (*release, error) {
	r := &release{image: image}
	var err error
	if r.version, err = semver.Parse(version); err != nil {
		return nil, fmt.Errorf("VERSION %q, such as 1.2.3: %w", version, err)
	}
	if replaces != "" {
		before, err := semver.Parse(replaces)
		if err != nil {
			return nil, fmt.Errorf("REPLACES %q, such as 1.2.2: %w", replaces, err)
		}
		if before.GE(r.version) {
			return nil, fmt.Errorf("REPLACES %s is not before VERSION %s", before, r.version)
		}
		r.replaces = &before
	}
	if created != "" {
		if r.created, err = time.Parse(time.RFC3339, created); err != nil {
			return nil, fmt.Errorf("-created: %w", err)
		}
	}
	return r, checkImage(image)
}

var (
	byDigest = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?/[a-z0-9._/-]+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@sha256:[0-9a-f]{64}$`)
	// reserved are names that RFC 2606 sets apart for examples: no cluster can pull from there.
	reserved = regexp.MustCompile(`^([^/]*\.)?(example(\.(com|net|org))?|invalid|test)(:[0-9]+)?/`)
)

// checkImage refuses an image that could be another one tomorrow, or that no cluster can pull.
func checkImage(image string) error {
	switch {
	case !byDigest.MatchString(image):
		return fmt.Errorf("the image %q has no digest: want <registry>/<name>@sha256:<64 digits>, so that a cluster without the registry's name can use a mirror, and everybody gets the same", image)
	case reserved.MatchString(image):
		return fmt.Errorf("the image %q is an example: a cluster could not pull it", image)
	default:
		return nil
	}
}

// name returns the name of a version in a catalog.
func name(version semver.Version) string { return packageName + ".v" + version.String() }

// skips returns the versions that are upgraded to this one directly: all before it, or those from the one on that must not be
// skipped.
func (r *release) skips() string {
	if r.replaces != nil {
		return fmt.Sprintf(">=%s <%s", r.replaces, r.version)
	}
	return "<" + r.version.String()
}
