// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
	"rollset.dev/rollset/internal/model/revision"
	model "rollset.dev/rollset/internal/model/snapshot"
)

func TestFirstRevision(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.set.Annotations = map[string]string{"kubernetes.io/change-cause": "first try", "other": "stays behind"}
	w.set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{
		{ObjectMeta: metav1.ObjectMeta{Name: "log"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "data"}},
	}
	r := w.resolve(t)

	want := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:      "web-jms4x6wtp5",
			Namespace: "shop",
			Labels:    map[string]string{"app": "web", "controller.kubernetes.io/hash": "jms4x6wtp5"},
			Annotations: map[string]string{
				"kubernetes.io/change-cause": "first try", "apps.rollset.dev/completed": "0",
				"apps.rollset.dev/claim-templates": `[{"metadata":{"name":"log"},"spec":{"resources":{}}},{"metadata":{"name":"data"},"spec":{"resources":{}}}]`,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.rollset.dev/v1beta1", Kind: "RollSet", Name: "web", UID: "u1",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"metadata":{"labels":{"app":"web"}},` +
			`"spec":{"containers":[{"image":"app:v1","name":"app","resources":{}}]}},` +
			`"volumeClaimTemplates":[{"metadata":{"name":"data"}},{"metadata":{"name":"log"}}]}}`)},
		Revision: 1,
	}
	if diff := cmp.Diff(want, r.Create); diff != "" {
		t.Errorf("Create (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r.Update, r.Current); diff != "" {
		t.Errorf("current is not update (-update +current):\n%s", diff)
	}
	if r.Update.Name != want.Name || r.Update.Number != 1 {
		t.Errorf("update is %s, number %d", r.Update.Name, r.Update.Number)
	}
	if diff := cmp.Diff(&w.set.Spec.Template, r.Update.Template); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

// Which edits of a set make another revision, and which do not.
func TestEdits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, edit func(*v1beta1.RollSetSpec)
		wantNew      bool
	}{
		"an image": {
			edit:    func(s *v1beta1.RollSetSpec) { s.Template.Spec.Containers[0].Image = "app:v2" },
			wantNew: true,
		},
		"a label of the template": {
			edit:    func(s *v1beta1.RollSetSpec) { s.Template.Labels["tier"] = "front" },
			wantNew: true,
		},
		"a finalizer of the template": {
			edit:    func(s *v1beta1.RollSetSpec) { s.Template.Finalizers = []string{"example.com/f"} },
			wantNew: true,
		},
		"replicas":  {edit: func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(7)) }},
		"partition": {edit: func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.RollingUpdate.Paused = true }},
		"what the API server writes into metadata": {
			edit: func(s *v1beta1.RollSetSpec) {
				s.Template.Name, s.Template.Namespace = "x", "y"
				s.Template.CreationTimestamp = metav1.Unix(1, 0)
				s.Template.ResourceVersion = "12"
			},
		},
		"empty instead of nothing": {
			edit: func(s *v1beta1.RollSetSpec) {
				s.Template.Annotations = map[string]string{}
				s.Template.Spec.Tolerations = []corev1.Toleration{}
				s.Template.Spec.NodeSelector = map[string]string{}
				s.Template.Spec.Containers[0].Env = []corev1.EnvVar{}
			},
		},
		"a quantity spelled otherwise": {
			before: func(s *v1beta1.RollSetSpec) {
				s.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
					"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1Gi"),
				}
			},
			edit: func(s *v1beta1.RollSetSpec) {
				s.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
					"memory": resource.MustParse("1073741824"), "cpu": resource.MustParse("1"),
				}
			},
		},
		"the defaults, spelled out": {
			before: withVolumes,
			edit:   func(s *v1beta1.RollSetSpec) { defaults.Fill(&s.Template.Spec) },
		},
		"the defaults, left out": {
			before: func(s *v1beta1.RollSetSpec) { withVolumes(s); defaults.Fill(&s.Template.Spec) },
			edit:   withVolumes,
		},
		"some defaults spelled out, others left out": {
			before: func(s *v1beta1.RollSetSpec) { withVolumes(s); s.Template.Spec.DNSPolicy = corev1.DNSClusterFirst },
			edit: func(s *v1beta1.RollSetSpec) {
				s.Template.Spec.DNSPolicy = ""
				s.Template.Spec.Volumes[0].ConfigMap.DefaultMode = new(int32(0o644))
			},
		},
		"another value than the default": {
			edit:    func(s *v1beta1.RollSetSpec) { s.Template.Spec.DNSPolicy = corev1.DNSDefault },
			wantNew: true,
		},
		"the default instead of another value": {
			before:  func(s *v1beta1.RollSetSpec) { s.Template.Spec.DNSPolicy = corev1.DNSDefault },
			edit:    func(s *v1beta1.RollSetSpec) { s.Template.Spec.DNSPolicy = "" },
			wantNew: true,
		},
		"an image, and the defaults": {
			edit: func(s *v1beta1.RollSetSpec) {
				s.Template.Spec.Containers[0].Image = "app:v2"
				defaults.Fill(&s.Template.Spec)
			},
			wantNew: true,
		},
		"an image with another default": { // the policy that is spelled out is that of the image before
			before: func(s *v1beta1.RollSetSpec) { defaults.Fill(&s.Template.Spec) },
			edit: func(s *v1beta1.RollSetSpec) {
				s.Template.Spec.Containers[0].Image = "app"
				s.Template.Spec.Containers[0].ImagePullPolicy = ""
			},
			wantNew: true,
		},
		"the defaults of a claim": {
			edit: func(s *v1beta1.RollSetSpec) {
				s.VolumeClaimTemplates[0].Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
			},
		},
		"an empty selector, which selects all": {
			before: func(s *v1beta1.RollSetSpec) {
				s.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
			},
			edit: func(s *v1beta1.RollSetSpec) {
				s.Template.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{}
			},
			wantNew: true,
		},
		"a new claim template": {
			edit: func(s *v1beta1.RollSetSpec) {
				s.VolumeClaimTemplates = append(s.VolumeClaimTemplates, claim("log", "1Gi"))
			},
			wantNew: true,
		},
		"a claim template less": {
			edit:    func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates = s.VolumeClaimTemplates[:1] },
			wantNew: true,
		},
		"a larger claim": {
			edit: func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates[0] = claim("data", "2Gi") },
		},
		"another storage class": {
			edit: func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates[0].Spec.StorageClassName = new("fast") },
		},
		"claim templates in another order": {
			edit: func(s *v1beta1.RollSetSpec) { slices.Reverse(s.VolumeClaimTemplates) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", "1Gi"), claim("etc", "1Gi")}
			if tc.before != nil {
				w.edit(tc.before)
			}
			before := w.settle(t)
			w.edit(tc.edit)
			r := w.resolve(t)
			if isNew := r.Create != nil; isNew != tc.wantNew {
				t.Fatalf("Create = %v, want a new revision: %v", r.Create, tc.wantNew)
			}
			if isNew := r.Update.Name != before.Update.Name; isNew != tc.wantNew {
				t.Errorf("update revision went from %s to %s", before.Update.Name, r.Update.Name)
			}
			if r.Current.Name != before.Current.Name || r.Current.Template == nil {
				t.Errorf("current revision is %v", r.Current)
			}
			w.settle(t)
		})
	}
}

