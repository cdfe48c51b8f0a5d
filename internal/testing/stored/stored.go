// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package stored keeps the sets that tests store, so that the CRD of a later version can be held against them.
package stored

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"rollset.dev/rollset/api/v1alpha1"
)

// Variable is the environment variable with the path of the file that Keep writes to. Without it Keep does nothing.
const Variable = "ROLLSET_STORED"

// Keep appends a set as the API server stores it, as one line of JSON.
func Keep(set runtime.Object) error {
	path := os.Getenv(Variable)
	if path == "" {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return err
	}
	content["apiVersion"], content["kind"] = v1alpha1.GroupVersion.String(), "RollSet"
	for _, random := range []string{"uid", "resourceVersion", "managedFields"} {
		unstructured.RemoveNestedField(content, "metadata", random)
	}
	line, err := json.Marshal(content)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep %s: %w", line, err)
	}
	_, err = file.Write(append(line, '\n'))
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}
