// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// seenPod returns a pod of the set web that has been ready since a number of seconds.
func seenPod(uid, id string, version int, since int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + id, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(since, 0)},
		}},
	}
}

// TestReplicasAreRemembered looks at the pods of a set repeatedly. An unchanged pod is not read again, and what depends on
// the time and the spec is computed at each look.
func TestReplicasAreRemembered(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.MinReadySeconds = 10
	v, memory := &snapshot.Objects{Set: set, Selector: labels.Everything()}, &Memory{}
	look := func(now int64, pods ...*corev1.Pod) (said []string) {
		v.Pods, v.Now = pods, time.Unix(now, 0)
		all := memory.Join(v)
		for i := range all {
			r := &all[i]
			if r.Pod != pods[len(pods)-1-i] {
				t.Errorf("replica %d has another pod than the cache", i)
			}
			if r.Updating || r.Waiting != "" {
				t.Error("what was made of a look was remembered")
			}
			text := r.ID + " since " + strconv.FormatInt(r.ReadySince.Unix(), 10)
			if r.Available {
				text += " available"
			}
			if r.Specified {
				text += " specified"
			}
			said = append(said, text)
			r.Updating, r.Waiting = true, "spoilt" // changes to one look must not appear in the next one
		}
		return said
	}
	set.Spec.ScaleStrategy = &v1beta1.ScaleStrategy{PodsToDelete: []string{"web-ccccc"}}
	for i, c := range []struct {
		now  int64
		pods []*corev1.Pod // in the other order
		want []string
	}{
		{105, []*corev1.Pod{seenPod("2", "ccccc", 8, 90), seenPod("1", "bbbbb", 7, 100)}, []string{"bbbbb since 100", "ccccc since 90 available specified"}},
		{110, []*corev1.Pod{seenPod("2", "ccccc", 8, 999), seenPod("1", "bbbbb", 7, 999)}, []string{"bbbbb since 100 available", "ccccc since 90 available"}},
		{111, []*corev1.Pod{seenPod("2", "ccccc", 9, 111), seenPod("3", "bbbbb", 7, 111)}, []string{"bbbbb since 111", "ccccc since 111"}},
		{122, []*corev1.Pod{seenPod("2", "ccccc", 9, 999)}, []string{"ccccc since 111 available"}},
		{123, []*corev1.Pod{seenPod("2", "ccccc", 9, 999), seenPod("4", "bbbbb", 9, 120)}, []string{"bbbbb since 120", "ccccc since 111 available"}},
	} {
		if diff := cmp.Diff(c.want, look(c.now, c.pods...)); diff != "" {
			t.Errorf("look %d (-want +got):\n%s", i, diff)
		}
		set.Spec.ScaleStrategy = nil
	}
}

// TestClaimsOfNoIdentity joins claims of a set with ordinals. Only one has a name that the set would give.
func TestClaimsOfNoIdentity(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.PodIdentity = v1beta1.OrdinalIdentity
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	o := &snapshot.Objects{Set: set, Selector: labels.Everything()}
	for _, name := range []string{"data-web-07", "data-web-7", "data-web-x", "logs-web-7"} {
		o.Claims = append(o.Claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	foreign := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "logs-web-8", Labels: map[string]string{v1beta1.PodIndexLabel: "8"}}}
	o.Claims = append(o.Claims, foreign) // no set has labeled it
	all := (&Memory{}).Join(o)
	if len(all) != 1 || all[0].ID != "7" || len(all[0].Claims) != 1 {
		t.Errorf("replicas = %v, want 7 with its claim", all)
	}
}

// TestClaimOfALostTemplate joins a claim that has the labels of its pod, and whose template is gone.
func TestClaimOfALostTemplate(t *testing.T) {
	t.Parallel()
	for identity, key := range map[v1beta1.PodIdentity]string{v1beta1.OrdinalIdentity: v1beta1.PodIndexLabel, v1beta1.RandomIdentity: v1beta1.InstanceIDLabel} {
		id := map[v1beta1.PodIdentity]string{v1beta1.OrdinalIdentity: "7", v1beta1.RandomIdentity: "bbbbb"}[identity]
		set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		set.Spec.PodIdentity = identity
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "old-web-" + id, Labels: map[string]string{v1beta1.SetLabel: "web", key: id}}}
		all := (&Memory{}).Join(&snapshot.Objects{Set: set, Selector: labels.Everything(), Claims: []corev1.PersistentVolumeClaim{claim}})
		if len(all) != 1 || all[0].ID != id || len(all[0].Claims) != 1 {
			t.Errorf("%s: replicas = %v, want %s with its claim", identity, all, id)
		}
	}
}

// TestVacated loses a pod. Its failure domain is known until the set divides its pods by another label.
func TestVacated(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]map[string]snapshot.Domain{"zone": {"1": {Value: "b"}}, "rack": {}} {
		set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		set.Spec.Replicas, set.Spec.PodIdentity = new(int32(2)), v1beta1.OrdinalIdentity
		set.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: "zone"}
		stays, goes := seenPod("0", "0", 1, 900), seenPod("1", "1", 1, 900)
		stays.Labels, stays.Spec.NodeName = map[string]string{"app": "web", "zone": "a", "rack": "r"}, "node-0"
		goes.Labels, goes.Spec.NodeName = map[string]string{"app": "web", "zone": "b", "rack": "r"}, "node-1"
		memory := &Memory{}
		lookAgain(memory, set, stays, goes)
		set.Spec.UpdateStrategy.RollingUpdate.Domains.LabelKey = key
		if diff := cmp.Diff(want, lookAgain(memory, set, stays).Vacated); diff != "" {
			t.Errorf("vacated under %s (-want +got):\n%s", key, diff)
		}
	}
}

