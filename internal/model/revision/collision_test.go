// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// No two templates with equal digests are known, so here all digests collide, as long as nothing has collided yet.
func TestDigestsCollide(t *testing.T) {
	t.Parallel()
	weak := func(canonical []byte, collisions int32) string {
		if collisions == 0 {
			return "same"
		}
		return digest(canonical, collisions)
	}
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}
	var revisions []*appsv1.ControllerRevision
	wantCount := []int32{0, 1, 1, 1}
	for i, image := range []string{"app:v1", "app:v2", "app:v3", "app:v1"} {
		set.Generation++
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
		r, err := resolve(Input{Set: set, Revisions: revisions}, weak)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range revisions {
			if _, known := r.Known[object.Name]; !known {
				t.Errorf("%s: %s cannot be used", image, object.Name)
			}
		}
		var count int32
		if r.CollisionCount != nil {
			count = *r.CollisionCount
		}
		if count != wantCount[i] {
			t.Errorf("%s: the count is %d, want %d", image, count, wantCount[i])
		}
		if got := r.Update.Template.Spec.Containers[0].Image; got != image {
			t.Errorf("%s: update holds %s", image, got)
		}
		if isNew := i < 3; (r.Create != nil) != isNew {
			t.Errorf("%s: Create = %v", image, r.Create)
		}
		if r.Create != nil {
			revisions = append(revisions, r.Create)
		}
		set.Status.CollisionCount = r.CollisionCount
		set.Status.ObservedGeneration = set.Generation
		set.Status.UpdateRevision = r.Update.Name
	}
	if revisions[0].Name == revisions[1].Name || revisions[1].Name == revisions[2].Name {
		t.Errorf("names are %s, %s, %s", revisions[0].Name, revisions[1].Name, revisions[2].Name)
	}
}
