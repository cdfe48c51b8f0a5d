// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/internal/model/identity"
)

// FuzzReserved looks for ranges of ordinals that crash, or whose At and Rank disagree.
func FuzzReserved(f *testing.F) {
	f.Add(int32(0), "3-5", int32(4), 3)
	f.Add(int32(2147483647), "0-2147483647", int32(-1), 0)
	f.Add(int32(7), "5-4", int32(9), 1)
	f.Add(int32(0), "-", int32(0), 1<<31)
	f.Fuzz(func(t *testing.T, start int32, spelled string, single int32, k int) {
		ordinals, err := identity.NewOrdinals(start, []intstr.IntOrString{intstr.FromString(spelled), intstr.FromInt32(single)})
		if err != nil {
			return
		}
		ordinal := ordinals.At(k)
		if ordinal < 0 {
			return
		}
		if back, usable := ordinals.Rank(ordinal); !usable || back != k {
			t.Fatalf("ordinal %d is number %d; that one counts as number %d, usable %t", ordinal, k, back, usable)
		}
	})
}

// FuzzParseOrdinal looks for pod names that are parsed as another pod's.
func FuzzParseOrdinal(f *testing.F) {
	f.Add("web", "web-0")
	f.Add("web", "web-007")
	f.Add("web-1", "web-1-99999999999")
	f.Add("", "-1")
	f.Fuzz(func(t *testing.T, set, pod string) {
		if n, ok := identity.ParseOrdinal(set, pod); ok && set+"-"+strconv.Itoa(n) != pod {
			t.Fatalf("%q is read as %d of %q", pod, n, set)
		}
	})
}
