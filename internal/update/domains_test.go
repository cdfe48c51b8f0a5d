// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/scale"
	"rollset.dev/rollset/internal/update"
)

// scaled returns what scaling does to a set.
func scaled(o *snapshot.Set, w *desired.State) action.Plan {
	p := scale.Down(o, w)
	p.Join(scale.Up(o, w, p))
	return p
}

func TestDomains(t *testing.T) {
	t.Parallel()
	const (
		six    = "ordinal R=6 mu=2 soak=0 v1>v2"
		random = "random R=6 mu=2 soak=0 v1>v2"
	)
	tests := map[string]struct {
		config, state string
		// young are pods that became ready a minute ago or, without a node, replace others.
		young string
		want  string
	}{
		"the first by name begins, and may use the whole budget": {
			config: six, state: "b/0:v1+ a/1:v1+ b/2:v1+ a/3:v1+ b/4:v1+ a/5:v1+",
			want: "delete 5, delete 3, 4: zone b waits for zone a; zone a: 0 of 3 pods moved, zone b: 0 of 3 pods moved",
		},
		"what has begun is finished first": {
			config: six, state: "a/0:v1+ b/1:v1+ a/2:v1+ b/3:v1+ a/4:v1+ b/5:v2+",
			want: "delete 3, delete 1, 4: zone a waits for zone b; zone b: 1 of 3 pods moved, zone a: 0 of 3 pods moved",
		},
		"the one that has come furthest comes first": {
			config: "ordinal R=7 mu=1 soak=0 v1>v2", state: "a/0:v1+ a/1:v1+ a/2:v2+ b/3:v1+ b/4:v2+ b/5:v2+ b/6:v2+",
			want: "delete 3, 1: zone a waits for zone b; zone b: 3 of 4 pods moved, zone a: 1 of 3 pods moved",
		},
		"an unavailable pod holds the other domains": {
			config: six, state: "a/0:v2+ b/1:v1+ a/2:v2. b/3:v1+ a/4:v2+ b/5:v1+",
			want: "5: zone b waits for web-2 in zone a, which is not available; zone a: 3 of 3 pods moved, zone b: 0 of 3 pods moved",
		},
		"whoever is to blame": {
			config: six + " p=2", state: "a/0:v1. b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v1+",
			want: "5: zone b waits for web-0 in zone a, which is not available; zone a: 2 of 2 pods moved, zone b: 0 of 2 pods moved",
		},
		"so does a terminating one": {
			config: six, state: "a/0:v2+ b/1:v1+ a/2:v1x b/3:v1+ a/4:v2+ b/5:v1+",
			want: "5: zone b waits for web-2 in zone a, which is terminating; zone a: 2 of 2 pods moved, zone b: 0 of 3 pods moved",
		},
		"and one that has ended": {
			config: six, state: "a/0:v2+ b/1:v1+ a/2:v2! b/3:v1+ a/4:v2+ b/5:v1+",
			want: "5: zone b waits for web-2 in zone a, which has ended; zone a: 2 of 2 pods moved, zone b: 0 of 3 pods moved",
		},
		"not the domain of that pod": {
			config: six, state: "a/0:v1+ b/1:v1+ a/2:v2. b/3:v1+ a/4:v1+ b/5:v1+",
			want: "delete 4, 5: zone b waits for zone a; zone a: 1 of 3 pods moved, zone b: 0 of 3 pods moved",
		},
		"the domain in turn waits too": {
			config: six, state: "a/0:v1+ b/1:v1+ a/2:v1+ b/3:v1+ a/4:v2+ b/5:v2.",
			want: "2: zone a waits for web-5 in zone b, which is not available; zone a: 1 of 3 pods moved, zone b: 1 of 3 pods moved",
		},
		"broken pods are replaced anywhere": {
			config: "ordinal R=6 mu=3 soak=0 v1>v2", state: "a/0:v1, b/1:v1+ a/2:v1+ b/3:v1, a/4:v1+ b/5:v1+",
			want: "delete 3, delete 0, 4: zone a waits for web-3 in zone b, which is not available; zone a: 0 of 3 pods moved, zone b: 0 of 3 pods moved",
		},
		"pods that are ready but not available are not broken": {
			config: six, state: "a/0:v1+ b/1:v1r a/2:v1+ b/3:v1+ a/4:v1r b/5:v1+",
			want: "4: zone a waits for web-1 in zone b, which is not available; zone a: 0 of 3 pods moved, zone b: 0 of 3 pods moved",
		},
		"a pod without the label is a domain of its own": {
			config: six, state: "0:v1+ b/1:v1+ b/2:v2+ 3:v1+ b/4:v2+ b/5:v2+",
			want: "delete 1, 0: web-0 without a zone waits for zone b; zone b: 3 of 4 pods moved, web-0 without a zone: 0 of 1 pods moved, web-3 without a zone: 0 of 1 pods moved",
		},
		"labels are missing everywhere": {
			config: "ordinal R=2 mu=2 soak=0 v1>v2", state: "0:v1+ 1:v1+",
			want: "delete 0, 1: web-1 without a zone waits for web-0 without a zone; web-0 without a zone: 0 of 1 pods moved, web-1 without a zone: 0 of 1 pods moved; no pod has the label topology.kubernetes.io/zone, so each is a domain of its own",
		},
		"many domains are counted": {
			config: "ordinal R=10 mu=1 soak=0 v1>v2", state: "a/0:v1+ b/1:v1+ c/2:v1+ d/3:v1+ e/4:v1+ f/5:v1+ g/6:v1+ h/7:v1+ i/8:v1+ j/9:v1+",
			want: "delete 0, 1: zone b waits for zone a; zone a: 0 of 1 pods moved, zone b: 0 of 1 pods moved, zone c: 0 of 1 pods moved, " +
				"zone d: 0 of 1 pods moved, zone e: 0 of 1 pods moved, zone f: 0 of 1 pods moved, zone g: 0 of 1 pods moved, zone h: 0 of 1 pods moved, and 2 more",
		},
		"a pod on its way to a node keeps another domain from beginning": {
			config: six, state: "?/0:v2. b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v1+", young: "0",
			want: "5: zone b waits for web-0, which has no node yet; zone a: 2 of 2 pods moved, zone b: 0 of 3 pods moved",
		},
		"so does one that is missing": {
			config: six, state: "b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v1+",
			want: "5: zone b waits for web-0, which has no pod; zone a: 2 of 2 pods moved, zone b: 0 of 3 pods moved",
		},
		"one that is added to the set does not": {
			config: six, state: "?/0:v2. b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v1+",
			want: "delete 5",
		},
		"nor does a place that is added": {
			config: six, state: "a/0:v2+ b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+",
			want: "delete 3",
		},
		"it does not keep one from going on": {
			config: six, state: "?/0:v2. b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v2+", young: "0",
			want: "delete 3",
		},
		"one without a node to go to holds the others too": {
			config: six, state: "!/0:v2. b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v1+", young: "0",
			want: "5: zone b waits for web-0, which has no node yet; zone a: 2 of 2 pods moved, zone b: 0 of 3 pods moved",
		},
		"a terminating pod with a successor is not counted": {
			config: random, state: "a/a:v2+ b/b:v1+ a/c:v1x b/d:v1+ a/e:v2+ b/f:v1+ a/g:v2+",
			want: "delete f, delete d",
		},
		"of terminating pods the last deleted are counted": {
			config: random, state: "b/b:v1+ c/x:v1X a/c:v1x b/d:v1+ a/e:v2+ b/f:v1+ a/g:v2+ !/h:v2.",
			want: "f: zone b waits for web-c in zone a, which is terminating; zone a: 2 of 2 pods moved, zone b: 0 of 3 pods moved",
		},
		"surge that starts is not counted": {
			config: "random R=3 mu=1 surge=1 soak=0 v1>v2", state: "a/a:v1+ b/b:v1+ c/c:v1+ c/d:v2.",
			want: "delete a, b: zone b waits for zone a; zone a: 0 of 1 pods moved, zone b: 0 of 1 pods moved, zone c: 0 of 1 pods moved",
		},
		"nor is surge that will be deleted again": {
			config: "random R=3 mu=1 surge=1 claims soak=0 v1>v2", state: "a/a:v1+$ b/b:v1+$ c/c:v1+$ c/d:v2.$*",
			want: "delete a, b: zone b waits for zone a; zone a: 0 of 1 pods moved, zone b: 0 of 1 pods moved, zone c: 0 of 1 pods moved",
		},
		"a rollback goes by domains": {
			config: six + " rejected", state: "a/0:v2+ b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v2+",
			want: "delete 5, 4: zone a waits for zone b; zone b: 2 of 3 pods moved, zone a: 0 of 3 pods moved",
		},
		"so do replacements that a user asks for": {
			config: "ordinal R=4 mu=2 soak=0 v1", state: "a/0:v1+@ b/1:v1+@ a/2:v1+@ b/3:v1+",
			want: "delete 2, delete 0, 1: zone b waits for zone a; zone a: 2 to replace, zone b: 1 to replace",
		},
		"also in a pause": {
			config: "ordinal R=4 mu=2 soak=0 paused v1>v2", state: "a/0:v1+@ b/1:v1+@ a/2:v1+ b/3:v1+",
			want: "delete 0, 1: zone b waits for zone a; zone a: 1 to replace, zone b: 1 to replace",
		},
		"the next domain soaks": {
			config: "ordinal R=4 mu=2 soak=300 v1>v2", state: "a/0:v2+ b/1:v1+ a/2:v2+ b/3:v1+", young: "2",
			want: "3: zone b waits for soakSeconds to pass until 03:08:05Z; zone a: 2 of 2 pods moved, zone b: 0 of 2 pods moved, wakes in 4m0s",
		},
		"until it has soaked": {
			config: "ordinal R=4 mu=2 soak=60 v1>v2", state: "a/0:v2+ b/1:v1+ a/2:v2+ b/3:v1+", young: "2",
			want: "delete 3, delete 1",
		},
		"one that has begun does not soak": {
			config: "ordinal R=4 mu=2 soak=300 v1>v2", state: "a/0:v2+ b/1:v1+ a/2:v2+ b/3:v2+", young: "2",
			want: "delete 1",
		},
		"the first does not soak": {
			config: "ordinal R=4 mu=1 soak=300 v1>v2", state: "a/0:v1+ b/1:v1+ a/2:v1+ b/3:v1+", young: "0 1 2 3",
			want: "delete 2, 3: zone b waits for zone a; zone a: 0 of 2 pods moved, zone b: 0 of 2 pods moved",
		},
		"a soak to another day has its date": {
			config: "ordinal R=2 mu=1 soak=86400 v1>v2", state: "a/0:v2+ b/1:v1+",
			want: "1: zone b waits for soakSeconds to pass until 2026-01-03T02:04:05Z; zone a: 1 of 1 pods moved, zone b: 0 of 1 pods moved, wakes in 23h0m0s",
		},
		"the partition ends it": {
			config: "random R=6 mu=2 p=3 soak=0 v1>v2", state: "a/a:v2+ b/b:v1+ a/c:v2+ b/d:v1+ a/e:v2+ b/f:v1+",
		},
		"Recreate and OnDelete know no domains": {
			config: "ordinal R=2 mu=1 soak=0 recreate v1>v2", state: "a/0:v1+ b/1:v1+",
			want: "delete 1, delete 0",
		},
		"when nothing is available the guard yields everywhere": {
			config: "random R=3 mu=1 soak=0 v1>v2", state: "a/a:v1, b/b:v1, c/c:v2,",
			want: "delete b, delete a",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := snapshottest.Parse(tt.config, tt.state)
			for i := range o.Replicas {
				switch r := &o.Replicas[i]; {
				case !strings.Contains(tt.young, r.ID):
				case r.Node == "":
					unknown := snapshot.Origin{Revision: r.Revision}
					r.Pod.Annotations = map[string]string{v1alpha1.OriginAnnotation: unknown.String(snapshottest.Zone)}
				default:
					r.ReadySince = o.Now.Add(-time.Minute)
				}
			}
			w := desired.Of(o)
			p := update.Plan(o, w, scaled(o, w))
			if diff := cmp.Diff(tt.want, summary(p)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.config, tt.state, diff)
			}
		})
	}
}

