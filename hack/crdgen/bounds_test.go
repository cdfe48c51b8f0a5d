// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// Go decodes every quantity that the pattern admits, and quickly: neither an exponent nor a number of digits makes it
// compute for long.
func TestQuantitiesThatPassAreDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(quantity).Filter(func(s string) bool { return len(s) <= 64 }).Draw(t, "quantity")
		if _, err := resource.ParseQuantity(text); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
