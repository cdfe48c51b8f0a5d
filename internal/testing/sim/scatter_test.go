// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestScatterWhicheverPods names any three of six pods and expects that no two of them are replaced in a row.
func TestScatterWhicheverPods(t *testing.T) {
	t.Parallel()
	pods := []string{"a", "b", "c", "d", "e", "f"}
	for i := range pods {
		for j := range i {
			for k := range j {
				named := fmt.Sprintf("%s %s %s", pods[k], pods[j], pods[i])
				w := played(t, "replicas 6\nmaxUnavailable 1\nsettle\nlabel rack=x "+named+"\nscatter rack=x\nimage app:v2\nsettle")
				var order strings.Builder
				for _, e := range w.Store.Log() {
					if old, ok := e.Old.(*corev1.Pod); ok && e.Verb == apiserver.Delete && e.Actor == managerActor {
						fmt.Fprintf(&order, "%d", len(old.Labels["rack"]))
					}
				}
				if strings.Count(order.String(), "1") != 3 || strings.Contains(order.String(), "11") {
					t.Errorf("pods %s named: replaced in the order %s\n%s", named, order.String(), w.Film)
				}
			}
		}
	}
}