// summary returns the deletions of a plan, its hold for a domain, and when it wants to look again.
func summary(p action.Plan) string {
	var words []string
	for _, a := range p.Actions {
		if d, ok := a.(action.Delete); ok {
			words = append(words, "delete "+strings.TrimPrefix(d.Pod.Name, "web-"))
		}
	}
	for _, h := range p.Held {
		if h.Kind == action.HeldByDomain {
			words = append(words, strings.TrimPrefix(h.Subject, "web-")+": "+h.Reason)
		}
	}
	if !p.SoaksUntil.IsZero() {
		words = append(words, "wakes in "+p.RequeueAfter.String())
	}
	return strings.Join(words, ", ")
}

// TestSoakCountsRestarts restarts a container of an updated pod, which keeps its readiness.
func TestSoakCountsRestarts(t *testing.T) {
	t.Parallel()
	o := snapshottest.Parse("ordinal R=2 mu=1 soak=300 v1>v2", "a/0:v2+ b/1:v1+")
	started := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(o.Now.Add(-time.Minute))}}
	o.Replicas[0].Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: started}}
	p := update.Plan(o, desired.Of(o), action.Plan{})
	if want := o.Now.Add(4 * time.Minute); !p.SoaksUntil.Equal(want) {
		t.Errorf("soaks until %s, want %s", p.SoaksUntil, want)
	}
}
