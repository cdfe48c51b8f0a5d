// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/testing/settled"
)

// BenchmarkJoin joins pods that have not changed since the last look, and pods that are seen first.
func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		set := settled.Set(n)
		o := &snapshot.Objects{Set: set, Selector: labels.Everything(), Now: time.Unix(10_000, 0)}
		for i := range n {
			o.Pods = append(o.Pods, settled.Pod(set, "web-1", i))
		}
		for name, forget := range map[string]bool{"remembered": false, "new": true} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				memory := &Memory{}
				b.ReportAllocs()
				for b.Loop() {
					if forget {
						memory = &Memory{}
					}
					if len(memory.Join(o)) != n {
						b.Fatal("pods are missing")
					}
				}
			})
		}
	}
}
