// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// data holds the claims that the replicas of a set had when the set was last at rest, and the number of replicas. They stay the
// claims of the replicas until a user changes that number or the ordinals, or changes pods or claims.
type data struct {
	set      types.UID
	replicas int32
	claims   map[types.UID]string
	// doubtful is true once a manager's caches began in the past. Such a manager creates pods that already exist, and
	// deletes the surplus.
	doubtful bool
}

// see checks I17: neither a rollout nor a failure of pods deletes a claim of a replica.
func (d *data) see(c *Checker, e *apiserver.Entry) {
	switch set := c.world.Set(); {
	case set == nil || set.UID != d.set || set.DeletionTimestamp != nil || len(c.managers) > 1 || *set.Spec.Replicas < d.replicas, movesRange(e):
		*d = data{doubtful: d.doubtful}
	case *set.Spec.Replicas > d.replicas:
		d.replicas = *set.Spec.Replicas // when the user lowers it again, any replica may be deleted
	case e.Actor == User, e.Sent != nil:
		d.excuse(c.world, e)
	case e.Key.Kind == apiserver.Claims && e.New == nil || e.Verb == apiserver.Delete:
		if name, kept := d.claims[e.Old.GetUID()]; kept && e.Key.Kind == apiserver.Claims {
			c.violate(fmt.Sprintf("I17 data broken at resource version %d by %s: claim %s of a replica is deleted", e.Version, e.Actor, name))
		}
	}
	if set, ok := e.New.(*v1beta1.RollSet); ok && e.Subresource == "status" {
		d.establish(c, set)
	}
}

// movesRange reports whether a write changes which ordinals a set may use.
func movesRange(e *apiserver.Entry) bool {
	was, isSet := e.Old.(*v1beta1.RollSet)
	is, stays := e.New.(*v1beta1.RollSet)
	return isSet && stays && !apiequality.Semantic.DeepEqual([]any{was.Spec.Ordinals, was.Spec.ReserveOrdinals}, []any{is.Spec.Ordinals, is.Spec.ReserveOrdinals})
}

// excuse forgets the claims that a write concerns, of a user or of an admission policy.
func (d *data) excuse(world *Cluster, e *apiserver.Entry) {
	switch pod, isPod := e.New.(*corev1.Pod); {
	case e.Key.Kind == apiserver.Claims && e.Old != nil:
		delete(d.claims, e.Old.GetUID())
	case isPod && e.Subresource == "" && e.Verb != apiserver.Delete: // its labels may make it a pod of another owner, or surplus
		for _, key := range ClaimsOf(pod) {
			if claim := world.Store.Get(key); claim != nil {
				delete(d.claims, claim.GetUID())
			}
		}
		if e.Old == nil || OwnerOf(e.Old) != d.set {
			*d = data{doubtful: d.doubtful}
		}
	}
}

// establish records the claims of the pods as those of the replicas when the status says that the set is at rest, and
// it is.
func (d *data) establish(c *Checker, set *v1beta1.RollSet) {
	ready := meta.FindStatusCondition(set.Status.Conditions, "Ready")
	own, active := c.world.OwnPods(set)
	atRest := ready != nil && ready.Status == "True" && ready.ObservedGeneration == set.Generation && len(own) == len(active)
	complete := len(active) == int(*set.Spec.Replicas) && !slices.ContainsFunc(active, isSurge)
	changes := func(pod *corev1.Pod) bool { return matches(set, pod) != (OwnerOf(pod) == set.UID) } // it is to be released or adopted
	if !atRest || !complete || d.doubtful || len(c.managers) > 1 || slices.ContainsFunc(c.world.Pods(), changes) {
		return
	}
	unseen := func(pod *corev1.Pod) bool {
		return c.reconcile != nil && c.reconcile.View.Cached(apiserver.KeyOf(pod)) == nil
	}
	if slices.ContainsFunc(active, unseen) { // the status speaks of other pods
		return
	}
	now := data{set: set.UID, replicas: *set.Spec.Replicas, claims: c.world.claimsInUse(active)}
	for uid, name := range d.claims {
		// A replica at a revision without this template has no place for the claim. One with a new claim of the template has.
		left := func(t corev1.PersistentVolumeClaim) bool {
			prefix := t.Name + "-" + set.Name + "-"
			return strings.HasPrefix(name, prefix) && now.addsTo(d, prefix)
		}
		if now.claims[uid] == "" && d.replicas == now.replicas && slices.ContainsFunc(set.Spec.VolumeClaimTemplates, left) {
			c.violate("I17 data broken: no replica has claim " + name + " any more")
		}
	}
	*d = now
}

