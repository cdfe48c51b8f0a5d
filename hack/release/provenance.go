// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

// statement is an in-toto statement, https://in-toto.io/Statement/v1, unsigned.
type statement struct {
	Type          string       `json:"_type"`
	Subject       []descriptor `json:"subject"`
	PredicateType string       `json:"predicateType"`
	Predicate     predicate    `json:"predicate"`
}

// predicate is SLSA provenance, https://slsa.dev/provenance/v1.
type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	InternalParameters   map[string]string `json:"internalParameters"`
	ResolvedDependencies []descriptor      `json:"resolvedDependencies"`
}

type runDetails struct {
	Builder builder `json:"builder"`
}

type builder struct {
	ID string `json:"id"`
}

// descriptor names an object by its digest.
type descriptor struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// provenance returns what the subjects were built from and how. It contains no times and no machine names, because the build
// is reproducible. The signer adds who built it.
func provenance(b binary, subjects []descriptor) statement {
	repository := "git+https://" + b.info.Main.Path
	return statement{
		Type:          "https://in-toto.io/Statement/v1",
		Subject:       subjects,
		PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{
			BuildDefinition: buildDefinition{
				BuildType:          "https://" + b.info.Main.Path + "/hack/release@v1",
				ExternalParameters: map[string]string{"version": b.version(), "repository": repository, "command": "make release"},
				InternalParameters: map[string]string{
					"CGO_ENABLED": b.setting("CGO_ENABLED"), "-trimpath": b.setting("-trimpath"), "-buildmode": b.setting("-buildmode"),
				},
				ResolvedDependencies: []descriptor{
					{URI: repository + "@" + b.revision(), Digest: map[string]string{"gitCommit": b.revision()}},
					{Name: "go", URI: "pkg:generic/go@" + b.info.GoVersion},
				},
			},
			RunDetails: runDetails{Builder: builder{ID: "https://" + b.info.Main.Path + "/hack/release"}},
		},
	}
}