// withVolumes gives a template, made anew, a volume that has defaults.
func withVolumes(s *v1beta1.RollSetSpec) {
	s.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", Image: "app:v1", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
		Volumes:    []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}},
	}
}

func claim(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		}},
	}
}

// A spec that was observed under another version of this program, or of the API, is not a new revision.
func TestObservedGenerationKeepsItsRevision(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	before := w.resolve(t)
	w.set.Spec.Template.Spec.HostUsers = new(true) // a default that neither the user nor this program knows
	r := w.resolve(t)
	if r.Bump == nil || r.Bump.Name != before.Update.Name {
		t.Fatalf("Bump = %v, want a note on %s that the content is equal", r.Bump, before.Update.Name)
	}
	if noted := r.Bump.Annotations[revision.EqualAnnotation]; noted == "" || strings.Contains(noted, ",") {
		t.Errorf("equal contents are %q, want one", noted)
	}
	bump := r.Bump
	r.Bump = nil
	if diff := cmp.Diff(before, r); diff != "" {
		t.Errorf("resolution changed (-before +after):\n%s", diff)
	}
	w.revisions[bump.Name] = bump
	if r := w.resolve(t); !writesNothing(r) {
		t.Errorf("the note is written again: %+v", r)
	}
}

// A default of a newer API server makes no revision, not when the set is scaled after that, nor when a user goes back to the
// template that has it.
func TestDefaultOfTheAPI(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	before := w.settle(t)
	w.set.Spec.Template.Spec.HostUsers = new(true)
	w.settle(t)
	w.scale(5)
	if r := w.settle(t); r.Update.Name != before.Update.Name || r.Create != nil {
		t.Errorf("after scaling the update revision is %s, was %s", r.Update.Name, before.Update.Name)
	}
	w.set.Spec.Template.Spec.ShareProcessNamespace = new(false) // and another one
	w.settle(t)
	w.scale(6)
	if r := w.settle(t); r.Update.Name != before.Update.Name {
		t.Errorf("after the second default the update revision is %s, was %s", r.Update.Name, before.Update.Name)
	}
	w.image("app:v3")
	if r := w.settle(t); r.Update.Name == before.Update.Name {
		t.Error("a change of the template made no revision")
	}
	w.image("app:v2")
	if r := w.settle(t); r.Update.Name != before.Update.Name {
		t.Errorf("back at the template the update revision is %s, was %s", r.Update.Name, before.Update.Name)
	}
}