// addsTo reports whether d has a claim of a template that the data before had not.
func (d *data) addsTo(before *data, prefix string) bool {
	for uid, name := range d.claims {
		if strings.HasPrefix(name, prefix) && before.claims[uid] == "" {
			return true
		}
	}
	return false
}

// Doubt forgets the claims of replicas because caches begin in the past: managers then create pods that already exist,
// and delete the surplus.
func (c *Checker) Doubt() { c.data = data{doubtful: true} }

// claims judges what happens to claims.
type claims struct{ *verdict }

// mountsItsClaims checks that a new pod mounts the claims of its revision, even if the claim templates have changed
// since.
func mountsItsClaims(v *verdict) string {
	if !v.createsPod() {
		return ""
	}
	object := v.world.revision(v.New.GetLabels()[v1beta1.RevisionLabel])
	if object == nil {
		return ""
	}
	var data struct {
		Spec struct {
			VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object.Data.Raw, &data); err != nil {
		return ""
	}
	mounted := ClaimsOf(v.New)
	for _, t := range data.Spec.VolumeClaimTemplates {
		name := t.Name + "-" + v.New.GetName()
		if !slices.ContainsFunc(mounted, func(claim apiserver.Key) bool { return claim.Name == name }) {
			return "claim " + name + " is not mounted"
		}
	}
	if len(mounted) != len(data.Spec.VolumeClaimTemplates) {
		return fmt.Sprintf("%d claims are mounted, its revision has %d", len(mounted), len(data.Spec.VolumeClaimTemplates))
	}
	return ""
}

// asksInTurn checks what a manager asks of a claim that exists: what its template asks for, while nothing is paused, and for no more
// pods at a time than may be unavailable.
func asksInTurn(v *verdict) string {
	was, isClaim := v.Old.(*corev1.PersistentVolumeClaim)
	is, changed := v.New.(*corev1.PersistentVolumeClaim)
	if !isClaim || !changed || v.set == nil || apiequality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return ""
	}
	i := slices.IndexFunc(v.set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		return strings.HasPrefix(is.Name, t.Name+"-"+v.set.Name+"-")
	})
	if i < 0 {
		return "no template asks for it"
	}
	want := &v.set.Spec.VolumeClaimTemplates[i].Spec
	resizes := is.Spec.Resources.Requests.Storage().Cmp(*was.Spec.Resources.Requests.Storage()) != 0
	switch {
	case v.set.Spec.UpdateStrategy.RollingUpdate.Paused:
		return "the rollout is paused"
	case resizes && is.Spec.Resources.Requests.Storage().Cmp(*want.Resources.Requests.Storage()) != 0:
		return "it does not request what the template requests"
	case !resizes && !apiequality.Semantic.DeepEqual(is.Spec.VolumeAttributesClassName, want.VolumeAttributesClassName):
		return "it does not get the volume attributes class of the template"
	}
	undone := func(c *corev1.PersistentVolumeClaim) bool {
		if resizes {
			return c.Status.Capacity.Storage().Cmp(*c.Spec.Resources.Requests.Storage()) < 0
		}
		asked, has := c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName
		return asked != nil && (has == nil || *has != *asked)
	}
	if !undone(was) && (claims{v}).keptByPartition(is, &v.set.Spec.VolumeClaimTemplates[i], resizes) {
		return "the partition keeps it as it is"
	}
	limit := max(1, limitsOf(&v.set.Spec).maxUnavailable)
	if n := v.count(func(pod *corev1.Pod) bool { return claims{v}.waitsForClaim(pod, is, undone) }); !undone(was) && n >= limit {
		return fmt.Sprintf("the claims of %d pods are being changed already, and %d may be unavailable", n, limit)
	}
	return ""
}

