// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Crdgen finishes the CRD that controller-gen makes of the API types: it cuts the descriptions of the embedded templates,
// without which the CRD would be too large for kubectl apply, adds what markers cannot say about fields of Kubernetes' own types,
// and adds the version of the API before this one.
//
// The CRD is made, from the top of the repository, by
//
//	go tool -modfile=go.tools.mod controller-gen crd:generateEmbeddedObjectMeta=true,omitToolVersion=true \
//		paths=./api/... output:crd:stdout | go run ./hack/crdgen -o config/crd/bases/apps.rollset.dev_rollsets.yaml
//
// It may as well read a CRD that it has written: then only what has changed in it since changes.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/hack/crdgen/schema"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}

// run reads a CRD and writes the finished one.
func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("crdgen", flag.ContinueOnError)
	output := flags.String("o", "", "file to write; standard output if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; the CRD is read from standard input", flags.Arg(0))
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	finished, err := finish(raw)
	if err != nil {
		return err
	}
	if *output == "" {
		_, err = out.Write(finished)
		return err
	}
	return os.WriteFile(*output, finished, 0o644)
}

// finish turns controller-gen's CRD into the shipped one.
func finish(raw []byte) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		return nil, fmt.Errorf("read the CRD: %w", err)
	}
	root, err := schema.Of(&crd)
	if err != nil {
		return nil, err
	}
	schema.Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		boundStrings(s)
		boundIntegers(s)
		depth := max(schema.Depth(path, "spec.template"), schema.Depth(path, "spec.volumeClaimTemplates"))
		if depth > describedDepth || depth == describedDepth && strings.HasSuffix(path, "]") {
			s.Description = ""
		}
	})
	for _, b := range bounds() {
		if err := schema.Change(root, b.path, b.change); err != nil {
			return nil, err
		}
	}
	schema.Walk(root, allowNulls)
	crd.Annotations = kept()
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*schema.Stored(&crd), *before(schema.Stored(&crd))}
	return write(&crd)
}

// before returns v1alpha1, which has the shape of the stored version: the API server converts by changing apiVersion. It has no
// descriptions, because with those of two versions the CRD would not fit into the annotation of kubectl apply.
func before(stored *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinitionVersion {
	v := stored.DeepCopy()
	v.Name, v.Storage, v.Deprecated = "v1alpha1", false, true
	v.DeprecationWarning = new("apps.rollset.dev/v1alpha1 RollSet is deprecated; use apps.rollset.dev/" + stored.Name + ", which has the same fields")
	schema.Walk(v.Schema.OpenAPIV3Schema, func(_ string, s *apiextensionsv1.JSONSchemaProps) { s.Description = "" })
	return v
}

// kept returns the annotations that make tools leave the CRD in place when they remove the operator: deleting a CRD deletes every
// RollSet of the cluster, and every pod of theirs. OLM v1 installs by the rules of Helm.
func kept() map[string]string {
	return map[string]string{
		"helm.sh/resource-policy":           "keep",
		"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
		"kustomize.toolkit.fluxcd.io/prune": "disabled",
	}
}

// describedDepth is the depth of descriptions in embedded templates: down to the fields of the pod's spec, but not to the
// items of lists among them. kubectl explain pod has the rest. With all descriptions the CRD would not fit into the
// annotation of kubectl apply.
const describedDepth = 2

// write prints a CRD with sorted keys and without a status, which belongs to the API server.
func write(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	raw, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if raw, err = yaml.Marshal(object); err != nil {
		return nil, err
	}
	return append([]byte("---\n"), raw...), nil
}
