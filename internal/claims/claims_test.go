// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/scale"
)

const (
	retain = v1beta1.RetainClaims
	remove = v1beta1.DeleteClaims
)

// claim returns a bound claim of template data for an identity.
func claim(id, size string, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: identity.ClaimName("web", "data", id), UID: "claim",
			Labels:          map[string]string{v1beta1.SetLabel: "web"},
			OwnerReferences: owners,
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: new("fast"),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase:    corev1.ClaimBound,
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		},
	}
}

func owner(kind, name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}
}

var set = owner("RollSet", "web", "uid-web")

// observe returns a set with one claim template and the given claims, by identity.
func observe(config, state, size string, have map[string]*corev1.PersistentVolumeClaim) *snapshot.Set {
	snap := snapshottest.Parse(config, state)
	template := claim("", size)
	template.Name = "data"
	snap.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*template}
	snap.Known[snap.Update.Name] = snapshot.RevisionOf(snap.Update.Name, snap.Spec)
	snap.Classes = map[string]snapshot.Class{"fast": {Expandable: true}, "fixed": {}}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		r.Claims = nil
		if c := have[r.ID]; c != nil {
			r.Claims = []*corev1.PersistentVolumeClaim{c}
		}
	}
	return snap
}

// mount makes a pod use a claim.
func mount(pod *corev1.Pod, claim string) {
	source := corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &source}}}
}

func plan(snap *snapshot.Set) string {
	w := desired.Of(snap)
	p := claims.Plan(snap, w, scale.Down(snap, w))
	for _, a := range p.Actions { // a claim is not deleted while there is a pod with the name of its identity
		if d, ok := a.(action.DeleteClaim); ok && d.Claim.Name != identity.ClaimName(snap.Name, "data", d.ID) {
			return "claim " + d.Claim.Name + " is taken for one of identity " + d.ID
		}
		if own, ok := a.(action.OwnClaim); ok && own.Left && own.Owner != nil && own.Owner.Kind == "Pod" {
			return "claim " + own.Claim.Name + " is deleted with its pod, and left behind"
		}
		if c, ok := a.(action.CreateClaims); ok && c.Revision == "" {
			return "nothing says from which templates claims of " + c.ID + " are created"
		}
	}
	return strings.TrimSuffix(p.String(), "\n")
}

