// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// withClaims returns a world in which every pod has a claim that is always retained.
func withClaims(identity v1beta1.PodIdentity) *world {
	w := newWorld(identity)
	w.set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{
		Name: "data", Labels: map[string]string{"tier": "fast"},
	}}}
	w.snap.Update.Claims = snapshot.RevisionOf(revision, &w.set.Spec).Claims
	return w
}

// claim returns the claim of identity 0.
func claim(labels map[string]string, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "data-web-0", Namespace: "default", UID: "uid-data-web-0", Labels: labels, OwnerReferences: owners,
	}}
}

func TestBuildClaim(t *testing.T) {
	t.Parallel()
	set := claims.Owner("web", "set")
	tests := map[string]struct {
		identity v1beta1.PodIdentity
		labels   map[string]string
		owners   []metav1.OwnerReference
	}{
		"of an ordinal is kept": {
			identity: v1beta1.OrdinalIdentity,
			labels:   map[string]string{"tier": "fast", "app": "web", v1beta1.SetLabel: "web", v1beta1.PodIndexLabel: "0"},
		},
		"of a random name goes with the set": {
			identity: v1beta1.RandomIdentity,
			labels:   map[string]string{"tier": "fast", "app": "web", v1beta1.SetLabel: "web", v1beta1.InstanceIDLabel: "0"},
			owners:   []metav1.OwnerReference{set},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withClaims(tt.identity)
			got := BuildClaim(w.set, &w.set.Spec.VolumeClaimTemplates[0], "0")
			want := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: "data-web-0", Namespace: "default", Labels: tt.labels, OwnerReferences: tt.owners,
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimsComeBeforeTheirPod(t *testing.T) {
	t.Parallel()
	own := map[string]string{v1beta1.SetLabel: "web", v1beta1.PodIndexLabel: "0"}
	other := metav1.OwnerReference{Kind: "StatefulSet", Name: "other", UID: "other", Controller: new(true)}
	earlier := metav1.OwnerReference{Kind: "Pod", Name: "web-0", UID: "earlier", Controller: new(true)}
	tests := map[string]struct {
		// exists says what the API server has, seen what the cache shows.
		exists, seen *corev1.PersistentVolumeClaim
		want         []string
		wantBlocked  string
	}{
		"a missing claim is made": {
			want: []string{"create data-web-0", "create web-0"},
		},
		"a claim of ours is used": {
			exists: claim(own), seen: claim(own), want: []string{"get data-web-0", "create web-0"},
		},
		"a claim of ours that is gone is made anew": {
			seen: claim(own), want: []string{"get data-web-0", "create data-web-0", "create web-0"},
		},
		"a claim of ours that goes with a pod, unseen, holds back the next": {
			exists: claim(own, earlier), seen: claim(own), want: []string{"get data-web-0"},
			wantBlocked: "claim data-web-0 goes with an earlier pod web-0, and is made anew when it is gone",
		},
		"a claim of ours that the cache does not show is used": {
			exists: claim(own), want: []string{"create data-web-0", "get data-web-0", "create web-0"},
		},
		"a claim without an owner is used": {
			exists: claim(nil), want: []string{"create data-web-0", "get data-web-0", "create web-0"},
		},
		"a claim of another set holds back its pod": {
			exists:      claim(map[string]string{v1beta1.SetLabel: "b-web"}),
			want:        []string{"create data-web-0", "get data-web-0"},
			wantBlocked: "claim data-web-0 belongs to the set b-web; rename the claim template, or, if the data is this set's, give the claim the label apps.rollset.dev/set=web",
		},
		"a claim of another controller holds back its pod": {
			exists: claim(nil, other), want: []string{"create data-web-0", "get data-web-0"},
			wantBlocked: "claim data-web-0 belongs to StatefulSet other; delete the claim, or rename the claim template",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withClaims(v1beta1.OrdinalIdentity)
			if tt.exists != nil {
				w.server.store(tt.exists)
			}
			if tt.seen != nil {
				w.snap.Replicas = replicas(nil, tt.seen)
			}
			result := w.apply(t, creates(1)...)
			if diff := cmp.Diff(tt.want, w.server.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if got := result.Blocked["0"]; got.Reason != tt.wantBlocked || got.Claim != (tt.wantBlocked != "") {
				t.Errorf("blocked = %+v, want %q", got, tt.wantBlocked)
			}
			if result.Creates.Err != nil {
				t.Errorf("creates = %+v", result.Creates)
			}
		})
	}
}

// TestRefusedWriteIsNamed lets the API server refuse a claim, or its pod.
func TestRefusedWriteIsNamed(t *testing.T) {
	t.Parallel()
	for request, ofClaim := range map[string]bool{"create data-web-0": true, "create web-0": false} {
		w := withClaims(v1beta1.OrdinalIdentity)
		w.server.fail = func(verb string, object client.Object) error {
			if verb+" "+object.GetName() == request {
				return errQuota
			}
			return nil
		}
		result := w.apply(t, creates(1)...)
		want := []attempt.Result{{Key: attempt.AnyCreate(), OfClaim: ofClaim}}
		if diff := cmp.Diff(want, result.Attempts, cmpopts.IgnoreFields(attempt.Result{}, "Err")); diff != "" {
			t.Errorf("%s: attempts (-want +got):\n%s", request, diff)
		}
	}
}

// replicas returns the replica 0, with or without a pod, and with a claim.
func replicas(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) []snapshot.Replica {
	return []snapshot.Replica{{
		Content:  snapshot.Content{Identity: snapshot.Identity{ID: "0"}, Pod: pod},
		Judgment: snapshot.Judgment{Claims: []*corev1.PersistentVolumeClaim{claim}},
	}}
}

func TestClaimsAreHandedOverBeforeTheirPodGoes(t *testing.T) {
	t.Parallel()
	w := withClaims(v1beta1.RandomIdentity)
	gone := w.pod("web-0")
	foreign := metav1.OwnerReference{Kind: "Backup", Name: "keeper", UID: "keeper"}
	c := claim(map[string]string{v1beta1.SetLabel: "web"}, claims.Owner("web", "set"), foreign)
	w.server.store(c)
	w.snap.Replicas = replicas(gone.Pod, c)
	owner := metav1.NewControllerRef(gone.Pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	own := action.OwnClaim{ID: "0", Claim: c, Owner: owner, Reason: "deleted together with the pod"}

	w.server.fail = func(verb string, _ client.Object) error {
		if verb == "patch" {
			return errServer
		}
		return nil
	}
	result := w.apply(t, own, gone)
	if diff := cmp.Diff([]string{"patch data-web-0"}, w.server.log); diff != "" || result.Claims.Failed != 1 {
		t.Errorf("the pod does not wait for its claims: %+v (-want +got):\n%s", result, diff)
	}

	w.server.fail, w.server.log = nil, nil
	w.apply(t, own, gone)
	if diff := cmp.Diff([]string{"patch data-web-0", "delete web-0"}, w.server.log); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{foreign, *owner}, w.server.objects["data-web-0"].GetOwnerReferences()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if len(c.OwnerReferences) != 2 || c.OwnerReferences[0].UID != "set" {
		t.Error("the claim of the cache was changed")
	}
}

func TestUpkeepOfClaims(t *testing.T) {
	t.Parallel()
	w := withClaims(v1beta1.OrdinalIdentity)
	small := claim(nil)
	w.server.store(small)
	leftover := claim(nil)
	leftover.Name, leftover.UID = "data-web-9", "uid-data-web-9"
	w.server.store(leftover)
	result := w.apply(t,
		action.ChangeClaim{Claim: small.DeepCopy(), Size: new(resource.MustParse("2Gi"))},
		action.DeleteClaim{ID: "9", Claim: leftover.DeepCopy(), Reason: "retention policy"},
		action.CreateClaims{ID: "5", Revision: revision, Reason: "claim data-web-5 is gone"},
	)
	if diff := cmp.Diff([]string{"patch data-web-0", "get web-9", "delete data-web-9", "create data-web-5"}, w.server.log); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(attempt.Tally{Done: 3}, result.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	grown, ok := w.server.objects["data-web-0"].(*corev1.PersistentVolumeClaim)
	if size := grown.Spec.Resources.Requests[corev1.ResourceStorage]; !ok || size.String() != "2Gi" {
		t.Errorf("the claim requests %v, want 2Gi", &size)
	}
}

func TestClaimIsKeptForAPodThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	w := withClaims(v1beta1.RandomIdentity)
	used := claim(nil)
	w.server.store(used)
	w.server.store(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: used.Namespace, Name: "web-0"}})
	result := w.apply(t, action.DeleteClaim{ID: "0", Claim: used.DeepCopy(), Reason: "retention policy"})
	if diff := cmp.Diff([]string{"get web-0"}, w.server.log); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(attempt.Tally{}, result.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// TestClaimsOfARevision creates pods of a revision whose claim template is no longer in the spec.
func TestClaimsOfARevision(t *testing.T) {
	t.Parallel()
	template := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	tests := map[string]struct {
		template *corev1.PersistentVolumeClaim
		exists   bool
		want     []string
	}{
		"a claim that exists is used":                     {template, true, []string{"get data-web-0", "create web-0"}},
		"one that does not is made as it would have been": {template, false, []string{"create data-web-0", "create web-0"}},
		"one whose template is lost is used":              {nil, true, []string{"get data-web-0", "create web-0"}},
		"without it there is no pod":                      {nil, false, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.OrdinalIdentity)
			w.snap.Known = map[string]snapshot.Revision{"web-0": {
				Name: "web-0", Template: w.snap.Update.Template, Claims: []snapshot.ClaimTemplate{{Name: "data", Template: tt.template}},
			}}
			if tt.exists {
				c := claim(map[string]string{v1beta1.SetLabel: "web", v1beta1.PodIndexLabel: "0"})
				w.server.store(c)
				w.snap.Replicas = replicas(nil, c)
			}
			result := w.apply(t, action.Create{ID: "0", Revision: "web-0"})
			if diff := cmp.Diff(tt.want, w.server.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			pod, made := w.server.objects["web-0"].(*corev1.Pod)
			if !made {
				if result.Creates.Err == nil || result.Creates.Err.Error() != "claim data-web-0 is gone, and its template is lost" {
					t.Errorf("error = %v", result.Creates.Err)
				}
				return
			}
			if volumes := pod.Spec.Volumes; len(volumes) != 1 || volumes[0].PersistentVolumeClaim.ClaimName != "data-web-0" {
				t.Errorf("volumes = %v, want data-web-0", volumes)
			}
		})
	}
}
