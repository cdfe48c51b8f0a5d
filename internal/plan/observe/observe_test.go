// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
)

// words describes a replica of a snapshot.
func words(r *snapshot.Replica) string {
	var said []string
	for _, w := range []struct {
		is   bool
		word string
	}{
		{r.Active(), "active"},
		{r.Ready, "ready"},
		{r.Available, "available"},
		{r.Updating, "updating"},
		{r.Specified, "specified"},
		{r.Surge, "surge"},
		{r.Withdrawn, "withdrawn"},
	} {
		if w.is {
			said = append(said, w.word)
		}
	}
	return strings.Join(said, " ")
}

// look takes the snapshot of a set of some pods at second 1000.
func look(set *v1beta1.RollSet, pods ...*corev1.Pod) *snapshot.Set {
	return lookAgain(&Memory{}, set, pods...)
}

// lookAgain takes a snapshot with what earlier ones have left in memory.
func lookAgain(memory *Memory, set *v1beta1.RollSet, pods ...*corev1.Pod) *snapshot.Set {
	o := &snapshot.Objects{Set: set, Selector: labels.SelectorFromSet(labels.Set{"app": "web"}), Pods: pods, Now: time.Unix(1000, 0)}
	return Snapshot(Input{
		Objects: o, Numbers: snapshot.Numbers{Limits: snapshot.Limits{Replicas: replicasOf(set)}}, Replicas: memory.Join(o),
		Sighting: func(types.UID) inplace.Sighting { return inplace.Sighting{} },
	}, memory)
}

// replicasOf returns spec.replicas; 0 if it is not set.
func replicasOf(set *v1beta1.RollSet) int {
	if set.Spec.Replicas == nil {
		return 0
	}
	return int(*set.Spec.Replicas)
}

// TestOrphansUseTheirRevision keeps the revision of a pod that the set is about to adopt, so that the pod can be changed in place.
func TestOrphansUseTheirRevision(t *testing.T) {
	t.Parallel()
	orphan := seenPod("1", "aaaaa", 1, 900)
	orphan.Labels = map[string]string{v1beta1.RevisionLabel: "web-old"}
	in := (&Memory{}).RevisionInput(&snapshot.Objects{Set: &v1beta1.RollSet{}, Orphans: []*corev1.Pod{orphan}}, nil)
	if !in.Used.Has("web-old") {
		t.Errorf("revisions in use: %v", in.Used)
	}
}

// TestStateOfAPodThatEnds has a pod that a lifecycle hook prepares, until it is deleted. Once it has ended it is not updated any longer.
func TestStateOfAPodThatEnds(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas = new(int32(1))
	set.Spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: &v1beta1.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "on"}}}
	for name, tt := range map[string]struct {
		change   func(*corev1.Pod)
		state    v1beta1.LifecycleState
		updating bool
	}{
		"it runs":       {func(*corev1.Pod) {}, v1beta1.LifecyclePreparingDelete, true},
		"it has ended":  {func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, v1beta1.LifecyclePreparingDelete, false},
		"it is deleted": {func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Unix(990, 0)) }, "", false},
	} {
		pod := seenPod("1", "aaaaa", 1, 900)
		pod.Labels = map[string]string{"app": "web", v1beta1.LifecycleStateLabel: string(v1beta1.LifecyclePreparingDelete)}
		tt.change(pod)
		if r := lookAgain(&Memory{}, set, pod).Replicas[0]; r.State != tt.state || r.Updating != tt.updating {
			t.Errorf("%s: state is %q, updating %t", name, r.State, r.Updating)
		}
	}
}