func TestOwners(t *testing.T) {
	t.Parallel()
	unflagged := set
	unflagged.Controller = nil
	tests := map[string]struct {
		config, state           string
		whenDeleted, whenScaled v1beta1.ClaimRetentionPolicy
		claims                  map[string]*corev1.PersistentVolumeClaim
		want                    string
	}{
		"kept claims have no owner": {
			config: "ordinal R=1 v1", state: "0:v1+", whenDeleted: retain, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi")},
		},
		"other owners are none of ours": {
			config: "ordinal R=1 v1", state: "0:v1+", whenDeleted: remove, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi", set, owner("Backup", "nightly", "uid-backup"))},
		},
		"claims that go with the set are the set's": {
			config: "ordinal R=1 v1", state: "0:v1+", whenDeleted: remove, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi")},
			want:   "own claim data-web-0 by RollSet web (retention policy)",
		},
		"a change of the policy is made good": {
			config: "ordinal R=1 v1", state: "0:v1+", whenDeleted: retain, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi", set)},
			want:   "disown claim data-web-0 (retention policy)",
		},
		"a reference that does not control is made one that does": {
			config: "ordinal R=1 v1", state: "0:v1+", whenDeleted: remove, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi", unflagged)},
			want:   "own claim data-web-0 by RollSet web (retention policy)",
		},
		"a pod that is scaled away takes its claims with it": {
			config: "ordinal R=1 v1", state: "0:v1+ 1:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi", set), "1": claim("1", "1Gi", set)},
			want:   "own claim data-web-1 by Pod web-1 (deleted together with the pod)",
		},
		"unless the policy keeps them": {
			config: "ordinal R=1 v1", state: "0:v1+ 1:v1+", whenDeleted: remove, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi", set), "1": claim("1", "1Gi", set)},
		},
		"while it goes they stay its own": {
			config: "ordinal R=1 v1", state: "0:v1+ 1:v1x", whenDeleted: retain, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"1": claim("1", "1Gi", owner("Pod", "web-1", "uid-1"))},
		},
		"a pod that a user deleted before it was surplus takes them with it too": {
			config: "ordinal R=1 v1", state: "0:v1+ 1:v1x", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"1": claim("1", "1Gi", set)},
			want:   "own claim data-web-1 by Pod web-1 (deleted together with the pod)",
		},
		"and so does one that has failed": {
			config: "ordinal R=1 v1", state: "0:v1+ 1:v1!", whenDeleted: retain, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"1": claim("1", "1Gi")},
			want:   "own claim data-web-1 by Pod web-1 (deleted together with the pod)",
		},
		"the policy may change while it goes": {
			config: "ordinal R=1 v1", state: "0:v1+ 1:v1x", whenDeleted: retain, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"1": claim("1", "1Gi", owner("Pod", "web-1", "uid-1"))},
			want:   "disown claim data-web-1 (retention policy)",
		},
		"of a pod with a random name that is going they stay as they are": {
			config: "random R=1 v1", state: "a:v1+ b:v1x", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"b": claim("b", "1Gi", owner("Pod", "web-b", "uid-b"))},
		},
		"they are saved if it is wanted again before it is gone": {
			config: "ordinal R=2 v1", state: "0:v1+ 1:v1x", whenDeleted: retain, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"1": claim("1", "1Gi", owner("Pod", "web-1", "uid-1"))},
			want:   "disown claim data-web-1 (retention policy)",
		},
		"claims of another controller are left alone": {
			config: "ordinal R=1 v1", state: "0:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"0": claim("0", "1Gi", owner("RollSet", "web", "uid-earlier"))},
		},
		"an ordinal's claims without a pod are kept": {
			config: "ordinal R=1 v1", state: "0:v1+ 1:-", whenDeleted: retain, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"1": claim("1", "1Gi")},
		},
		"claims are kept when another identity has taken their place": {
			config: "random R=1 v1", state: "a:v1+ b:-", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": claim("b", "1Gi", set)},
			want:   "own claim data-web-b by RollSet web (kept for a pod to come)",
		},
		"and if its pod comes back, one of the two goes and leaves its claims": {
			config: "random R=1 v1", state: "a:v1+ b:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": kept(claim("b", "1Gi", set))},
		},
		"whichever it is": {
			config: "random R=1 v1", state: "a:v1+ b:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": kept(claim("a", "1Gi", set)), "b": claim("b", "1Gi", set)},
			want:   "own claim data-web-b by RollSet web (retention policy)",
		},
		"but what was scaled down beside that goes by policy": {
			config: "random R=1 v1", state: "a:v1+ b:v1+ c:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{
				"a": claim("a", "1Gi", set), "b": claim("b", "1Gi", set), "c": kept(claim("c", "1Gi", set)),
			},
			want: "own claim data-web-b by Pod web-b (deleted together with the pod)",
		},
		"and are used while a pod is missing": {
			config: "random R=2 v1", state: "a:v1+ b:-", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": claim("b", "1Gi", set)},
		},
		"not while a pod without claims stands in, which is not the one to come back next": {
			config: "random R=2 v1", state: "a:v1+ b:- d:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": claim("b", "1Gi", set)},
			want:   "own claim data-web-b by RollSet web (kept for a pod to come)",
		},
		"also beside a terminating pod that takes its claims along": {
			config: "random R=1 v1", state: "b:- c:v1x d:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"b": claim("b", "1Gi", set), "c": claim("c", "1Gi", owner("Pod", "web-c", "uid-web-c"))},
			want:   "own claim data-web-b by RollSet web (kept for a pod to come)",
		},
		"a terminating pod that replicas leave no place for takes its claims along": {
			config: "random R=1 v1", state: "a:v1+ b:v1x", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": claim("b", "1Gi", set)},
			want:   "own claim data-web-b by Pod web-b (deleted together with the pod)",
		},
		"or leaves them behind": {
			config: "random R=1 v1", state: "a:v1+ b:v1x", whenDeleted: retain, whenScaled: retain,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi"), "b": claim("b", "1Gi")},
			want:   "disown claim data-web-b (retention policy)",
		},
		"the claims of a lost pod are no surplus": {
			config: "random R=2 v1", state: "a:v1+ b:v1x c:-", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": claim("b", "1Gi", set), "c": claim("c", "1Gi", set)},
			want:   "own claim data-web-c by RollSet web (kept for a pod to come)",
		},
		"surge makes no crowd": {
			config: "random R=1 mu=0 surge=1 v1>v2", state: "a:v1+ b:v2+*", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": kept(claim("a", "1Gi", set))},
			want:   "own claim data-web-a by RollSet web (retention policy)",
		},
		"unless a pod without claims stands in for it": {
			config: "random R=2 v1", state: "a:v1+ b:v1x d:v1+", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": claim("b", "1Gi", set)},
		},
		"without an owner too": {
			config: "random R=1 v1", state: "a:v1+ b:-", whenDeleted: retain, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi"), "b": claim("b", "1Gi")},
			want:   "disown claim data-web-b (kept for a pod to come)",
		},
		"another's leftover is not ours to delete": {
			config: "random R=1 v1", state: "a:v1+ b:-", whenDeleted: remove, whenScaled: remove,
			claims: map[string]*corev1.PersistentVolumeClaim{"b": claim("b", "1Gi", owner("RollSet", "web", "uid-earlier"))},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe(tt.config, tt.state, "1Gi", tt.claims)
			snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{
				WhenDeleted: tt.whenDeleted, WhenScaled: tt.whenScaled,
			}
			if diff := cmp.Diff(tt.want, plan(snap)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// kept marks a claim as one that waits for a pod to come.
func kept(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.Labels[v1beta1.LeftLabel] = "true"
	return claim
}

// TestKeepsSurgeOfLostTemplate keeps a claim that surge left while neither the spec nor a revision has its template.
func TestKeepsSurgeOfLostTemplate(t *testing.T) {
	t.Parallel()
	surge := claim("b", "1Gi", set)
	surge.Labels[v1beta1.SurgeLabel] = "true"
	snap := observe("random R=1 v1", "a:v1+ b:-", "1Gi", map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi", set), "b": surge})
	snap.Replicas[1].Surge = true
	snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenScaled: v1beta1.DeleteClaims}
	templates := snap.Spec.VolumeClaimTemplates
	snap.Spec.VolumeClaimTemplates = nil
	known := snap.Known["v1"]
	for name, revision := range snap.Known {
		revision.Claims = nil
		snap.Known[name] = revision
	}
	if diff := cmp.Diff("", plan(snap)); diff != "" {
		t.Errorf("plan while nothing has the template (-want +got):\n%s", diff)
	}
	known.Claims = []snapshot.ClaimTemplate{{Name: templates[0].Name}}
	snap.Known["v1"] = known
	surge.DeletionTimestamp = new(metav1.NewTime(snap.Now))
	if diff := cmp.Diff("", plan(snap)); diff != "" {
		t.Errorf("plan while the claim is being deleted (-want +got):\n%s", diff)
	}
	surge.DeletionTimestamp = nil
	if diff := cmp.Diff("delete claim data-web-b (made for surge, and no pod needs it)", plan(snap)); diff != "" {
		t.Errorf("plan while a revision has the template (-want +got):\n%s", diff)
	}
}

// TestMemberKeepsItsClaim takes the mark of surge off the claim of a pod that is none, also while the pod terminates.
func TestMemberKeepsItsClaim(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"0:v1+", "0:v1x"} {
		marked := claim("0", "1Gi")
		marked.Labels[v1beta1.SurgeLabel] = "true"
		snap := observe("ordinal R=1 v1", state, "1Gi", map[string]*corev1.PersistentVolumeClaim{"0": marked})
		snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: retain, WhenScaled: retain}
		if diff := cmp.Diff("disown claim data-web-0 (its pod stays)", plan(snap)); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", state, diff)
		}
	}
}