// TestManyDefaults keeps the last 20 contents that defaults made.
func TestManyDefaults(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 1)
	for i := range 22 {
		w.set.Spec.Template.Spec.Hostname = strings.Repeat("x", i+1)
		w.settle(t)
	}
	equal := strings.Split(w.named("app:v1").Annotations[revision.EqualAnnotation], ",")
	if len(equal) != 20 {
		t.Errorf("%d contents are noted, want 20: %v", len(equal), equal)
	}
	w.scale(5)
	if r := w.settle(t); r.Update.Number != 1 {
		t.Error("the last content is not noted")
	}
}

// What was completed last is found without a status.
func TestLostStatus(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 3) // the third is under way
	before := w.settle(t)
	if before.Unproven || before.Current.Name == before.Update.Name {
		t.Fatalf("before: %+v", before)
	}
	w.set.Status = v1beta1.RollSetStatus{ObservedGeneration: -1}
	if r := w.settle(t); r.Current.Name != before.Current.Name || r.Update.Name != before.Update.Name || r.Unproven {
		t.Errorf("without a status current is %s and update %s, were %s and %s", r.Current.Name, r.Update.Name, before.Current.Name, before.Update.Name)
	}
	w.image("app:v1") // the first again, which becomes the newest and is not complete yet
	w.settle(t)
	w.set.Status = v1beta1.RollSetStatus{ObservedGeneration: -1}
	if r := w.settle(t); r.Current.Name != before.Current.Name {
		t.Errorf("current is %s, the last complete one was %s", r.Current.Name, before.Current.Name)
	}
}

// A revision that never worked is current for show.
func TestUnproven(t *testing.T) {
	t.Parallel()
	w := newWorld()
	first := w.settle(t)
	w.image("app:v2")
	if r := w.settle(t); !r.Unproven || r.Current.Name != first.Update.Name {
		t.Errorf("nothing was completed: %+v", r)
	}
	w.complete()
	w.image("app:v3")
	if r := w.settle(t); r.Unproven {
		t.Errorf("the second was completed: %+v", r)
	}
	// Sets of a version that left no note: what status calls current counts, and is noted.
	w = rolledOut(t, 2)
	for _, object := range w.revisions {
		delete(object.Annotations, revision.CompletedAnnotation)
	}
	r := w.resolve(t)
	if r.Unproven || r.Bump == nil || r.Bump.Annotations[revision.CompletedAnnotation] != "1" {
		t.Errorf("without notes: %+v", r)
	}
}

