// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package claims plans changes to the claims of a set. Creating claims together with their pods is not part of it.
//
// The rule: a claim belongs to the set if no other controller owns it and it has no other set's label. Everything else is
// left alone. A claim without any set's label, as other workloads leave it behind, is recognized by its name. The set takes
// it over when a pod of the set uses it, unless its labels name another selector.
//
// A claim that the retention policy wants deleted gets an owner, and the garbage collector deletes it with that owner: the
// set for whenDeleted, the scaled-down pod for whenScaled. A claim that was made for a surge pod goes with that pod under
// any policy, because the replicas of the set keep the claims they had. Nothing else deletes a claim. If a pod with another
// identity takes the place of a pod, this is no scale-down: unneeded claims are marked, and used before new ones are made.
//
// A claim grows when its template asks for more, and gets another volume attributes class, in the order of an update. It never
// shrinks; only a growth that is not done is taken back. A pod's revision decides which claims it mounts.
package claims

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Retention is the claim retention policy of a spec, with its defaults resolved.
type Retention struct{ WhenDeleted, WhenScaled v1beta1.ClaimRetentionPolicy }

// RetentionOf returns the claim retention policy of a spec, with its defaults resolved.
func RetentionOf(spec *v1beta1.RollSetSpec) Retention {
	whenDeleted, whenScaled := spec.ClaimRetention()
	return Retention{WhenDeleted: whenDeleted, WhenScaled: whenScaled}
}

// Owner returns the reference by which a set controls what it makes.
func Owner(set string, uid types.UID) metav1.OwnerReference {
	gvk := v1beta1.GroupVersion.WithKind("RollSet")
	return *metav1.NewControllerRef(&metav1.ObjectMeta{Name: set, UID: uid}, gvk)
}

// Wanted returns the names of the claims that a pod would mount if it were created now for a replica without one.
func Wanted(snap *snapshot.Set, w *desired.State, r *snapshot.Replica) []string {
	var names []string
	revision, _ := w.ComesBackAt(snap, r)
	for _, claim := range snap.Known[revision].Claims {
		names = append(names, identity.ClaimName(snap.Name, claim.Name, r.ID))
	}
	return names
}

// Plan plans the changes to the claims of a set, given what happens to its pods. Its actions must come before those of the
// pods: a pod that takes its claims with it must own them before it is deleted.
func Plan(snap *snapshot.Set, w *desired.State, pods action.Plan) action.Plan {
	var p action.Plan
	if !snap.HasClaims() {
		return p
	}
	c := planner{snap: snap, keep: RetentionOf(snap.Spec), deleted: deleted(pods), complete: w.Missing == 0 && len(w.Places) == 0}
	if !snap.Ordinal() {
		c.surplus = c.findSurplus()
		c.findStoodIn()
	}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		c.own(r, &p)
		c.restore(r, &p)
		c.removeSurge(r, &p)
	}
	change(snap, &p)
	return p
}

type planner struct {
	snap    *snapshot.Set
	keep    Retention
	deleted map[types.UID]action.Cause
	// complete is true if no identity waits for a pod.
	complete bool
	// surplus are the identities of terminating pods that spec.replicas leaves no place for: the pods were lost before the set was
	// scaled down.
	surplus sets.Set[string]
	// crowded is true if there are more pods than spec.replicas. stoodIn are the identities of pods that are scaled away because
	// as many pods came back for which they, or others, stand in.
	crowded bool
	stoodIn sets.Set[string]
}

// findStoodIn sets which of the pods that are scaled away keep their claims: as many as there are pods with claims that were
// marked before they came back, these first. No scale-down left those.
func (c *planner) findStoodIn() {
	active, back := 0, 0
	var marked, others []string
	for i := range c.snap.Replicas {
		r := &c.snap.Replicas[i]
		if !r.Active() || r.Surge {
			continue
		}
		active++
		isMarked := slices.ContainsFunc(r.Claims, snapshot.Left)
		if isMarked {
			back++
		}
		switch {
		case !c.isScaledAway(r):
		case isMarked:
			marked = append(marked, r.ID)
		default:
			others = append(others, r.ID)
		}
	}
	if c.crowded = active > c.snap.Limits.Replicas; c.crowded {
		away := slices.Concat(marked, others)
		c.stoodIn = sets.New(away[:min(back, len(away))]...)
	}
}

