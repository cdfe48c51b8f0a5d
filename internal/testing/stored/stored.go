// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package stored prints the sets that tests store, so that the CRD of a later version can be held against them.
package stored

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"rollset.dev/rollset/api/v1beta1"
)

const (
	// Variable is the environment variable that makes Print print.
	Variable = "ROLLSET_STORED"
	// mark begins a line with a set.
	mark = "STORED "
)

// Print prints a set as the API server stores it, as JSON on a line with a mark, for hack/release/source.sh.
func Print(set runtime.Object) error {
	if os.Getenv(Variable) == "" {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return err
	}
	content["apiVersion"], content["kind"] = v1beta1.GroupVersion.String(), "RollSet"
	for _, random := range []string{"uid", "resourceVersion", "managedFields"} {
		unstructured.RemoveNestedField(content, "metadata", random)
	}
	line, err := json.Marshal(content)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s%s\n", mark, line)
	return err
}