func TestEqualRevisionIsReused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		numbers    map[string]int64 // by image
		wantNumber int64
		wantBump   bool
	}{
		"as the newest": {
			wantNumber: 4, wantBump: true,
		},
		"which is the newest already": {
			numbers: map[string]int64{"app:v1": 9}, wantNumber: 9,
		},
		"one of two with the same number": {
			numbers: map[string]int64{"app:v1": 3}, wantNumber: 4, wantBump: true,
		},
		"next to the highest number": {
			numbers: map[string]int64{"app:v3": math.MaxInt64 - 1}, wantNumber: math.MaxInt64, wantBump: true,
		},
		"behind the highest number": {
			numbers: map[string]int64{"app:v3": math.MaxInt64}, wantNumber: math.MaxInt64, wantBump: true,
		},
		"with the highest number, as another one": {
			numbers:    map[string]int64{"app:v1": math.MaxInt64, "app:v3": math.MaxInt64},
			wantNumber: math.MaxInt64,
		},
		"with a negative number": {
			numbers:    map[string]int64{"app:v1": -5, "app:v2": -5, "app:v3": -5},
			wantNumber: 1, wantBump: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rolledOut(t, 3)
			for image, number := range tc.numbers {
				w.named(image).Revision = number
			}
			old := w.named("app:v1")
			w.image("app:v1")
			r := w.resolve(t)
			if r.Create != nil || r.Update.Name != old.Name || r.Update.Number != tc.wantNumber {
				t.Errorf("update is %s, number %d; want %s, number %d", r.Update.Name, r.Update.Number, old.Name, tc.wantNumber)
			}
			var want *appsv1.ControllerRevision
			if tc.wantBump {
				want = old.DeepCopy()
				want.Revision = tc.wantNumber
			}
			if diff := cmp.Diff(want, r.Bump); diff != "" {
				t.Errorf("Bump (-want +got):\n%s", diff)
			}
			w.settle(t)
		})
	}
}

// Of several equal revisions, the one that pods were moved to stays: the other would restart them for nothing.
func TestEqualRevisionsKeepTheUpdateRevision(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	update := w.named("app:v2")
	// The same template, recorded a second time under the name that it would have had after a collision.
	w.set.Status.CollisionCount = new(int32(1))
	w.set.Status.UpdateRevision = ""
	delete(w.revisions, update.Name)
	duplicate := w.resolve(t).Create
	duplicate.Revision = 100
	w.revisions[update.Name] = update
	w.revisions[duplicate.Name] = duplicate
	if update.Name == duplicate.Name {
		t.Fatal("both are named", update.Name)
	}

	w.set.Status.UpdateRevision = update.Name
	w.scale(4)
	if r := w.resolve(t); r.Update.Name != update.Name {
		t.Errorf("update revision is %s, want %s", r.Update.Name, update.Name)
	}
	w.set.Status.UpdateRevision = ""
	if r := w.resolve(t); r.Update.Name != duplicate.Name {
		t.Errorf("without a status, the update revision is %s, want the newest, %s", r.Update.Name, duplicate.Name)
	}
	duplicate.Revision = update.Revision
	for range 20 {
		if r := w.resolve(t); r.Update.Name != min(update.Name, duplicate.Name) {
			t.Fatalf("with one number, the update revision is %s, want the first by name, %s", r.Update.Name, min(update.Name, duplicate.Name))
		}
	}
}

func TestChangeCause(t *testing.T) {
	t.Parallel()
	const key = "kubernetes.io/change-cause"
	w := rolledOut(t, 1)
	w.set.Annotations = map[string]string{key: "told afterwards"}
	r := w.settle(t)
	if got := w.revisions[r.Update.Name].Annotations[key]; got != "told afterwards" {
		t.Errorf("change cause is %q", got)
	}
	w.set.Annotations[key] = "told once more"
	w.revisions[r.Update.Name].Annotations = nil
	w.scale(7)
	if bump := w.resolve(t).Bump; bump == nil || bump.Annotations[key] != "told once more" {
		t.Errorf("without annotations: %v is written", bump)
	}
	w.revisions[r.Update.Name].Annotations = map[string]string{key: "told afterwards"}
	delete(w.set.Annotations, key)
	w.settle(t)
	if got := w.revisions[r.Update.Name].Annotations[key]; got != "told afterwards" {
		t.Errorf("change cause is %q once the set has none", got)
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	metav1.SetMetaDataAnnotation(&w.named("app:v2").ObjectMeta, revision.RejectedAnnotation, "true")
	if r := w.settle(t); !r.Rejected {
		t.Error("the verdict is not told")
	}
	w.scale(9)
	if r := w.settle(t); !r.Rejected {
		t.Error("scaling ends the verdict")
	}
	w.image("app:v1")
	if r := w.settle(t); r.Rejected {
		t.Error("the verdict is told of another revision")
	}
	w.image("app:v2")
	if r := w.settle(t); r.Rejected {
		t.Error("the verdict outlives another choice")
	}
}

func TestCurrentRevision(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		event        func(*world)
		wantTemplate bool
	}{
		"is recorded": {
			event: func(*world) {}, wantTemplate: true,
		},
		"is lost": {
			event: func(w *world) { delete(w.revisions, w.named("app:v2").Name) },
		},
		"was tampered with": {
			event: func(w *world) { w.tamper("app:v2", "evil") },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rolledOut(t, 3)
			current := w.set.Status.CurrentRevision
			tc.event(w)
			r := w.settle(t)
			if r.Current.Name != current || (r.Current.Template != nil) != tc.wantTemplate {
				t.Errorf("current is %s with template %v", r.Current.Name, r.Current.Template)
			}
			if _, known := r.Known[current]; known != tc.wantTemplate {
				t.Errorf("known: %t, want %t", known, tc.wantTemplate)
			}
		})
	}
}

