// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/scale"
)

// TestLimit creates pods while others are unavailable. The limit is one such pod.
func TestLimit(t *testing.T) {
	t.Parallel()
	const held = "scaleStrategy.maxUnavailable: 1 pods may be unavailable while pods are created"
	for name, c := range map[string]struct {
		config, state string
		// left is true if the claims of all pods were left behind by a scale-down.
		left bool
		want string
	}{
		"the first pod of a set": {
			config: "ordinal R=3 v1",
			want:   "create 0 at v1 (missing)\nhold web-1 and 1 more: " + held,
		},
		"the next one waits for it": {
			config: "ordinal R=3 v1", state: "0:v1.",
			want: "hold web-1 and 1 more: " + held,
		},
		"a lost pod does not wait": {
			config: "ordinal R=4 reached=4 v1", state: "0:v1. 2:v1. 3:v1+",
			want: "create 1 at v1 (missing)",
		},
		"nor do all that were lost": {
			config: "ordinal R=4 reached=4 v1", state: "3:v1.",
			want: "create 0 at v1 (missing)\ncreate 1 at v1 (missing)\ncreate 2 at v1 (missing)",
		},
		"one that was lost comes back, and no more than there were": {
			config: "ordinal R=4 reached=2 v1", state: "0:v1.",
			want: "create 1 at v1 (missing)\nhold web-2 and 1 more: " + held,
		},
		"the place of a pod that is replaced is not given away": {
			config: "ordinal R=4 reached=3 v1", state: "0:v1. 1:v1x 2:v1+",
			want: "hold web-3: " + held,
		},
		"a pod of a scale-down that is still going holds no place": {
			config: "ordinal R=4 reached=2 v1", state: "1:v1. 2:v1x 3:v1x",
			want: "create 0 at v1 (missing)",
		},
		"and its successor waits": {
			config: "ordinal R=4 reached=2 v1", state: "0:v1. 1:v1+ 3:v1x",
			want: "hold web-2: " + held,
		},
		"a lost pod with a random name does not wait": {
			config: "random R=4 reached=4 v1", state: "a:v1. b:v1. c:v1+",
			want: "create qkmvw at v1 (missing)",
		},
		"nor do pods with claims that are replaced": {
			config: "random claims R=4 reached=3 v1", state: "a:v1.$ b:v1x$ c:-",
			want: "create c at v1 (missing)\nhold web-qkmvw: " + held,
		},
		"a pod with claims of a scale-down that is still going holds no place": {
			config: "random claims R=4 reached=2 v1", state: "a:v1.$ b:v1x$ c:v1x$", left: true,
			want: "create qkmvw at v1 (missing)\nhold web-7w6p2 and 1 more: " + held,
		},
		"an unavailable pod that a user named counts": {
			config: "ordinal R=2 v1", state: "0:v1.@",
			want: "hold web-1: " + held,
		},
		"surge does not wait": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v2.",
			want: "create qkmvw at v2 (surge for update)",
		},
		"a pod that the guard keeps at the current revision counts there": {
			config: "random R=3 surge=1 v1>v2", state: "a:v1+ b:v2.",
			want: "create qkmvw at v1 (missing)\ncreate 7w6p2 at v2 (surge for update)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse("scalemu=1 "+c.config, c.state)
			for i := range snap.Replicas {
				for _, claim := range snap.Replicas[i].Claims {
					claim.Labels = map[string]string{v1beta1.LeftLabel: strconv.FormatBool(c.left)}
				}
			}
			w := desired.Of(snap)
			p := scale.Down(snap, w)
			p.Join(scale.Up(snap, w, p))
			if diff := cmp.Diff(c.want, strings.TrimSpace(p.String())); diff != "" {
				t.Errorf("plan for %q in %q (-want +got):\n%s", c.state, c.config, diff)
			}
		})
	}
}