// findSurplus returns the identities of terminating pods whose claims are more than spec.replicas identities need. Nothing else takes
// their place away from them, because a scale-down deletes only active pods.
func (c *planner) findSurplus() sets.Set[string] {
	have := 0
	var terminating []string
	for i := range c.snap.Replicas {
		switch r := &c.snap.Replicas[i]; {
		case r.Pod == nil || r.Surge || c.isScaledAway(r) || !slices.ContainsFunc(r.Claims, snapshot.Stays):
		case r.Terminating:
			terminating = append(terminating, r.ID)
		default:
			have++
		}
	}
	return sets.New(terminating[min(len(terminating), max(0, c.snap.Limits.Replicas-have)):]...)
}

// deleted returns the pods that the plan deletes, each with its cause.
func deleted(pods action.Plan) map[types.UID]action.Cause {
	causes := map[types.UID]action.Cause{}
	for _, a := range pods.Actions {
		if d, ok := a.(action.Delete); ok {
			causes[d.Pod.UID] = d.Cause
		}
	}
	return causes
}

// own gives the claims of a replica the controller that the policy wants.
func (c *planner) own(r *snapshot.Replica, p *action.Plan) {
	if len(r.Claims) == 0 {
		return
	}
	if r.Terminating && !c.snap.Ordinal() && !c.surplus.Has(r.ID) {
		c.unmark(r, p)
		return // its owners were settled when it was deleted; only then was it known whether a successor gets its claims
	}
	for _, claim := range r.Claims {
		if c.snap.ClaimObstacle(r, claim) != "" {
			continue
		}
		want, reason := c.owner(r, claim)
		left := c.leaves(r, claim)
		if reason = c.whyOwn(r, claim, want, left, reason); reason != "" {
			p.Add(action.OwnClaim{ID: r.ID, Claim: claim, Owner: want, Left: left, Reason: reason})
		}
	}
}

// whyOwn returns why a claim must be changed to have the wanted owner and marks, given why that owner is wanted; empty if it has them.
func (c *planner) whyOwn(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim, want *metav1.OwnerReference, left bool, reason string) string {
	isLeft, labeled := snapshot.Left(claim), c.isLabeled(r, claim)
	switch {
	case !labeled && r.Pod != nil && podstate.Mounts(r.Pod, claim.Name):
		return "a pod of the set uses it"
	case snapshot.Surges(claim) && !r.Surge && (r.Active() || r.Terminating && c.snap.Ordinal()):
		return "its pod stays"
	case !labeled || left == isLeft && c.isOwnedBy(claim, r, want):
		return ""
	case left && !isLeft && r.Pod == nil:
		return "kept for a pod to come"
	default:
		return reason
	}
}

// unmark removes the mark of surge from the claims of a terminating pod that is none. Once the pod is gone, only its claims say so,
// and those of surge are deleted.
func (c *planner) unmark(r *snapshot.Replica, p *action.Plan) {
	for _, claim := range r.Claims {
		owner := metav1.GetControllerOf(claim)
		if snapshot.Surges(claim) && !r.Surge && (owner == nil || owner.UID == c.snap.UID) {
			p.Add(action.OwnClaim{ID: r.ID, Claim: claim, Owner: owner, Left: snapshot.Left(claim), Reason: "its pod is no surge"})
		}
	}
}

// isLabeled reports whether a claim has the labels of the set and the identity. One without an identity has its name for it.
func (c *planner) isLabeled(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) bool {
	key := v1beta1.InstanceIDLabel
	if c.snap.Ordinal() {
		key = v1beta1.PodIndexLabel
	}
	id, named := claim.Labels[key]
	return claim.Labels[v1beta1.SetLabel] == c.snap.Name && (!named || id == r.ID)
}

// owner returns the controller that a claim of a replica should have; nil if none. A claim made for surge belongs to the
// surge pod under any policy.
func (c *planner) owner(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) (owner *metav1.OwnerReference, reason string) {
	surge := r.Surge && snapshot.Surges(claim)
	switch {
	case c.isScaledAway(r) && (surge || c.keep.WhenScaled == v1beta1.DeleteClaims && !c.stoodIn.Has(r.ID)):
		return metav1.NewControllerRef(r.Pod, corev1.SchemeGroupVersion.WithKind("Pod")), "deleted together with the pod"
	case surge || c.keep.WhenDeleted == v1beta1.DeleteClaims:
		return new(Owner(c.snap.Name, c.snap.UID)), "retention policy"
	default:
		return nil, "retention policy"
	}
}