// TestProofBeforeStatus prunes the revision that the status still names as current, because the next one is proven. Then the template
// changes before the status is written.
func TestProofBeforeStatus(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	proven := w.named("app:v2")
	w.revisions[proven.Name] = revision.Prove(proven)
	delete(w.revisions, w.named("app:v1").Name)
	w.image("app:v3")
	if r := w.settle(t); r.Current.Name != proven.Name || r.Current.Template == nil || r.Unproven {
		t.Errorf("current is %s with template %v, want %s", r.Current.Name, r.Current.Template, proven.Name)
	}
}

// TestNeverProvenAgain returns to the revision that the status names as current although it was never proven, right after another one was.
// The manager stops after each write of a revision, before that of the status.
func TestNeverProvenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.settle(t)
	w.image("app:v2")
	w.settle(t)
	proven := w.named("app:v2")
	w.revisions[proven.Name] = revision.Prove(proven)
	w.image("app:v1")
	status := w.set.Status
	w.apply(t, w.resolve(t))
	w.set.Status = status
	if r := w.settle(t); r.Current.Name != proven.Name || r.Unproven || r.Update.Number != 3 {
		t.Errorf("current is %s, update has number %d; want %s and 3", r.Current.Name, r.Update.Number, proven.Name)
	}
}

// TestNothingProvenAgain returns to the first revision, and no revision was ever proven.
func TestNothingProvenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	first := w.settle(t).Update.Name
	w.image("app:v2")
	w.settle(t)
	w.image("app:v1")
	if r := w.settle(t); r.Update.Name != first || r.Update.Number != 3 {
		t.Errorf("update is %s with number %d, want %s and 3", r.Update.Name, r.Update.Number, first)
	}
}

// TestProvenWithOneNumber always finds the same of two revisions that were proven with one number.
func TestProvenWithOneNumber(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 4)
	w.set.Status.CurrentRevision = ""
	names := []string{w.named("app:v1").Name, w.named("app:v2").Name, w.named("app:v3").Name}
	for _, name := range names {
		w.revisions[name].Annotations[revision.CompletedAnnotation] = "7"
	}
	for range 20 {
		if r := w.resolve(t); r.Current.Name != slices.Min(names) {
			t.Fatalf("current is %s, want the first of %v", r.Current.Name, names)
		}
	}
	w.set.Status.CurrentRevision = slices.Max(names)
	if r := w.resolve(t); r.Current.Name != slices.Max(names) {
		t.Errorf("current is %s, want %s, as the status says", r.Current.Name, slices.Max(names))
	}
}

// TestProvenServes does not ask whether the current revision served, when another template takes effect.
func TestProvenServes(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	w.complete()
	w.image("app:v3")
	in := w.input()
	in.Served = func(map[string]model.Revision, string, string) (served, near bool) { return false, true }
	r, err := revision.Resolve(in)
	if err != nil || r.Near || r.Current.Name != w.named("app:v2").Name {
		t.Errorf("near %t, current is %s, %v", r.Near, r.Current.Name, err)
	}
}