// TestSurgeHasNoTurn grows no claim of surge.
func TestSurgeHasNoTurn(t *testing.T) {
	t.Parallel()
	surge := claim("b", "1Gi", set)
	surge.Labels[v1beta1.SurgeLabel] = "true"
	snap := observe("random R=2 mu=0 surge=1 v1>v2", "a:v1+ b:v2+* c:v1+", "2Gi", map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "2Gi", set), "b": surge, "c": claim("c", "2Gi", set)})
	if diff := cmp.Diff("", plan(snap)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestSurgeLeavesNoClaim deletes the claims of surge together with its pod, whatever the retention policy.
func TestSurgeLeavesNoClaim(t *testing.T) {
	t.Parallel()
	surge := claim("b", "1Gi", set)
	surge.Labels[v1beta1.SurgeLabel] = "true"
	snap := observe("random R=1 v1", "a:v1+ b:v1+*", "1Gi", map[string]*corev1.PersistentVolumeClaim{"a": claim("a", "1Gi"), "b": surge})
	snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: retain, WhenScaled: retain}
	if diff := cmp.Diff("own claim data-web-b by Pod web-b (deleted together with the pod)", plan(snap)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	snap := observe("ordinal R=1 v1", "0:v1.", "1Gi", nil)
	pod := snap.Replicas[0].Pod
	snap.Replicas[0].Phase = corev1.PodPending
	mount(pod, "data-web-0")
	if diff := cmp.Diff("create claims of 0 (claim data-web-0 is gone)", plan(snap)); diff != "" {
		t.Errorf("plan for a pending pod (-want +got):\n%s", diff)
	}
	snap.Replicas[0].Phase = corev1.PodRunning
	if diff := cmp.Diff("", plan(snap)); diff != "" {
		t.Errorf("plan for a running pod (-want +got):\n%s", diff)
	}
	snap = observe("ordinal R=1 v1", "0:v1x", "1Gi", nil)
	snap.Replicas[0].Phase = corev1.PodPending
	mount(snap.Replicas[0].Pod, "data-web-0")
	if diff := cmp.Diff("", plan(snap)); diff != "" {
		t.Errorf("plan for a pod that terminates (-want +got):\n%s", diff)
	}
}

// TestGrowBehindPartition has a partition that keeps two of three pods with random names, whatever their order is.
func TestGrowBehindPartition(t *testing.T) {
	t.Parallel()
	small := func(id string) *corev1.PersistentVolumeClaim { return claim(id, "1Gi") }
	grown := func(id string) *corev1.PersistentVolumeClaim { return claim(id, "2Gi") }
	growing := func(id string) *corev1.PersistentVolumeClaim {
		c := grown(id)
		c.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
		return c
	}
	fixed := func(id string) *corev1.PersistentVolumeClaim {
		c := small(id)
		c.Spec.StorageClassName = new("fixed")
		return c
	}
	const current, rolling = "random R=3 p=2 v1", "random R=3 p=2 v1>v2"
	for name, tt := range map[string]struct {
		config, revision string // of the one pod; the others are at v1
		one, others      func(id string) *corev1.PersistentVolumeClaim
		grows            bool
	}{
		"one was changed":               {config: current, revision: "v1", one: grown, others: small},
		"one is being changed":          {config: current, revision: "v1", one: growing, others: small},
		"one can be changed":            {config: current, revision: "v1", one: small, others: fixed, grows: true},
		"one was updated":               {config: rolling, revision: "v2", one: small, others: grown, grows: true},
		"one was updated, others wait":  {config: rolling, revision: "v2", one: small, others: small, grows: true},
		"one was updated and changed":   {config: rolling, revision: "v2", one: grown, others: small},
		"one was changed, not all have": {config: current, revision: "v1", one: grown, others: fixed},
	} {
		for _, id := range []string{"a", "b", "c"} {
			t.Run(name+" "+id, func(t *testing.T) {
				t.Parallel()
				var state []string
				all, want := map[string]*corev1.PersistentVolumeClaim{}, ""
				for _, other := range []string{"a", "b", "c"} {
					all[other] = tt.others(other)
					state = append(state, other+":v1+")
				}
				all[id] = tt.one(id)
				state[id[0]-'a'] = id + ":" + tt.revision + "+"
				if tt.grows {
					want = "grow claim data-web-" + id + " to 2Gi"
				}
				snap := observe(tt.config, strings.Join(state, " "), "2Gi", all)
				snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: retain, WhenScaled: retain}
				if diff := cmp.Diff(want, plan(snap)); diff != "" {
					t.Errorf("plan (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestGrow(t *testing.T) {
	t.Parallel()
	small := func(id string) *corev1.PersistentVolumeClaim { return claim(id, "1Gi") }
	unbound, fixed, growing0, growing, pending := small("1"), small("1"), claim("0", "2Gi"), claim("1", "2Gi"), claim("1", "2Gi")
	unbound.Status.Phase = corev1.ClaimPending
	fixed.Spec.StorageClassName = new("fixed")
	growing0.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
	growing.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
	pending.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
	pending.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
	}}
	tests := map[string]struct {
		config, state string
		claims        map[string]*corev1.PersistentVolumeClaim
		want, message string
	}{
		"the highest ordinal's claim grows first": {
			config: "ordinal R=2 v1", state: "0:v1+ 1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": small("1")},
			want:    "grow claim data-web-1 to 2Gi",
			message: "data-web-0: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"whatever its pod is worth": {
			config: "ordinal R=2 v1", state: "0:v1. 1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": small("1")},
			want:    "grow claim data-web-1 to 2Gi",
			message: "data-web-0: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"the next waits until it has grown": {
			config: "ordinal R=2 v1", state: "0:v1+ 1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": growing},
			message: "data-web-1: it is growing from 1Gi to 2Gi",
		},
		"and for one of a pod that is not updated": {
			config: "ordinal R=2 v1>v2", state: "0:v1+ 1:v2+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": growing0, "1": small("1")},
			message: "data-web-0: it is growing from 1Gi to 2Gi",
		},
		"but not for a file system that grows at the next start": {
			config: "ordinal R=2 v1", state: "0:v1+ 1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": pending},
			want:    "grow claim data-web-0 to 2Gi",
			message: "data-web-1: it is growing from 1Gi to 2Gi",
		},
		"as many at a time as an update may disturb": {
			config: "ordinal R=3 mu=2 v1", state: "0:v1+ 1:v1+ 2:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": small("1"), "2": small("2")},
			want:    "grow claim data-web-2 to 2Gi\ngrow claim data-web-1 to 2Gi",
			message: "data-web-0: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"the partition keeps claims back": {
			config: "ordinal R=2 p=1 v1", state: "0:v1+ 1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": claim("1", "2Gi")},
			message: "data-web-0: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"and keeps those of the lowest places, not of the lowest pods": {
			config: "ordinal start=1 R=3 p=2 v1", state: "0:v1+ 1:v1+ 2:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": small("1"), "2": small("2")},
			message: "data-web-1: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"a pause keeps claims back": {
			config: "ordinal R=1 paused v1", state: "0:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0")},
			message: "data-web-0: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"a pod's turn comes when it has been updated": {
			config: "ordinal R=2 v1>v2", state: "0:v1+ 1:v2+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"0": small("0"), "1": claim("1", "2Gi")},
			message: "data-web-0: it grows from 1Gi to 2Gi when its pod's turn comes",
		},
		"a class without expansion is reported": {
			config: "ordinal R=2 v1", state: "1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"1": fixed},
			message: "data-web-1: it cannot grow from 1Gi to 2Gi: its storage class fixed does not allow volume expansion",
		},
		"an unbound claim waits": {
			config: "ordinal R=2 v1", state: "1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"1": unbound},
			message: "data-web-1: it cannot grow from 1Gi to 2Gi: it is not bound",
		},
		"a claim never shrinks": {
			config: "ordinal R=2 v1", state: "1:v1+",
			claims:  map[string]*corev1.PersistentVolumeClaim{"1": claim("1", "4Gi")},
			message: "data-web-1: it requests 4Gi and the template 2Gi; a claim cannot shrink, only new claims get the smaller size",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe(tt.config, tt.state, "2Gi", tt.claims)
			if diff := cmp.Diff(tt.want, plan(snap)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			status := claims.Status(snap)[0]
			if diff := cmp.Diff(tt.message, status.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if status.Name != "data" {
				t.Errorf("the status is of %q", status.Name)
			}
		})
	}
}