// keptByPartition reports whether the partition keeps a claim as it is: its ordinal is among the first or, with random names, the claims
// of enough other updated pods ask for what the template asks for, as far as the manager knows.
func (v claims) keptByPartition(claim, template *corev1.PersistentVolumeClaim, resizes bool) bool {
	kept, prefix := v.world.Limits(v.set).Partition, template.Name+"-"+v.set.Name+"-"
	if v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		rank := slices.Index(v.inUse(), numberOrNone(strings.TrimPrefix(claim.Name, prefix)))
		return rank >= 0 && rank < kept
	}
	update := v.world.VersionOf(&v.set.Spec.Template)
	changed := func(pod *corev1.Pod) bool {
		other := v.knownClaim(apiserver.Key{Kind: apiserver.Claims, Namespace: pod.Namespace, Name: prefix + strings.TrimPrefix(pod.Name, v.set.Name+"-")})
		switch {
		case other == nil, other.Name == claim.Name, !IsActive(pod), isSurge(pod), v.world.Version(pod) != update:
			return false
		case resizes:
			return other.Spec.Resources.Requests.Storage().Cmp(*template.Spec.Resources.Requests.Storage()) >= 0
		default:
			return apiequality.Semantic.DeepEqual(other.Spec.VolumeAttributesClassName, template.Spec.VolumeAttributesClassName)
		}
	}
	return kept > 0 && v.count(changed) >= int(*v.set.Spec.Replicas)-kept
}

// knownClaim returns a claim as the cache shows it, or as the manager has written it since; nil if the manager knows of none.
func (v claims) knownClaim(key apiserver.Key) *corev1.PersistentVolumeClaim {
	claim, _ := v.view.Cached(key).(*corev1.PersistentVolumeClaim)
	for own := range v.view.Unseen(apiserver.Claims) {
		if own.Version < v.Version && own.Actor == v.Actor && own.Key == key {
			claim, _ = own.New.(*corev1.PersistentVolumeClaim)
		}
	}
	return claim
}

// waitsForClaim reports whether a claim of a pod that stays, as the manager knows it, is not as it was asked to be, and is none of the
// pod of another claim. One that has ended is replaced, and uses no claim.
func (v claims) waitsForClaim(pod *corev1.Pod, other client.Object, undone func(*corev1.PersistentVolumeClaim) bool) bool {
	mounted := ClaimsOf(pod)
	if !IsActive(pod) || slices.Contains(mounted, apiserver.KeyOf(other)) {
		return false
	}
	return slices.ContainsFunc(mounted, func(key apiserver.Key) bool {
		claim, ok := v.view.Cached(key).(*corev1.PersistentVolumeClaim)
		return ok && claim.Status.Phase == corev1.ClaimBound && undone(claim)
	})
}

// ownsPod reports whether a UID belongs to a pod of the set.
func (v claims) ownsPod(uid any) bool {
	return v.count(func(pod *corev1.Pod) bool { return pod.UID == uid }) > 0
}

// notIts returns why a pod of the set cannot have a claim.
func (v claims) notIts(claim client.Object) string {
	if claim == nil {
		return "does not exist"
	}
	if owner := OwnerOf(claim); owner != "" && owner != v.set.UID && !v.ownsPod(owner) {
		return fmt.Sprintf("is controlled by %q", owner)
	}
	if set, ok := claim.GetLabels()[v1beta1.SetLabel]; ok && set != v.set.Name {
		return "is of the set " + set
	} else if app := claim.GetLabels()["app"]; !ok && app != "" && app != v.set.Name {
		return "is of the workload " + app
	}
	return ""
}

// mountedTwice returns what is wrong if another pod mounts a claim of the new pod.
func (v claims) mountedTwice() string {
	wanted := ClaimsOf(v.New)
	for _, pod := range v.world.Pods() {
		i := slices.IndexFunc(ClaimsOf(pod), func(claim apiserver.Key) bool { return slices.Contains(wanted, claim) })
		if i >= 0 && apiserver.KeyOf(pod) != v.Key {
			return fmt.Sprintf("claim %s is mounted by %s", ClaimsOf(pod)[i].Name, pod.Name)
		}
	}
	return ""
}

// lacksClaims reports whether fewer identities than replicas have claims beside a claim that is being deleted. Those of surge,
// those that a scale-down left behind and those that are deleted with a pod do not count.
func (v claims) lacksClaims() bool {
	extra := func(claim client.Object) bool {
		labels, owner := claim.GetLabels(), metav1.GetControllerOfNoCopy(claim)
		return labels[v1beta1.SurgeLabel] == "true" || labels[v1beta1.LeftLabel] == "true" || owner != nil && owner.Kind == "Pod"
	}
	if extra(v.Old) {
		return false
	}
	id := v.Old.GetLabels()[v1beta1.InstanceIDLabel]
	have := map[string]bool{}
	for claim := range v.view.Cache(apiserver.Claims) {
		if labels := claim.GetLabels(); labels[v1beta1.SetLabel] == v.set.Name && !extra(claim) && claim.GetDeletionTimestamp() == nil {
			have[labels[v1beta1.InstanceIDLabel]] = true
		}
	}
	delete(have, id)
	return len(have) < int(*v.set.Spec.Replicas)
}
