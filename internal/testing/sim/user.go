// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// user is the user of a script, who writes the set and names pods as on the strip.
type user struct {
	world *World
	// draft is the set as the script describes it, until it is created.
	draft   *v1beta1.RollSet
	created bool
	// acted is when the script last did something.
	acted time.Time
	// occupied is true while a foreign pod has a name that the set may want.
	occupied bool
}

// note adds a user's action to the strip.
func (u *user) note(what string) { u.world.Film.note(userActor, what) }

// podNamed returns the pod with a letter or ordinal on the strip; nil if it does not exist.
func (u *user) podNamed(name string) *corev1.Pod {
	for _, pod := range u.world.Pods() {
		if u.world.Name(pod) == name {
			return pod
		}
	}
	return nil
}

// everNamed returns a pod by its name on the film strip, also one that is gone; nil if there was none.
func (u *user) everNamed(name string) *corev1.Pod {
	for e := range u.world.Store.History(apiserver.Pods) {
		if pod, ok := e.New.(*corev1.Pod); ok && u.world.Name(pod) == name {
			return pod
		}
	}
	return nil
}

// nameOf returns the name of a pod by its name on the film strip. For an ordinal the name is known before the pod
// exists.
func (u *user) nameOf(id string) (name string, known bool) {
	if pod := u.podNamed(id); pod != nil {
		return pod.Name, true
	}
	return SetName + "-" + id, u.draft.Spec.PodIdentity == v1beta1.OrdinalIdentity
}

// draft returns the set that is to be created: one pod of app:v1.
func draft() *v1beta1.RollSet {
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: SetName}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": SetName}}
	set.Spec.Template.Labels = map[string]string{"app": SetName}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:v1"}}
	return set
}

// Edit changes the spec of the set, or of the draft before the set is created. The user reads the set first.
func (u *user) Edit(what string, change func(*v1beta1.RollSetSpec)) error {
	set := u.world.Set()
	if set == nil {
		change(&u.draft.Spec)
		return nil
	}
	edited := apiserver.Clone(set)
	change(&edited.Spec)
	u.world.VersionOf(&edited.Spec.Template)
	u.note(what)
	_, err := u.world.Store.Update(apiserver.Write{Actor: userActor}, edited)
	return err
}

// annotate sets one annotation of the set and removes another.
func (u *user) annotate(what, key, value, gone string) error {
	u.note(what)
	return edit(u.world, u.world.Set(), func(s *v1beta1.RollSet) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value)
		delete(s.Annotations, gone)
	})
}

// createSet creates the set that the script has described, unless it was created before.
func (u *user) createSet() {
	if u.created {
		return
	}
	u.created = true
	u.world.VersionOf(&u.draft.Spec.Template)
	u.note("create the set")
	if _, err := u.world.Store.Create(apiserver.Write{Actor: userActor}, u.draft); err != nil {
		apiserver.Unmodeled("a set that cannot be created: %v", err)
	}
}

// createAgain creates a deleted set again, as the script first described it.
func (u *user) createAgain() {
	if u.created && u.world.Set() == nil {
		u.created = false
		u.createSet()
	}
}