// TestOtherVolumeMode says of a claim that it stays as it is if the template names another volume mode. One that names none asks for none.
func TestOtherVolumeMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[corev1.PersistentVolumeMode]string{
		"": "", corev1.PersistentVolumeFilesystem: "",
		corev1.PersistentVolumeBlock: "data-web-0: its volume mode is not the template's; only new claims get that one",
	} {
		has := claim("0", "1Gi")
		has.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		snap := observe("ordinal R=1 v1", "0:v1+", "1Gi", map[string]*corev1.PersistentVolumeClaim{"0": has})
		if mode != "" {
			snap.Spec.VolumeClaimTemplates[0].Spec.VolumeMode = &mode
		}
		if diff := cmp.Diff(want, claims.Status(snap)[0].Message); diff != "" {
			t.Errorf("%q: message (-want +got):\n%s", mode, diff)
		}
	}
}

// TestTwoClaims has pods with two claims each. The claims of one pod are changed together, unless one of them is still being changed.
func TestTwoClaims(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		growing, refused string
		want             string
	}{
		"none is being changed":       {want: "grow claim data-web-1 to 2Gi\ngrow claim logs-web-1 to 2Gi"},
		"one is being changed":        {growing: "data-web-1"},
		"one was refused":             {refused: "logs-web-1", want: "grow claim data-web-1 to 2Gi\ngrow claim logs-web-1 to 2Gi"},
		"another one was refused too": {refused: "data-web-1", want: "grow claim data-web-1 to 2Gi\ngrow claim logs-web-1 to 2Gi"},
	} {
		snap := observe("ordinal R=2 v1", "0:v1+ 1:v1+", "2Gi", nil)
		logs := snap.Spec.VolumeClaimTemplates[0].DeepCopy()
		logs.Name = "logs"
		snap.Spec.VolumeClaimTemplates = append(snap.Spec.VolumeClaimTemplates, *logs)
		snap.Known["v1"] = snapshot.RevisionOf("v1", snap.Spec)
		snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: retain, WhenScaled: retain}
		snap.Refusals = map[attempt.Key]snapshot.Refusal{}
		for i := range snap.Replicas {
			r := &snap.Replicas[i]
			for _, template := range []string{"data", "logs"} {
				c := claim(r.ID, "1Gi")
				c.Name = identity.ClaimName("web", template, r.ID)
				if c.UID = types.UID(c.Name); c.Name == tt.growing {
					c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
				}
				if c.Name == tt.refused {
					snap.Refusals[attempt.Key{Verb: attempt.GrowingClaim, Object: c.Name}] = snapshot.Refusal{Message: "no", Retry: time.Minute}
				}
				r.Claims = append(r.Claims, c)
			}
		}
		if diff := cmp.Diff(tt.want, plan(snap)); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", name, diff)
		}
	}
}