// TestLostProof loses the object of the current revision. If pods serve at it, the new object is not noted as one that was never proven.
func TestLostProof(t *testing.T) {
	t.Parallel()
	for available, want := range map[int32]bool{0: true, 1: false} {
		w := rolledOut(t, 2)
		w.complete()
		w.set.Status.UpdatedAvailableReplicas = available
		delete(w.revisions, w.set.Status.CurrentRevision)
		if _, noted := w.resolve(t).Create.Annotations[revision.CompletedAnnotation]; noted != want {
			t.Errorf("with %d available pods: noted as never proven: %t", available, noted)
		}
	}
}

// Whatever happens to the record of the update revision, the pods stay at it.
func TestUpdateRevisionSurvives(t *testing.T) {
	t.Parallel()
	scale := func(w *world) { w.scale(9) }
	loss := func(w *world) { delete(w.revisions, w.named("app:v2").Name) }
	tests := map[string]struct {
		events       []func(*world)
		wantRecorded bool
	}{
		"its loss":                        {events: []func(*world){loss}, wantRecorded: true},
		"its loss and an edit":            {events: []func(*world){loss, scale}, wantRecorded: true},
		"a forgery":                       {events: []func(*world){func(w *world) { w.tamper("app:v2", "evil") }}, wantRecorded: true},
		"a forgery and an edit":           {events: []func(*world){func(w *world) { w.tamper("app:v2", "evil") }, scale}, wantRecorded: true},
		"garbage":                         {events: []func(*world){func(w *world) { w.named("app:v2").Data.Raw = []byte("{") }}, wantRecorded: true},
		"nothing in it":                   {events: []func(*world){func(w *world) { w.named("app:v2").Data.Raw = nil }}, wantRecorded: true},
		"a collision count after the act": {events: []func(*world){loss, func(w *world) { w.set.Status.CollisionCount = new(int32(5)) }}, wantRecorded: true},
		"another object under its name":   {events: []func(*world){func(w *world) { w.taken.Insert(w.named("app:v2").Name) }, loss}},
		"another way to name revisions": {events: []func(*world){func(w *world) {
			loss(w)
			w.set.Status.UpdateRevision = "web-5d4c8b9f77"
		}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rolledOut(t, 2)
			for _, event := range tc.events {
				event(w)
			}
			update := w.set.Status.UpdateRevision
			first := w.resolve(t)
			if first.Update.Name != update || first.Update.Template == nil ||
				first.Update.Template.Spec.Containers[0].Image != "app:v2" {
				t.Errorf("at first, update is %v", first.Update)
			}
			last := w.settle(t)
			if last.Update.Name != update || last.Update.Template.Spec.Containers[0].Image != "app:v2" {
				t.Errorf("in the end, update is %v", last.Update)
			}
			if _, recorded := w.revisions[update]; recorded != tc.wantRecorded {
				t.Errorf("recorded: %v, want %v", recorded, tc.wantRecorded)
			}
			if unusable := w.unusable(last); unusable != nil {
				t.Errorf("in the end, %v cannot be used", unusable)
			}
		})
	}
}

// A forged object that refuses to go is not deleted again and again.
func TestImpostorThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	w.tamper("app:v2", "evil")
	impostor := w.named("evil")
	impostor.DeletionTimestamp = new(metav1.Unix(1, 0))
	r := w.resolve(t)
	if !writesNothing(r) || r.Update.Name != impostor.Name || r.Update.Template.Spec.Containers[0].Image != "app:v2" {
		t.Errorf("resolution is %+v", r)
	}
}

func TestNameOfARevisionTaken(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 1)
	w.image("app:v2")
	names := make(map[string]bool)
	for i := range int32(3) {
		r := w.resolve(t)
		if got := collisions(r); got != i {
			t.Errorf("after %d collisions, the count is %d", i, got)
		}
		if r.Create == nil || names[r.Create.Name] {
			t.Fatalf("create %v after %v", r.Create, names)
		}
		names[r.Create.Name] = true
		w.taken.Insert(r.Create.Name)
	}
	r := w.settle(t)
	if got := w.revisions[r.Update.Name].Annotations[revision.CollisionAnnotation]; got != "3" {
		t.Errorf("the revision says %q collisions, want 3", got)
	}

	// The count stays, and the name with it.
	w.taken.Clear()
	w.scale(3)
	if again := w.settle(t); again.Update.Name != r.Update.Name || collisions(again) != 3 {
		t.Errorf("update went from %s to %s, count is %d", r.Update.Name, again.Update.Name, collisions(again))
	}
}