// leaves reports whether a claim is, or is about to be, left behind: by a scale-down, because another identity has taken the place
// of its pod, or because no pod was ever made for it. With ordinals only the number decides. The mark stays on the claims of a
// pod that came back until it is decided which pod goes for it.
func (c *planner) leaves(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) bool {
	_, blocked := c.snap.Blocked[r.ID]
	switch {
	case c.snap.Ordinal():
		return r.Pod == nil && snapshot.Left(claim)
	case r.Pod == nil:
		return snapshot.Left(claim) || (blocked || c.complete) && !r.Surge
	case c.isScaledAway(r) && !snapshot.Surges(claim) && (c.keep.WhenScaled == v1beta1.RetainClaims || c.stoodIn.Has(r.ID)):
		return true
	default:
		return c.crowded && snapshot.Left(claim)
	}
}

// isScaledAway reports whether a replica's pod is deleted and its identity is no longer wanted. With ordinals it does not
// matter why the pod goes, or who deleted it.
func (c *planner) isScaledAway(r *snapshot.Replica) bool {
	if r.Pod == nil {
		return false
	}
	cause, goes := c.deleted[r.Pod.UID]
	if !c.snap.Ordinal() {
		return goes && cause == action.ScaleDown || c.surplus.Has(r.ID)
	}
	return c.snap.Condemned(r) && (goes || r.Terminating)
}

// isOwnedBy reports whether the only reference to the set or its pod in a claim is the wanted one, as its controller. The
// garbage collector also follows references that control nothing.
func (c *planner) isOwnedBy(claim *corev1.PersistentVolumeClaim, r *snapshot.Replica, want *metav1.OwnerReference) bool {
	has := false
	for i := range claim.OwnerReferences {
		ref := &claim.OwnerReferences[i]
		if ref.UID != c.snap.UID && !r.PodOwns(ref) {
			continue
		}
		if has || want == nil || ref.UID != want.UID || ref.Controller == nil || !*ref.Controller {
			return false
		}
		has = true
	}
	return has == (want != nil)
}

// restore recreates claims that were deleted under a pod that has not started.
func (c *planner) restore(r *snapshot.Replica, p *action.Plan) {
	if !r.Active() || r.Phase != corev1.PodPending {
		return
	}
	for _, claim := range c.snap.Known[r.Revision].Claims {
		name := identity.ClaimName(c.snap.Name, claim.Name, r.ID)
		if claim.Template != nil && r.Claim(name) == nil && podstate.Mounts(r.Pod, name) {
			p.Add(action.CreateClaims{ID: r.ID, Revision: r.Revision, Reason: "claim " + name + " is gone"})
			return
		}
	}
}

// fresh is the age below which claims for surge without a pod are not deleted, because the cache of pods may be behind.
const fresh = time.Minute

// removeSurge deletes the claims that were made for a surge pod, once it is gone and surge needs them no more.
func (c *planner) removeSurge(r *snapshot.Replica, p *action.Plan) {
	if r.Pod != nil || !r.Surge || !c.complete {
		return
	}
	if r.NameTaken {
		p.Wake(fresh) // a pod may mount them, and no event comes when it is gone
		return
	}
	for _, claim := range r.Claims {
		owner := metav1.GetControllerOfNoCopy(claim)
		if owner == nil || owner.UID != c.snap.UID || claim.DeletionTimestamp != nil {
			continue // any client can copy labels; only an owner reference proves that a claim may go
		}
		if !c.hasTemplate(r, claim) {
			continue // the template was removed, and the revision that had it is lost, but pods may want it again
		}
		if wait := fresh - c.snap.Now.Sub(claim.CreationTimestamp.Time); wait > 0 {
			p.Wake(wait)
			continue
		}
		p.Add(action.DeleteClaim{ID: r.ID, Claim: claim, Reason: "made for surge, and no pod needs it"})
	}
}

// hasTemplate reports whether a revision has the template of a claim, the revision of the spec among them.
func (c *planner) hasTemplate(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) bool {
	for _, revision := range c.snap.Known {
		for _, template := range revision.Claims {
			if identity.ClaimName(c.snap.Name, template.Name, r.ID) == claim.Name {
				return true
			}
		}
	}
	return false
}