// TestResolveFails resolves specs that cannot be understood.
func TestResolveFails(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*v1beta1.RollSetSpec){
		"fewer than no replicas": func(spec *v1beta1.RollSetSpec) { spec.Replicas = new(int32(-1)) },
		"a selector without an operator": func(spec *v1beta1.RollSetSpec) {
			spec.UpdateStrategy.RollingUpdate.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{
				MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "none"}}},
			}}}
		},
		"an ordinal that is none": func(spec *v1beta1.RollSetSpec) {
			spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromString("none")}
		},
	} {
		spec := &v1beta1.RollSetSpec{}
		edit(spec)
		if _, err := Resolve(spec); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPodsToComeUseTheirRevision keeps the revision of a pod that is gone and that a pause replaces at its own revision. Without a pause no
// pod comes at it.
func TestPodsToComeUseTheirRevision(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{true, false} {
		set := &v1beta1.RollSet{}
		set.Spec.UpdateStrategy.RollingUpdate.Paused = paused
		in := (&Memory{replacing: map[string]string{"aaaaa": "web-old"}}).RevisionInput(&snapshot.Objects{Set: set}, nil)
		if in.Used.Has("web-old") != paused {
			t.Errorf("paused %t: revisions in use: %v", paused, in.Used)
		}
	}
}

// TestWhatAPodCountsAs takes a pod that has been ready for 100 seconds, and changes one thing.
func TestWhatAPodCountsAs(t *testing.T) {
	t.Parallel()
	label := func(key, value string) func(*v1beta1.RollSet, *corev1.Pod) {
		return func(_ *v1beta1.RollSet, pod *corev1.Pod) { pod.Labels[key] = value }
	}
	preparingDelete := func(set *v1beta1.RollSet, pod *corev1.Pod) {
		set.Spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: &v1beta1.LifecycleHook{
			LabelsHandler: map[string]string{"example.com/drain": "wanted"}, MarkPodNotReady: true,
		}}
		pod.Labels["example.com/drain"] = "wanted"
		pod.Labels[v1beta1.LifecycleStateLabel] = string(v1beta1.LifecyclePreparingDelete)
	}
	gate := func(status corev1.ConditionStatus) func(*v1beta1.RollSet, *corev1.Pod) {
		return func(_ *v1beta1.RollSet, pod *corev1.Pod) {
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}}
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: v1beta1.InPlaceUpdateReady, Status: status})
		}
	}
	tests := map[string]struct {
		change func(*v1beta1.RollSet, *corev1.Pod)
		want   string
	}{
		"nothing": {func(*v1beta1.RollSet, *corev1.Pod) {}, "active ready available"},
		"it was ready for exactly minReadySeconds": {
			func(set *v1beta1.RollSet, _ *corev1.Pod) { set.Spec.MinReadySeconds = 100 }, "active ready available",
		},
		"it must be ready for longer": {func(set *v1beta1.RollSet, _ *corev1.Pod) { set.Spec.MinReadySeconds = 101 }, "active ready"},
		"it is not ready": {
			func(_ *v1beta1.RollSet, pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }, "active",
		},
		"it terminates": {func(_ *v1beta1.RollSet, pod *corev1.Pod) {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(999, 0)}
		}, "ready"},
		"it has failed":                 {func(_ *v1beta1.RollSet, pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, "ready"},
		"a label asks for its deletion": {label(v1beta1.SpecifiedDeleteLabel, "true"), "active ready available specified"},
		"podsToDelete names it": {
			func(set *v1beta1.RollSet, _ *corev1.Pod) {
				set.Spec.ScaleStrategy = &v1beta1.ScaleStrategy{PodsToDelete: []string{"web-bbbbb"}}
			}, "active ready available specified",
		},
		"podsToDelete named its predecessor": {
			func(set *v1beta1.RollSet, pod *corev1.Pod) {
				set.Spec.ScaleStrategy = &v1beta1.ScaleStrategy{PodsToDelete: []string{"web-bbbbb"}}
				pod.Labels[v1beta1.ReplacedLabel] = "true"
			}, "active ready available",
		},
		"it was made for surge":   {label(v1beta1.SurgeLabel, "true"), "active ready available surge"},
		"its gate is open":        {gate(corev1.ConditionTrue), "active ready available"},
		"its gate is closed":      {gate(corev1.ConditionFalse), "active ready updating"},
		"a hook prepares its end": {preparingDelete, "active ready updating withdrawn"},
		"the hook has taken it away": {
			func(set *v1beta1.RollSet, pod *corev1.Pod) {
				preparingDelete(set, pod)
				gate(corev1.ConditionFalse)(set, pod)
			}, "active ready updating specified withdrawn",
		},
		"a state without a hook": {label(v1beta1.LifecycleStateLabel, string(v1beta1.LifecyclePreparingDelete)), "active ready available"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, pod := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, seenPod("1", "bbbbb", 1, 900)
			pod.Labels = map[string]string{"app": "web"}
			tt.change(set, pod)
			snap := look(set, pod)
			if len(snap.Replicas) != 1 {
				t.Fatalf("%d replicas", len(snap.Replicas))
			}
			if got := words(&snap.Replicas[0]); got != tt.want {
				t.Errorf("the pod is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNamesThatAreTaken has a pod that the selector no longer matches, an orphan that may not be adopted, and one that may.
func TestNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	ours, leaving, orphan, another := seenPod("1", "bbbbb", 1, 900), seenPod("2", "ccccc", 1, 900), seenPod("3", "ddddd", 1, 900), seenPod("4", "fffff", 1, 900)
	ours.Labels = map[string]string{"app": "web"}
	o := &snapshot.Objects{
		Set: set, Selector: labels.SelectorFromSet(labels.Set{"app": "web"}), Now: time.Unix(1000, 0),
		Pods: []*corev1.Pod{ours, leaving}, Orphans: []*corev1.Pod{orphan, another},
	}
	memory := &Memory{}
	snap := Snapshot(Input{
		Objects: o, Replicas: memory.Join(o),
		Refusals: map[attempt.Key]snapshot.Refusal{attempt.OfPod(attempt.Adopting, orphan): {Message: "no", Retry: time.Minute}},
	}, memory)
	if len(snap.Replicas) != 1 || snap.Replicas[0].Pod != ours || len(snap.Leaving) != 1 || snap.Leaving[0] != leaving {
		t.Errorf("replicas %v, leaving %v", snap.Replicas, snap.Leaving)
	}
	want := map[string]snapshot.Block{
		"ccccc": {Reason: "the name is taken by a pod that the selector does not match and that is not released yet"},
		"ddddd": {Reason: "the name is taken by a pod that the set may not adopt; delete it"},
	}
	if diff := cmp.Diff(want, snap.Blocked); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
}

// TestIdentify reads names that the set gives, and names that it does not.
func TestIdentify(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		identity    v1beta1.PodIdentity
		wantID      string
		wantOrdinal int
	}{
		"web-7":     {v1beta1.OrdinalIdentity, "7", 7},
		"web-07":    {v1beta1.OrdinalIdentity, "web-07", -1},
		"other-7":   {v1beta1.OrdinalIdentity, "other-7", -1},
		"web-bbbbb": {v1beta1.RandomIdentity, "bbbbb", -1},
		"stray":     {v1beta1.RandomIdentity, "stray", -1},
	}
	for pod, tt := range tests {
		set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		set.Spec.PodIdentity = tt.identity
		if id, ordinal := Identify(set, pod); id != tt.wantID || ordinal != tt.wantOrdinal {
			t.Errorf("%s is %q, %d; want %q, %d", pod, id, ordinal, tt.wantID, tt.wantOrdinal)
		}
	}
}

// TestLeaving has a pod on a cordoned node. If the template names the node, its successor would be there too.
func TestLeaving(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	for name, want := range map[string]string{"": "node n1 is cordoned", "n1": ""} {
		set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		set.Spec.Replicas, set.Spec.Disruption = new(int32(1)), &v1beta1.Disruption{OnDrain: v1beta1.ReplaceOnDrain}
		set.Spec.Template.Spec.NodeName = name
		pod := seenPod("1", "aaaaa", 1, 900)
		pod.Labels, pod.Spec.NodeName = map[string]string{"app": "web"}, "n1"
		memory := &Memory{}
		o := &snapshot.Objects{Set: set, Selector: labels.Everything(), Pods: []*corev1.Pod{pod}, Nodes: []*corev1.Node{node}, Now: time.Unix(1000, 0)}
		if got := Snapshot(Input{Objects: o, Replicas: memory.Join(o)}, memory).Replicas[0].Leaving; got != want {
			t.Errorf("a template for node %q: %q, want %q", name, got, want)
		}
	}
}

// TestTriedCurrent remembers that a pod at the current revision was there while none was ready, until one is.
func TestTriedCurrent(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas = new(int32(2))
	pod := func(id, revision string, ready bool) *corev1.Pod {
		p := seenPod(id, id, 1, 900)
		p.Labels = map[string]string{"app": "web", v1beta1.RevisionLabel: revision}
		if !ready {
			p.Status.Conditions = nil
		}
		return p
	}
	const current = ""
	memory := &Memory{}
	for i, look := range []struct {
		pod  *corev1.Pod
		want bool
	}{
		{pod("aaaaa", "web-2", false), false},
		{pod("bbbbb", current, false), true},
		{pod("ccccc", "web-2", false), true},
		{pod("fffff", "web-2", true), false},
		{pod("ddddd", "web-2", false), false},
		{pod("eeeee", current, true), false},
	} {
		if got := lookAgain(memory, set, look.pod).TriedCurrent; got != look.want {
			t.Errorf("look %d: tried %t, want %t", i, got, look.want)
		}
	}
}
