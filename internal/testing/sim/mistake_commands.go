// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// mistakeCommands returns the commands about wrong clocks, caches that go back in time, a slow garbage collector, and users who make
// mistakes.
func mistakeCommands() []command {
	return []command{
		// skew sets the clocks of the managers: "skew -5s" is behind all others.
		forTime("skew", "skew", func(w *World, d time.Duration) {
			for _, m := range w.Managers {
				m.Skew = d
			}
		}),
		{"rewind", 1, rewind},
		{"late", 2, late},
		// The garbage collector rests for a while, as if it had much else to do: "slow-collector 30s".
		forTime("slow-collector", "slow-collector", func(w *World, d time.Duration) { w.turns.asleep[apiserver.GCActor] = w.Now().Add(d) }),
		{"garble", 1, noteEach("garble the state of", inplace.StateAnnotation, `{"revision":{"`)},
		{"mislabel", 1, labelEach("mislabel", v1beta1.RevisionLabel, "none")}, // no such revision exists
		{"forget", 0, forgetRevisions},
		{"forget-update", 0, forgetUpdateRevision},
		{"forget-claims", 0, forgetClaimTemplates},
		{"remember-claims", 0, rememberClaimTemplates},
		{"garble-revisions", 0, garbleRevisions},
		{"leave", 0, leave},
		{"lose-status", 0, loseStatus},
		{"api-default", 0, addDefault},
		{"create-set", 0, func(_ context.Context, w *World, _ []string) error { w.createAgain(); return nil }},
	}
}

// rewind restarts the managers with caches from a number of writes ago. With a kind, only the caches of that kind are
// old.
func rewind(ctx context.Context, w *World, args []string) error {
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	w.checker.Doubt()
	past, from := max(1, w.Store.Version()-n), w.Store.Version()
	if len(args) == 1 {
		from = past
	}
	for _, m := range w.Managers {
		if len(args) > 1 {
			m.Behind = map[apiserver.Kind]int64{apiserver.Kind(args[1]): past}
		}
		w.Restart(ctx, m, from)
		m.Behind = nil
	}
	return nil
}

// late delays the managers' caches of a kind for a while: "late Pod 3s".
func late(_ context.Context, w *World, args []string) error {
	d, err := time.ParseDuration(args[1])
	w.note("late " + args[0] + "s")
	for _, m := range w.Managers {
		w.turns.asleep[m.Name+args[0]] = w.Now().Add(d)
	}
	return err
}

// revisions returns all revisions in the namespace of the set, sorted by name.
func revisions(store *apiserver.Store) []*appsv1.ControllerRevision {
	all := slices.SortedFunc(apiserver.Each[*appsv1.ControllerRevision](store), byName)
	return slices.DeleteFunc(all, func(r *appsv1.ControllerRevision) bool { return r.Namespace != Namespace })
}

// forgetRevisions deletes all revisions.
func forgetRevisions(_ context.Context, w *World, _ []string) error {
	w.note("delete all revisions")
	for _, object := range revisions(w.Store) {
		if err := w.Store.Delete(apiserver.Write{Actor: userActor, Key: apiserver.KeyOf(object)}); err != nil {
			return err
		}
	}
	return nil
}

// forgetUpdateRevision deletes the update revision.
func forgetUpdateRevision(_ context.Context, w *World, _ []string) error {
	set := w.Set()
	if set == nil {
		return nil
	}
	key := apiserver.Key{Kind: apiserver.Revisions, Namespace: Namespace, Name: set.Status.UpdateRevision}
	if w.Store.Get(key) == nil {
		return nil
	}
	w.note("delete the update revision")
	return w.Store.Delete(apiserver.Write{Actor: userActor, Key: key})
}

// editRevisions edits all revisions, as a user may.
func (u *user) editRevisions(change func(*appsv1.ControllerRevision)) error {
	for _, object := range revisions(u.world.Store) {
		if err := edit(u.world, object, change); err != nil {
			return err
		}
	}
	return nil
}

