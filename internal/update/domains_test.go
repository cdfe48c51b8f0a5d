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

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/scale"
	"rollset.dev/rollset/internal/update"
)

// scaled returns what scaling does to a set.
func scaled(snap *snapshot.Set, w *desired.State) action.Plan {
	p := scale.Down(snap, w)
	p.Join(scale.Up(snap, w, p))
	return p
}

func TestDomains(t *testing.T) {
	t.Parallel()
	const (
		six    = "ordinal R=6 mu=2 soak=0 v1>v2"
		four   = "ordinal R=4 mu=1 soak=0 v1>v2"
		random = "random R=6 mu=2 soak=0 v1>v2"
	)
	tests := map[string]struct {
		config, state string
		// young are pods that became ready a minute ago or, without a node, replace others.
		young string
		// origins are what pods were created for. waiting are those that are changed in place, refused those that cannot be deleted.
		origins          map[string]snapshot.Origin
		waiting, refused string
		want             string
	}{
		"the first by name begins, and may use the whole budget": {
			config: six, state: "b/0:v1+ a/1:v1+ b/2:v1+ a/3:v1+ b/4:v1+ a/5:v1+",
			want: "delete 5, delete 3, 4: zone b waits for zone a; zone a: 0 of 3 pods moved, zone b: 0 of 3 pods moved",
		},
		"what has begun is finished first": {
			config: six, state: "a/0:v1+ b/1:v1+ a/2:v1+ b/3:v1+ a/4:v1+ b/5:v2+",
			want: "delete 3, delete 1, 4: zone a waits for zone b; zone b: 1 of 3 pods moved, zone a: 0 of 3 pods moved",
		},
		"a pod that is scaled down holds none": {
			config: "ordinal R=2 mu=1 soak=0 v1>v2", state: "a/0:v1+ a/1:v1+ b/2:v1x", want: "delete 1",
		},
		"one whose last pod cannot be deleted holds none": {
			config: "ordinal R=4 mu=1 soak=0 v1>v2", state: "a/0:v1+ b/1:v1+ a/2:v2+ b/3:v1+", refused: "0", want: "delete 3",
		},
		"the one that has come furthest comes first": {
			config: "ordinal R=7 mu=1 soak=0 v1>v2", state: "a/0:v1+ a/1:v1+ a/2:v2+ b/3:v1+ b/4:v2+ b/5:v2+ b/6:v2+",
			want: "delete 3, 1: zone a waits for zone b; zone b: 3 of 4 pods moved, zone a: 1 of 3 pods moved",
		},
		"a pod that is replaced holds no others of its domain": {
			config: "random R=4 reached=4 mu=2 soak=0 v1>v2", state: "a/a:v1x a/b:v1+ b/c:v1+ b/d:v1+",
			want: "delete b, d: zone b waits for zone a; zone a: 0 of 1 pods moved, zone b: 0 of 2 pods moved",
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
		"a pod that is changed in place holds the other domains": {
			config: six, state: "a/0:v2+ b/1:v1+ a/2:v2+ b/3:v1+ a/4:v2+ b/5:v1+", waiting: "2",
			want: "5: zone b waits for web-2 in zone a, which is being changed in place; zone a: 3 of 3 pods moved, zone b: 0 of 3 pods moved",
		},
		"a pod that cannot be deleted has not moved": {
			config: four, state: "b/0:v1+ a/1:v0+ b/2:v0+ a/3:v0+", refused: "0",
			want: "delete 3, 2: zone b waits for zone a; zone a: 0 of 2 pods moved, zone b: 0 of 1 pods moved",
		},
		"a pod has moved in the domain of the one that it replaces": {
			config: four, state: "c/0:v2+ b/1:v1+ a/2:v1+ b/3:v1+", origins: map[string]snapshot.Origin{"0": {Revision: "v2", Known: true, Domain: snapshot.Domain{Value: "b"}}},
			want: "delete 3, 2: zone a waits for zone b; zone b: 1 of 3 pods moved, zone a: 0 of 1 pods moved",
		},
		"in its own if that is not known": {
			config: four, state: "b/0:v2+ b/1:v1+ a/2:v1+ b/3:v1+", origins: map[string]snapshot.Origin{"0": {Revision: "v2"}},
			want: "delete 3, 2: zone a waits for zone b; zone b: 1 of 3 pods moved, zone a: 0 of 1 pods moved",
		},
		"as soon as it is available there: until then it holds all": {
			config: six, state: "b/0:v2. b/1:v1+ a/2:v1+ b/3:v1+ a/4:v1+ a/5:v1+", origins: map[string]snapshot.Origin{"0": {Revision: "v2"}},
			want: "5: zone a waits for web-0, which is not available; zone a: 0 of 3 pods moved, zone b: 0 of 2 pods moved",
		},
		"nowhere if it was added to the set": {
			config: four, state: "b/0:v2+ b/1:v1+ a/2:v1+ b/3:v1+", origins: map[string]snapshot.Origin{"0": {Revision: "v2", Added: true}},
			want: "delete 2, 3: zone b waits for zone a; zone a: 0 of 1 pods moved, zone b: 0 of 2 pods moved",
		},
		"unless it was changed in place since": {
			config: four, state: "b/0:v2+ b/1:v1+ a/2:v1+ b/3:v1+", origins: map[string]snapshot.Origin{"0": {Revision: "v1", Added: true}},
			want: "delete 3, 2: zone a waits for zone b; zone b: 1 of 3 pods moved, zone a: 0 of 1 pods moved",
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
		"of the pods of a domain the last one counts": {
			config: "ordinal R=4 mu=2 soak=300 v1>v2", state: "a/0:v2+ b/1:v1+ a/2:v2+ b/3:v1+", young: "0",
			want: "3: zone b waits for soakSeconds to pass until 03:08:05Z; zone a: 2 of 2 pods moved, zone b: 0 of 2 pods moved, wakes in 4m0s",
		},
		"between replacements at one revision too": {
			config: "ordinal R=2 mu=1 soak=300 v1", state: "a/0:v1+ b/1:v1+@", young: "0", origins: map[string]snapshot.Origin{"0": {Revision: "v1", Known: true, Domain: snapshot.Domain{Value: "a"}}},
			want: "1: zone b waits for soakSeconds to pass until 03:08:05Z; zone b: 1 to replace, wakes in 4m0s",
		},
		"where nobody knows which domain has begun": {
			config: "ordinal R=3 mu=1 soak=300 v1", state: "a/0:v1+ b/1:v1+ b/2:v1+@", young: "0 1",
			origins: map[string]snapshot.Origin{
				"0": {Revision: "v1", Known: true, Domain: snapshot.Domain{Value: "a"}}, "1": {Revision: "v1", Known: true, Domain: snapshot.Domain{Value: "b"}},
			},
			want: "2: zone b waits for soakSeconds to pass until 03:08:05Z; zone b: 1 to replace, wakes in 4m0s",
		},
		"the one that soaks comes first": {
			config: "ordinal R=4 mu=1 soak=300 v1", state: "a/0:v1+@ a/1:v1+ b/2:v1+@ b/3:v1+", young: "3",
			origins: map[string]snapshot.Origin{"3": {Revision: "v1", Known: true, Domain: snapshot.Domain{Value: "b"}}},
			want:    "delete 2, 0: zone a waits for zone b; zone b: 1 to replace, zone a: 1 to replace",
		},
		"and not once it has soaked": {
			config: "ordinal R=4 mu=1 soak=30 v1", state: "a/0:v1+@ a/1:v1+ b/2:v1+@ b/3:v1+", young: "3",
			origins: map[string]snapshot.Origin{"3": {Revision: "v1", Known: true, Domain: snapshot.Domain{Value: "b"}}},
			want:    "delete 0, 2: zone b waits for zone a; zone a: 1 to replace, zone b: 1 to replace",
		},
		"a soak to another day has its date": {
			config: "ordinal R=2 mu=1 soak=86400 v1>v2", state: "a/0:v2+ b/1:v1+",
			want: "1: zone b waits for soakSeconds to pass until 2026-01-03T02:04:05Z; zone a: 1 of 1 pods moved, zone b: 0 of 1 pods moved, wakes in 23h0m0s",
		},
		"the newest of the unavailable pods stand in for others": {
			config: "random R=3 mu=1 surge=1 soak=0 v1>v2", state: "a/a:v1+ b/b:v1+ a/x:v2. b/y:v2.",
			want: "b: zone b waits for zone a; zone a: 1 of 2 pods moved, zone b: 0 of 1 pods moved",
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
			snap := snapshottest.Parse(tt.config, tt.state)
			snap.Refusals = map[attempt.Key]snapshot.Refusal{}
			for i := range snap.Replicas {
				r := &snap.Replicas[i]
				if origin, ok := tt.origins[r.ID]; ok {
					r.Pod.Annotations = map[string]string{v1beta1.OriginAnnotation: origin.String(snapshottest.Zone)}
				}
				if strings.Contains(tt.waiting, r.ID) {
					r.Waiting = "container app is to be resized"
				}
				if strings.Contains(tt.refused, r.ID) {
					snap.Refusals[attempt.OfPod(attempt.Deleting, r.Pod)] = snapshot.Refusal{Message: "no", Retry: time.Minute}
				}
				switch {
				case !strings.Contains(tt.young, r.ID):
				case r.Node == "":
					unknown := snapshot.Origin{Revision: r.Revision}
					r.Pod.Annotations = map[string]string{v1beta1.OriginAnnotation: unknown.String(snapshottest.Zone)}
				default:
					r.ReadySince = snap.Now.Add(-time.Minute)
				}
			}
			w := desired.Of(snap)
			p := update.Plan(snap, w, scaled(snap, w))
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

// TestSoakCountsRestarts restarts a container of an updated pod, which keeps its readiness. A clock that is ahead says nothing.
func TestSoakCountsRestarts(t *testing.T) {
	t.Parallel()
	for started, want := range map[time.Duration]string{
		-time.Minute: "1: zone b waits for soakSeconds to pass until 03:08:05Z; zone a: 1 of 1 pods moved, zone b: 0 of 1 pods moved, wakes in 4m0s",
		time.Hour:    "delete 1",
	} {
		snap := snapshottest.Parse("ordinal R=2 mu=1 soak=300 v1>v2", "a/0:v2+ b/1:v1+")
		running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(snap.Now.Add(started))}
		snap.Replicas[0].Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: running}}}
		if diff := cmp.Diff(want, summary(update.Plan(snap, desired.Of(snap), action.Plan{}))); diff != "" {
			t.Errorf("started in %s (-want +got):\n%s", started, diff)
		}
	}
}

// TestSoakOfOtherDomains has a pod that replaced one when domains were others: it did not move between these.
func TestSoakOfOtherDomains(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal R=2 mu=1 soak=300 v1", "a/0:v1+ b/1:v1+@")
	snap.Replicas[0].ReadySince = snap.Now.Add(-time.Minute)
	snap.Replicas[0].Pod.Annotations = map[string]string{v1beta1.OriginAnnotation: "v1 rack=r"}
	w := desired.Of(snap)
	p := update.Plan(snap, w, scaled(snap, w))
	if got := summary(p); got != "delete 1" {
		t.Errorf("plan is %s", got)
	}
}

// TestUnansweredDeleteHoldsOthers moves no pod while one of another zone may be deleted already, unless that is surge.
func TestUnansweredDeleteHoldsOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config, state string
		unanswered    int
		unsettled     bool
		want          string
	}{
		{"ordinal R=2 mu=2 soak=0 v1>v2", "a/0:v2+ b/1:v1+", 0, false, "delete 1"},
		{"random R=2 mu=2 surge=1 claims soak=0 v1>v2", "a/a:v2+$ b/b:v1+$ a/c:v2+$*", 2, true, "delete b"},
		{
			"ordinal R=2 mu=2 soak=0 v1>v2", "a/0:v2+ b/1:v1+", 0, true,
			"1: zone b waits for web-0 in zone a, which may be deleted already: its deletion was not answered; " +
				"zone a: 1 of 1 pods moved, zone b: 0 of 1 pods moved",
		},
	} {
		snap := snapshottest.Parse(tt.config, tt.state)
		k := attempt.OfPod(attempt.Deleting, snap.Replicas[tt.unanswered].Pod)
		snap.Refusals = map[attempt.Key]snapshot.Refusal{k: {Message: "no answer", Unsettled: tt.unsettled}}
		if diff := cmp.Diff(tt.want, summary(update.Plan(snap, desired.Of(snap), action.Plan{}))); diff != "" {
			t.Errorf("%s, unsettled %t: (-want +got):\n%s", tt.state, tt.unsettled, diff)
		}
	}
}

