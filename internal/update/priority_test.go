// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/update"
)

func TestUpdateOrder(t *testing.T) {
	t.Parallel()
	weight := func(n int32, key, value string) v1beta1.UpdatePriorityWeightTerm {
		return v1beta1.UpdatePriorityWeightTerm{
			Weight: n, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		}
	}
	tests := map[string]struct {
		state    string
		labels   map[string]string // identity to key=value
		priority *v1beta1.UpdatePriorityStrategy
		scatter  []v1beta1.UpdateScatterTerm
		want     string
	}{
		"without priorities the highest ordinal goes first": {
			state: "0:v1+ 1:v1+ 2:v1+",
			want:  "2 1 0",
		},
		"the greater weight goes first, and weights add up": {
			state:  "0:v1+ 1:v1+ 2:v1+ 3:v1+",
			labels: map[string]string{"0": "zone=a", "1": "zone=b", "2": "zone=a,role=spare"},
			priority: &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{
				weight(10, "zone", "a"), weight(5, "role", "spare"), weight(20, "zone", "b"),
			}},
			want: "1 2 0 3",
		},
		"the greater trailing number goes first, pods without one last": {
			state:    "0:v1+ 1:v1+ 2:v1+ 3:v1+ 4:v1+",
			labels:   map[string]string{"0": "wave=w-9", "1": "wave=w-010", "2": "wave=none", "4": "wave=w-2"},
			priority: &v1beta1.UpdatePriorityStrategy{OrderPriority: []v1beta1.UpdatePriorityOrderTerm{{OrderedKey: "wave"}}},
			want:     "1 0 4 3 2",
		},
		"zero is a number": {
			state:    "0:v1+ 1:v1+ 2:v1+",
			labels:   map[string]string{"0": "wave=w-0", "1": "wave=w"},
			priority: &v1beta1.UpdatePriorityStrategy{OrderPriority: []v1beta1.UpdatePriorityOrderTerm{{OrderedKey: "wave"}}},
			want:     "0 2 1",
		},
		"a broken pod goes before what has the greatest weight": {
			state:  "0:v1. 1:v1+ 2:v1+",
			labels: map[string]string{"1": "zone=a"},
			priority: &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{
				weight(100, "zone", "a"),
			}},
			want: "0 1 2",
		},
		"a stray goes before what has the greatest weight": {
			state:  "0:v0+ 1:v1+ 2:v1+",
			labels: map[string]string{"1": "zone=a"},
			priority: &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{
				weight(100, "zone", "a"),
			}},
			want: "0 1 2",
		},
		"pods that share a label are spread": {
			state:   "0:v1+ 1:v1+ 2:v1+ 3:v1+ 4:v1+ 5:v1+",
			labels:  map[string]string{"5": "rack=x", "4": "rack=x"},
			scatter: []v1beta1.UpdateScatterTerm{{Key: "rack", Value: "x"}},
			want:    "3 5 2 4 1 0",
		},
		"several labels are spread alike": {
			state:   "0:v1+ 1:v1+ 2:v1+ 3:v1+ 4:v1+ 5:v1+",
			labels:  map[string]string{"5": "rack=x", "4": "rack=x", "3": "rack=y", "2": "rack=y"},
			scatter: []v1beta1.UpdateScatterTerm{{Key: "rack", Value: "x"}, {Key: "rack", Value: "y"}},
			want:    "5 3 4 2 1 0",
		},
		"a pod that shares none moves behind one that comes earlier": {
			state:   "0:v1+ 1:v1+ 2:v1+ 3:v1+ 4:v1+ 5:v1+",
			labels:  map[string]string{"0": "rack=x"},
			scatter: []v1beta1.UpdateScatterTerm{{Key: "rack", Value: "x"}},
			want:    "5 4 0 3 2 1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse("ordinal R=10 mu=10 v1>v2", tt.state)
			snap.Limits.Replicas = len(snap.Replicas)
			for i := range snap.Replicas {
				snap.Replicas[i].Pod.Labels = parseLabels(tt.labels[snap.Replicas[i].ID])
			}
			snap.Spec.UpdateStrategy.RollingUpdate.PriorityStrategy = tt.priority
			snap.Spec.UpdateStrategy.RollingUpdate.ScatterStrategy = tt.scatter
			var err error
			if snap.Priorities, err = snapshot.ResolvePriorities(snap.Spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, deleted(update.Plan(snap, desired.Of(snap), action.Plan{}))); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScatterStepByStep moves one pod at a time, as maxUnavailable 1 does: each plan sees only the pods that are left. While
// there are at least as many others, no two named pods move in a row, whichever pods are named.
func TestScatterStepByStep(t *testing.T) {
	t.Parallel()
	for named := range 1 << 6 {
		if bits.OnesCount(uint(named)) > 3 {
			continue
		}
		var order strings.Builder
		gone := 0
		for range 6 {
			var state []string
			for i := range 6 {
				state = append(state, fmt.Sprintf("%d:v%d+", i, 1+gone>>i&1))
			}
			snap := snapshottest.Parse("ordinal R=6 mu=1 v1>v2", strings.Join(state, " "))
			for i := range snap.Replicas {
				snap.Replicas[i].Pod.Labels = map[string]string{"rack": strconv.Itoa(named >> i & 1)}
			}
			snap.Spec.UpdateStrategy.RollingUpdate.ScatterStrategy = []v1beta1.UpdateScatterTerm{{Key: "rack", Value: "1"}}
			var err error
			if snap.Priorities, err = snapshot.ResolvePriorities(snap.Spec); err != nil {
				t.Fatal(err)
			}
			next, err := strconv.Atoi(deleted(update.Plan(snap, desired.Of(snap), action.Plan{})))
			if err != nil {
				t.Fatal(err)
			}
			gone |= 1 << next
			order.WriteString(strconv.Itoa(named >> next & 1))
		}
		if strings.Contains(order.String(), "11") {
			t.Errorf("named pods %06b go in the order %s: two in a row", named, order.String())
		}
	}
}

func parseLabels(s string) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(s, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[key] = value
		}
	}
	return labels
}

// deleted lists the identities that a plan deletes, in its order.
func deleted(p action.Plan) string {
	var ids []string
	for _, a := range p.Actions {
		if d, ok := a.(action.Delete); ok {
			ids = append(ids, strings.TrimPrefix(d.Pod.Name, "web-"))
		}
	}
	return strings.Join(ids, " ")
}
