// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
)

// claimTemplate returns a template with a volume mode that distinguishes it.
func claimTemplate(name, mode string) corev1.PersistentVolumeClaim {
	t := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Spec.VolumeMode = new(corev1.PersistentVolumeMode(mode))
	return t
}

// describe formats the claim templates of a revision as name=mode, without the mode if the template is lost.
func describe(r revision.Resolution, name string) string {
	var all []string
	for _, c := range r.Known[name].Claims {
		text := c.Name
		if c.Template != nil {
			text += "=" + string(*c.Template.Spec.VolumeMode)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// TestClaimTemplates checks which claims the pods of a revision have after the claim templates in the spec changed.
func TestClaimTemplates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		edit func(*v1beta1.RollSetSpec)
		// note changes the annotation of the current revision.
		note            func(string) string
		current, update string
	}{
		"as they were": {
			edit:    func(*v1beta1.RollSetSpec) {},
			current: "log=old data=old", update: "log=old data=old",
		},
		"one is removed": {
			edit:    func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates = s.VolumeClaimTemplates[:1] },
			current: "log=old data=old", update: "log=old",
		},
		"all are removed": {
			edit:    func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates = nil },
			current: "data=old log=old",
		},
		"one is renamed": {
			edit:    func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates[1].Name = "store" },
			current: "log=old data=old", update: "log=old store=old",
		},
		"one is changed, for new claims at every revision": {
			edit: func(s *v1beta1.RollSetSpec) {
				s.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", "new")}
			},
			current: "data=new log=old", update: "data=new",
		},
		"an earlier version made the revision": {
			edit:    func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates = s.VolumeClaimTemplates[:1] },
			note:    func(string) string { return "" },
			current: "log=old data", update: "log=old",
		},
		"a user edits the annotation": {
			edit:    func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates = s.VolumeClaimTemplates[:1] },
			note:    func(string) string { return `[{"metadata":{"name":"data"}` },
			current: "log=old data", update: "log=old",
		},
		"a user adds to the annotation": {
			edit: func(s *v1beta1.RollSetSpec) { s.VolumeClaimTemplates = nil },
			note: func(note string) string {
				return strings.Replace(note, "[", `[{"metadata":{"name":"stolen"},"spec":{"volumeMode":"x"}},`, 1)
			},
			current: "data=old log=old",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.edit(func(s *v1beta1.RollSetSpec) {
				s.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("log", "old"), claimTemplate("data", "old")}
			})
			w.settle(t)
			w.complete()
			if object := w.named("app:v1"); tt.note != nil {
				object.Annotations[revision.ClaimTemplatesAnnotation] = tt.note(object.Annotations[revision.ClaimTemplatesAnnotation])
			}
			w.edit(tt.edit)
			w.settle(t)
			r := w.resolve(t)
			if diff := cmp.Diff([]string{tt.current, tt.update}, []string{describe(r, r.Current.Name), describe(r, r.Update.Name)}); diff != "" {
				t.Errorf("claim templates of the current and the update revision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(r.Known[r.Current.Name], r.Current); diff != "" {
				t.Errorf("the current revision is not the one among all (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClaimTemplatesAreNoted covers a revision that an earlier version made, and annotations that users edited. The annotation is
// written while the spec has the templates, and does not make it another revision.
func TestClaimTemplatesAreNoted(t *testing.T) {
	t.Parallel()
	const untouched, removed = "untouched", ""
	for name, tt := range map[string]struct {
		note string
		want bool
	}{
		"as it was written":           {note: untouched},
		"an earlier version made it":  {note: removed, want: true},
		"it is unreadable":            {note: `[{"`, want: true},
		"it has no template":          {note: `[]`, want: true},
		"it is null":                  {note: `null`, want: true},
		"it lacks one template":       {note: `[{"metadata":{"name":"data"},"spec":{}}]`, want: true},
		"it has all, and another one": {note: `[{"metadata":{"name":"log"}},{"metadata":{"name":"data"}},{"metadata":{"name":"x"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.edit(func(s *v1beta1.RollSetSpec) {
				s.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", "old"), claimTemplate("log", "old")}
			})
			w.settle(t)
			w.complete()
			object := w.named("app:v1")
			note := object.Annotations[revision.ClaimTemplatesAnnotation]
			switch tt.note {
			case untouched:
			case removed:
				delete(object.Annotations, revision.ClaimTemplatesAnnotation)
			default:
				object.Annotations[revision.ClaimTemplatesAnnotation] = tt.note
			}
			r := w.resolve(t)
			if got := r.Bump != nil; got != tt.want {
				t.Fatalf("written again: %t", got)
			}
			if kept := new(revision.Decoder).KeepsClaims(object); kept == tt.want {
				t.Errorf("KeepsClaims() = %t", kept)
			}
			if !tt.want {
				return
			}
			if r.Bump.Name != object.Name || r.Bump.Revision != object.Revision {
				t.Fatalf("Bump = %v, want the note on %s", r.Bump, object.Name)
			}
			if diff := cmp.Diff(note, r.Bump.Annotations[revision.ClaimTemplatesAnnotation]); diff != "" {
				t.Errorf("note (-want +got):\n%s", diff)
			}
			w.settle(t)
			// An annotation that would not fit is not retried.
			w.named("app:v1").Annotations[revision.ClaimTemplatesAnnotation] = tt.note
			w.edit(func(s *v1beta1.RollSetSpec) {
				s.VolumeClaimTemplates[0].Annotations = map[string]string{"long": strings.Repeat("x", 200_000)}
			})
			if r := w.resolve(t); r.Bump != nil {
				t.Error("a note of 200,000 bytes is to be written")
			}
		})
	}
}