// TestNameOfALostRevision returns to the content of the current revision, whose object is lost. Its pods carry the name that it had before
// other contents collided.
func TestNameOfALostRevision(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	w.set.Status.CollisionCount = new(int32(3))
	lost := w.named("app:v1").Name
	delete(w.revisions, lost)
	w.image("app:v1")
	if r := w.resolve(t); r.Create == nil || r.Create.Name != lost || r.Update.Name != lost {
		t.Errorf("create %v, want %s", r.Create, lost)
	}
}

func TestStrangeCollisionCounts(t *testing.T) {
	t.Parallel()
	for count, want := range map[int32]int32{-7: 1, math.MinInt32: 1, math.MaxInt32: 0} {
		t.Run(strconv.Itoa(int(count)), func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.set.Status.CollisionCount = &count
			w.taken.Insert(w.resolve(t).Create.Name)
			if r := w.settle(t); collisions(r) != want || w.unusable(r) != nil {
				t.Errorf("count is %d, want %d; %v cannot be used", collisions(r), want, w.unusable(r))
			}
		})
	}
}

func collisions(r revision.Resolution) int32 {
	if r.CollisionCount == nil {
		return 0
	}
	return *r.CollisionCount
}

func TestPrune(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limit *int32
		event func(*world)
		want  string // images, oldest first
	}{
		"the default limit is ten": {want: "v1"},
		"a limit":                  {limit: new(int32(3)), want: "v1 v2 v3 v4 v5 v6 v7 v8"},
		"a limit of none":          {limit: new(int32(0)), want: "v1 v2 v3 v4 v5 v6 v7 v8 v9 v10 v11"},
		"a negative limit":         {limit: new(int32(-1)), want: "v1 v2 v3 v4 v5 v6 v7 v8 v9 v10 v11"},
		"what pods use stays": {
			limit: new(int32(2)),
			event: func(w *world) { w.used.Insert(w.named("app:v1").Name, w.named("app:v10").Name) },
			want:  "v2 v3 v4 v5 v6 v7 v8",
		},
		"what the status names as current stays until it names another": {
			limit: new(int32(9)),
			event: func(w *world) { w.set.Status.CurrentRevision = w.named("app:v2").Name },
			want:  "v1",
		},
		"what is going is left alone": {
			limit: new(int32(8)),
			event: func(w *world) { w.named("app:v2").DeletionTimestamp = new(metav1.Unix(1, 0)) },
			want:  "v1 v3",
		},
		"equal numbers go by age": {
			limit: new(int32(9)),
			event: func(w *world) {
				w.named("app:v5").Revision = 1
				w.named("app:v1").CreationTimestamp = metav1.Unix(2, 0)
				w.named("app:v5").CreationTimestamp = metav1.Unix(1, 0)
			},
			want: "v5 v1",
		},
		"what cannot be used goes first": {
			limit: new(int32(9)),
			event: func(w *world) {
				w.tamper("app:v7", "app:v7777")
				w.named("app:v7777").Revision = math.MaxInt64
			},
			want: "v7777 v1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for v := 1; v <= 13; v++ {
				w.image(fmt.Sprintf("app:v%d", v))
				w.set.Spec.RevisionHistoryLimit = new(int32(100))
				w.complete()
				w.settle(t)
			}
			w.set.Spec.RevisionHistoryLimit = tc.limit
			if tc.event != nil {
				tc.event(w)
			}
			r := w.resolve(t)
			var got []string
			for _, name := range r.Prune {
				_, rest, _ := strings.Cut(string(w.revisions[name].Data.Raw), `"app:`)
				image, _, _ := strings.Cut(rest, `"`)
				got = append(got, image)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("Prune (-want +got):\n%s", diff)
			}
		})
	}
}

// The caller's memory is asked instead of the objects.
func TestDecodeIsReplaceable(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 2)
	in := w.input()
	asked := 0
	in.Decode = func(object *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []string, error) {
		asked++
		return revision.Decode(object)
	}
	r, err := revision.Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.resolve(t), r); diff != "" || asked != 2 {
		t.Errorf("asked %d times; resolution (-without +with):\n%s", asked, diff)
	}
}