// forgetClaimTemplates removes the claim templates from all revisions, as if an earlier release had written them.
func forgetClaimTemplates(_ context.Context, w *World, _ []string) error {
	w.note("take the claim templates off all revisions")
	return w.editRevisions(func(object *appsv1.ControllerRevision) { delete(object.Annotations, revision.ClaimTemplatesAnnotation) })
}

// garbleRevisions makes the annotations and labels of all revisions unreadable. Their data is immutable. What a revision that
// never worked says of that stays: it would keep pods where they are, and the rules ask the store, not a manager's cache.
func garbleRevisions(_ context.Context, w *World, _ []string) error {
	w.note("garble all revisions")
	return w.editRevisions(func(object *appsv1.ControllerRevision) {
		for _, note := range []string{revision.CompletedAnnotation, revision.EqualAnnotation, revision.ClaimTemplatesAnnotation} {
			if object.Annotations[note] != "0" {
				metav1.SetMetaDataAnnotation(&object.ObjectMeta, note, unreadable)
			}
		}
		object.Labels = nil
	})
}

// unreadable is the value of a garbled annotation.
const unreadable = `[{"`

// rememberClaimTemplates adds claim templates to all revisions that have none that can be read.
func rememberClaimTemplates(_ context.Context, w *World, _ []string) error {
	kept := v1beta1.RollSetSpec{}
	kept.Template.Spec.Containers = []corev1.Container{{}}
	for _, name := range []string{"data", "log", "store"} {
		setClaims(&kept, name)
	}
	note, err := json.Marshal(kept.VolumeClaimTemplates)
	if err != nil {
		return err
	}
	return w.editRevisions(func(object *appsv1.ControllerRevision) {
		if kept := object.Annotations[revision.ClaimTemplatesAnnotation]; kept == "" || kept == unreadable {
			metav1.SetMetaDataAnnotation(&object.ObjectMeta, revision.ClaimTemplatesAnnotation, string(note))
		}
	})
}

// loseStatus empties the status of the set, as a restore from a backup does.
func loseStatus(_ context.Context, w *World, _ []string) error {
	set := w.Set()
	if set == nil {
		return nil
	}
	w.note("the status is lost")
	emptied := apiserver.Clone(set)
	emptied.Status = v1beta1.RollSetStatus{ObservedGeneration: -1}
	_, err := w.Store.Update(apiserver.Write{Actor: userActor, Subresource: "status"}, emptied)
	return err
}

// addDefault plays a newer API server. It shows a default in the template of the set without a new generation or
// resource version. Managers see it when they list sets again.
func addDefault(ctx context.Context, w *World, _ []string) error {
	set := w.Set()
	if set == nil || set.Spec.Template.Spec.ShareProcessNamespace != nil {
		return nil
	}
	w.note("the API gets a default")
	shown := apiserver.Clone(set)
	apiserver.DefaultLate(&shown.Spec.Template.Spec)
	w.Store.Show(set, shown)
	return restart(ctx, w, nil)
}

// leave removes what is in the way of the set: strangers, lost pods whose end no kubelet will confirm, and labels that give claims to
// another set.
func leave(_ context.Context, w *World, _ []string) error {
	w.note("strangers leave, lost pods are given up")
	w.occupied = false
	for _, pod := range w.Pods() {
		if t := w.kubelets.find(pod.UID); t != nil && t.lost {
			if err := killPod(w, pod); err != nil {
				return err
			}
			continue
		}
		if pod.Labels["app"] != SetName && invariants.OwnerOf(pod) == "" && pod.DeletionTimestamp == nil {
			if err := deletePod(w, pod); err != nil {
				return err
			}
		}
	}
	return w.giveClaimsBack()
}

// giveClaimsBack writes the label of the set on claims that have that of another.
func (u *user) giveClaimsBack() error {
	for _, claim := range u.world.Store.Of(apiserver.Claims) {
		if set, labeled := claim.GetLabels()[v1beta1.SetLabel]; labeled && set != SetName {
			if err := edit(u.world, claim, func(c client.Object) { c.GetLabels()[v1beta1.SetLabel] = SetName }); err != nil {
				return err
			}
		}
	}
	return nil
}