// TestOriginate creates pods. Each says what it replaces.
func TestOriginate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, state, want string
		vacated             map[string]snapshot.Domain
		// replaces are the zones of the pods that pods were created for.
		replaces map[string]string
	}{
		"one of a zone that a new pod replaces is replaced too": {
			config: "random R=2 reached=2 soak=0 v1", state: "a/a:v1x ?/b:v1.", replaces: map[string]string{"b": "a"}, want: "v1 zone=a",
		},
		"what was never available inherits its zone": {
			config: "random R=2 reached=2 soak=0 v1", state: "b/a:v1x b/b:v1+", replaces: map[string]string{"a": "a"}, want: "v1 zone=a",
		},
		"one that has its successor comes last": {
			config: "random R=3 reached=3 soak=0 v1", state: "b/b:v1X a/a:v1x ?/c:v1.", replaces: map[string]string{"c": "b"}, want: "v1 zone=a, v1 zone=b",
		},
		"surge that stays replaces a pod of the domain in turn": {
			config: "random R=3 mu=0 surge=1 soak=0 v1>v2", state: "b/a:v1+ a/b:v1+ b/c:v1+", want: "v2 zone=a",
		},
		"surge that is deleted again replaces none": {
			config: "random R=3 mu=0 surge=1 claims soak=0 v1>v2", state: "b/a:v1+$ a/b:v1+$ b/c:v1+$", want: "v2 +",
		},
		"nor does surge for a pod that no node has": {
			config: "random R=1 mu=0 surge=1 soak=0 v1>v2", state: "?/a:v1.", want: "v2 +",
		},
		"nor do pods that are added": {
			config: "random R=4 p=4 soak=0 v1>v2", state: "a/a:v1+ b/b:v2+", want: "v1 +, v1 +",
		},
		"a lost pod is of the domain that has begun": {
			config: "ordinal R=4 reached=4 soak=0 v1>v2", state: "b/0:v2+ a/1:v1+ b/2:v1+", want: "v2 zone=b",
		},
		"if none has nobody knows": {
			config: "ordinal R=4 reached=4 soak=0 v1>v2", state: "a/0:v1+ a/1:v1+ b/2:v1+", want: "v2 zone?",
		},
		"nor if no pod is left": {
			config: "ordinal R=2 reached=2 soak=0 v1", want: "v1 zone?, v1 zone?",
		},
		"a pod that was added does not take the place of one that is gone": {
			config: "random R=4 reached=3 soak=0 v1", state: "a/a:v1+ b/b:v1+ a/new:v1.", want: "v1 zone=c",
			vacated: map[string]snapshot.Domain{"c": {Value: "c"}},
		},
		"an ordinal that was adopted before those below it existed had a pod": {
			config: "ordinal R=4 reached=2 soak=0 v1", state: "a/0:v1+", want: "v1 zone?, v1 +, v1 zone=b",
			vacated: map[string]snapshot.Domain{"3": {Value: "b"}},
		},
		"pods that terminate are replaced in the order of their deletion": {
			config: "random R=3 reached=3 soak=0 v1", state: "b/b:v1x a/a:v1X c/c:v1+", want: "v1 zone=a, v1 zone=b",
		},
		"surge replaces a pod of the next domain once one is done": {
			config: "random R=3 mu=0 surge=1 soak=0 v1>v2", state: "a/a:v2+ b/b:v1+ b/c:v1+", want: "v2 zone=b",
		},
		"a pod that terminates for long has its successor": {
			config: "random R=2 reached=2 soak=0 v1", state: "a/a:v1X b/b:v1x c/c:v1+", want: "v1 zone=b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse(tt.config, tt.state)
			snap.Vacated = tt.vacated
			for i := range snap.Replicas {
				r := &snap.Replicas[i]
				if zone, ok := tt.replaces[r.ID]; ok {
					origin := snapshot.Origin{Revision: "v1", Domain: snapshot.Domain{Value: zone}, Known: true}
					r.Pod.Annotations = map[string]string{v1beta1.OriginAnnotation: origin.String(snapshottest.Zone)}
				}
			}
			w := desired.Of(snap)
			p := scaled(snap, w)
			update.Originate(snap, w, &p)
			var origins []string
			for _, a := range p.Actions {
				if created, ok := a.(action.Create); ok {
					origins = append(origins, strings.ReplaceAll(created.Origin, snapshottest.Zone, "zone"))
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(origins, ", ")); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.config, tt.state, diff)
			}
		})
	}
}

// TestPartitionKeepsNoSurplus has a broken pod that goes, because its ordinal is not in use. The partition does not keep it.
func TestPartitionKeepsNoSurplus(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal R=1 start=3 p=1 v1>v2", "0:v1, 3:v1+")
	w := desired.Of(snap)
	if p := update.Plan(snap, w, scaled(snap, w)); len(p.Held) > 0 {
		t.Errorf("plan:\n%s", p.String())
	}
}