// TestVacatedOrdinals loses a pod whose ordinal is not in use, and lacks another one.
func TestVacatedOrdinals(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas, set.Spec.PodIdentity = new(int32(2)), v1beta1.OrdinalIdentity
	set.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: "zone"}
	stays, surplus := seenPod("0", "0", 1, 900), seenPod("5", "5", 1, 900)
	for _, pod := range []*corev1.Pod{stays, surplus} {
		pod.Labels, pod.Spec.NodeName = map[string]string{"app": "web", "zone": "a"}, "node"
	}
	memory := &Memory{}
	lookAgain(memory, set, stays, surplus)
	if got := lookAgain(memory, set, stays).Vacated; len(got) > 0 {
		t.Errorf("vacated: %v", got)
	}
}

// TestLastDeletedLeavesThePlace deletes two pods while one is missing. The one that was deleted first has its successor.
func TestLastDeletedLeavesThePlace(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas = new(int32(2))
	set.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: "zone"}
	in := func(id string, deleted int64) *corev1.Pod {
		pod := seenPod(id, id, 1, 900)
		pod.Labels, pod.Spec.NodeName = map[string]string{"app": "web", "zone": id[:1]}, "node"
		if deleted > 0 {
			pod.DeletionTimestamp = new(metav1.Unix(deleted, 0))
		}
		return pod
	}
	memory := &Memory{}
	lookAgain(memory, set, in("bbbbb", 980), in("ccccc", 990), in("ddddd", 0))
	got := lookAgain(memory, set, in("ddddd", 0)).Vacated
	if diff := cmp.Diff(map[string]snapshot.Domain{"ccccc": {Value: "c"}}, got); diff != "" {
		t.Errorf("vacated (-want +got):\n%s", diff)
	}
}

// TestVacatedFirst loses two pods at once, while one is missing. The first by name is always the one that left a place.
func TestVacatedFirst(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas = new(int32(2))
	set.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: "zone"}
	pods := map[string]*corev1.Pod{}
	for _, id := range []string{"bbbbb", "ccccc", "ddddd"} {
		pods[id] = seenPod(id, id, 1, 900)
		pods[id].Labels, pods[id].Spec.NodeName = map[string]string{"app": "web", "zone": id[:1]}, "node"
	}
	for range 20 {
		memory := &Memory{}
		lookAgain(memory, set, pods["bbbbb"], pods["ccccc"])
		got := lookAgain(memory, set, pods["ddddd"]).Vacated
		if diff := cmp.Diff(map[string]snapshot.Domain{"bbbbb": {Value: "b"}}, got); diff != "" {
			t.Fatalf("vacated (-want +got):\n%s", diff)
		}
	}
}

// TestVacatedByOneThatNeverServed loses a pod that was created in another domain than that of its predecessor, at once or when it has
// terminated. Its successor is waited for where the predecessor was.
func TestVacatedByOneThatNeverServed(t *testing.T) {
	t.Parallel()
	for _, terminating := range []bool{false, true} {
		set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		set.Spec.Replicas, set.Spec.PodIdentity = new(int32(1)), v1beta1.OrdinalIdentity
		set.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: "zone"}
		pod := seenPod("0", "0", 1, 900)
		pod.Status.Conditions, pod.Spec.NodeName = nil, "node"
		pod.Labels = map[string]string{"app": "web", "zone": "b", v1beta1.RevisionLabel: "web-1"}
		origin := snapshot.Origin{Revision: "web-1", Known: true, Domain: snapshot.Domain{Value: "a"}}
		pod.Annotations = map[string]string{v1beta1.OriginAnnotation: origin.String("zone")}
		if terminating {
			pod.DeletionTimestamp = new(metav1.Unix(990, 0))
		}
		memory := &Memory{}
		lookAgain(memory, set, pod)
		if got := lookAgain(memory, set).Vacated["0"].Value; got != "a" {
			t.Errorf("terminating %t: vacated in %q, want a", terminating, got)
		}
	}
}

// TestScaledDownLeavesNoPlace loses a pod of a set with random names after a scale-down has deleted another one.
func TestScaledDownLeavesNoPlace(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas = new(int32(2))
	set.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: "zone"}
	in := func(zone, id string) *corev1.Pod {
		pod := seenPod(id, id, 1, 900)
		pod.Labels, pod.Spec.NodeName = map[string]string{"app": "web", "zone": zone, v1beta1.InstanceIDLabel: id}, "node"
		return pod
	}
	surplus := in("a", "bbbbb")
	surplus.DeletionTimestamp = new(metav1.Unix(990, 0))
	memory := &Memory{}
	lookAgain(memory, set, in("a", "aaaaa"), surplus, in("b", "ccccc"))
	for _, pods := range [][]*corev1.Pod{{in("a", "aaaaa"), surplus}, {in("a", "aaaaa")}} {
		want := map[string]snapshot.Domain{"ccccc": {Value: "b"}}
		if diff := cmp.Diff(want, lookAgain(memory, set, pods...).Vacated); diff != "" {
			t.Errorf("vacated with %d pods (-want +got):\n%s", len(pods), diff)
		}
	}
}
