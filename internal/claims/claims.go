// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package claims plans what is done to the claims of a set beside creating them together with their pods.
//
// The rule: a claim is the set's if no other controller owns it and no other set's label is on it; everything else is
// left alone. One without the label of a set, as other workloads leave them behind, is taken for the set's by its name, and
// becomes the set's when a pod of the set uses it, unless its labels say that it belongs to another selector. What the
// retention policy wants deleted gets an owner, and the garbage collector deletes it with that owner: the set for
// whenDeleted, the pod that is scaled away for whenScaled. What was made for a surge pod goes with that pod, whatever the
// policy: the replicas of the set keep the claims that they had. Nothing else ends a claim, but for one that a set with
// random names has left over, since no pod will ever have its name again. A claim grows when its template asks for more, in
// the order of an update, and never shrinks. Which claims a pod mounts is for its revision to say.
package claims

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Name is the name of the claim that an identity has of a template.
func Name(set, template, id string) string { return template + "-" + set + "-" + id }

// SetsNamed are the names of the sets that a claim of this name could belong to: without knowing the templates one cannot
// tell where the name of the template ends and that of the set begins.
func SetsNamed(claim string) []string {
	end := strings.LastIndexByte(claim, '-') // ids have no dash
	if end < 0 {
		return nil
	}
	var sets []string
	for rest := claim[:end]; ; {
		_, set, found := strings.Cut(rest, "-")
		if !found {
			return sets
		}
		sets = append(sets, set)
		rest = set
	}
}

// IDOf returns the identity that a claim without labels has by its name: the one that makes it the claim of one of the named
// templates.
func IDOf(set string, templates []string, claim string) (id string, ok bool) {
	for _, template := range templates {
		if id, ok := strings.CutPrefix(claim, Name(set, template, "")); ok && !strings.Contains(id, "-") {
			return id, true
		}
	}
	return "", false
}

// Retention is the policy of a spec, its defaults resolved.
type Retention struct{ WhenDeleted, WhenScaled v1alpha1.ClaimRetentionPolicy }

// RetentionOf is the policy of a spec, its defaults resolved.
func RetentionOf(spec *v1alpha1.RollSetSpec) Retention {
	whenDeleted, whenScaled := spec.ClaimRetention()
	return Retention{WhenDeleted: whenDeleted, WhenScaled: whenScaled}
}

// Owner is the reference by which a set controls what it makes.
func Owner(set string, uid types.UID) metav1.OwnerReference {
	gvk := v1alpha1.GroupVersion.WithKind("RollSet")
	return *metav1.NewControllerRef(&metav1.ObjectMeta{Name: set, UID: uid}, gvk)
}

// Obstacle says why the pod of an identity cannot use a claim that has the right name; empty if it can.
func Obstacle(o *snapshot.Set, r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) string {
	owner := metav1.GetControllerOfNoCopy(claim)
	inUse := r.Live() && mounts(r.Pod, claim.Name)
	switch other, labeled := claim.Labels[v1alpha1.SetLabel]; {
	case owner != nil && owner.Kind == "Pod" && owner.Name == o.PodName(r.ID) && !ownedByPodOf(r, owner):
		return fmt.Sprintf("claim %s goes with an earlier pod %s, and is made anew when it is gone", claim.Name, owner.Name)
	case owner != nil && owner.UID != o.UID && !ownedByPodOf(r, owner):
		return fmt.Sprintf("claim %s belongs to %s %s; delete the claim, or rename the claim template", claim.Name, owner.Kind, owner.Name)
	case labeled && other != o.Name:
		return fmt.Sprintf("claim %s belongs to the set %s; delete the claim, or rename the claim template", claim.Name, other)
	case !labeled && contradicts(o.Spec.Selector, claim.Labels) && !inUse:
		return fmt.Sprintf("claim %s has labels that the selector does not match, so it is another workload's; "+
			"rename the claim template, or give the claim the label %s=%s", claim.Name, v1alpha1.SetLabel, o.Name)
	case claim.DeletionTimestamp != nil:
		return fmt.Sprintf("claim %s is being deleted and still in use", claim.Name)
	default:
		return ""
	}
}

// contradicts reports whether labels say that a claim belongs to something with another selector. StatefulSets label their
// claims with what their selectors match; a claim without labels says nothing.
func contradicts(selector *metav1.LabelSelector, labels map[string]string) bool {
	if selector == nil || len(labels) == 0 {
		return false
	}
	for key, value := range selector.MatchLabels {
		if labels[key] != value {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		value, ok := labels[r.Key]
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			return ok && !slices.Contains(r.Values, value)
		case metav1.LabelSelectorOpNotIn:
			return ok && slices.Contains(r.Values, value)
		case metav1.LabelSelectorOpDoesNotExist:
			return ok
		case metav1.LabelSelectorOpExists:
			return false
		default:
			return false
		}
	})
}

// ownedByPodOf says whether an owner is the replica's own pod, to which the claim was handed over.
func ownedByPodOf(r *snapshot.Replica, owner *metav1.OwnerReference) bool {
	return r.Pod != nil && owner.UID == r.Pod.UID
}

// Wanted are the names of the claims that a pod would mount that is made for a replica without one now.
func Wanted(o *snapshot.Set, w *desired.State, r *snapshot.Replica) []string {
	var names []string
	revision, _ := w.ComesBackAt(o, r)
	for _, claim := range o.Known[revision].Claims {
		names = append(names, Name(o.Name, claim.Name, r.ID))
	}
	return names
}

// Lost says which claim a pod of a revision would mount that neither exists nor can be made, and what to do about it; empty if
// there is none.
func Lost(o *snapshot.Set, id, revision string) string {
	for _, claim := range o.Known[revision].Claims {
		name := Name(o.Name, claim.Name, id)
		if claim.Template == nil && !exists(o, id, name) {
			return fmt.Sprintf("claim %s does not exist, and the claim template %s of revision %s is lost; "+
				"put it back into spec.volumeClaimTemplates, or create the claim", name, claim.Name, revision)
		}
	}
	return ""
}

// exists reports whether an identity has a claim of a name.
func exists(o *snapshot.Set, id, name string) bool {
	return slices.ContainsFunc(o.Replicas, func(r snapshot.Replica) bool { return r.ID == id && find(&r, name) != nil })
}

// Plan says what to do to the claims of a set, in the knowledge of what happens to its pods. Its actions are to be
// carried out before those of pods: a pod that takes its claims with it must own them before it goes.
func Plan(o *snapshot.Set, w *desired.State, pods action.Plan) action.Plan {
	var p action.Plan
	c := planner{set: o, keep: RetentionOf(o.Spec), deleted: deleted(pods), complete: w.Missing == 0 && len(w.Places) == 0}
	for i := range o.Replicas {
		r := &o.Replicas[i]
		c.own(r, &p)
		c.restore(r, &p)
		c.removeLeftover(r, &p)
	}
	grow(o, &p)
	return p
}

type planner struct {
	set     *snapshot.Set
	keep    Retention
	deleted map[types.UID]action.Cause
	// complete is true when no identity waits for a pod.
	complete bool
}

// deleted are the pods that the plan deletes, and why.
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
func (c planner) own(r *snapshot.Replica, p *action.Plan) {
	if len(r.Claims) == 0 {
		return
	}
	if r.Terminating && !c.set.Ordinal() {
		return // only when it was deleted was it known whether a successor is to have its claims
	}
	for _, claim := range r.Claims {
		want, reason := c.owner(r, claim)
		left, isLeft := c.leaves(r, claim), snapshot.Left(claim)
		switch _, labeled := claim.Labels[v1alpha1.SetLabel]; {
		case Obstacle(c.set, r, claim) != "":
		case !labeled && r.Live() && mounts(r.Pod, claim.Name):
			p.Add(action.OwnClaim{ID: r.ID, Claim: claim, Owner: want, Left: left, Reason: "a pod of the set uses it"})
		case snapshot.Surges(claim) && r.Live() && !r.Surge:
			p.Add(action.OwnClaim{ID: r.ID, Claim: claim, Owner: want, Left: left, Reason: "its pod stays"})
		case labeled && (left != isLeft || !c.isOwnedBy(claim, r, want)):
			p.Add(action.OwnClaim{ID: r.ID, Claim: claim, Owner: want, Left: left, Reason: reason})
		}
	}
}

// owner returns the controller that a claim of a replica should have; nil if none. What was made for surge goes with it,
// whatever the policy.
func (c planner) owner(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) (owner *metav1.OwnerReference, reason string) {
	surge := r.Surge && snapshot.Surges(claim)
	switch {
	case c.isScaledAway(r) && (surge || c.keep.WhenScaled == v1alpha1.DeleteClaims):
		return metav1.NewControllerRef(r.Pod, corev1.SchemeGroupVersion.WithKind("Pod")), "deleted together with the pod"
	case surge || c.keep.WhenDeleted == v1alpha1.DeleteClaims:
		return new(Owner(c.set.Name, c.set.UID)), "retention policy"
	default:
		return nil, "retention policy"
	}
}

// leaves reports whether a claim is, or is about to be, left behind, by a scale-down or because a stranger has the name of
// its pod and another identity takes the place. With ordinals the number says so.
func (c planner) leaves(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) bool {
	if r.Pod == nil {
		_, blocked := c.set.Blocked[r.ID]
		return snapshot.Left(claim) || blocked && !c.set.Ordinal() && !r.Surge
	}
	return !c.set.Ordinal() && c.isScaledAway(r) && !snapshot.Surges(claim) && c.keep.WhenScaled == v1alpha1.RetainClaims
}

// isScaledAway says whether a replica's pod goes and its identity is not wanted any more. With ordinals it does not
// matter why the pod goes, or who deleted it.
func (c planner) isScaledAway(r *snapshot.Replica) bool {
	if r.Pod == nil {
		return false
	}
	cause, goes := c.deleted[r.Pod.UID]
	if !c.set.Ordinal() {
		return goes && cause == action.ScaleDown
	}
	_, used := c.set.InUse(r.Ordinal)
	return !used && (goes || r.Terminating)
}

// isOwnedBy says whether a claim has the one reference of ours that it should have, as its controller: the garbage
// collector heeds references that control nothing just as well.
func (c planner) isOwnedBy(claim *corev1.PersistentVolumeClaim, r *snapshot.Replica, want *metav1.OwnerReference) bool {
	has := false
	for i := range claim.OwnerReferences {
		ref := &claim.OwnerReferences[i]
		if ref.UID != c.set.UID && !ownedByPodOf(r, ref) {
			continue
		}
		if has || want == nil || ref.UID != want.UID || ref.Controller == nil || !*ref.Controller {
			return false
		}
		has = true
	}
	return has == (want != nil)
}

// restore makes the claims anew that were deleted under a pod that has not started.
func (c planner) restore(r *snapshot.Replica, p *action.Plan) {
	if !r.Live() || r.Phase != corev1.PodPending {
		return
	}
	for _, claim := range c.set.Known[r.Revision].Claims {
		name := Name(c.set.Name, claim.Name, r.ID)
		if claim.Template != nil && find(r, name) == nil && mounts(r.Pod, name) {
			p.Add(action.CreateClaims{ID: r.ID, Revision: r.Revision, Reason: "claim " + name + " is gone"})
			return
		}
	}
}

// fresh is the age up to which a claim without a pod is not taken for a leftover: the cache of pods may be behind.
const fresh = time.Minute

// GoesWhenLeft reports whether the claims of an identity without a pod are to be deleted if no pod needs them.
func GoesWhenLeft(o *snapshot.Set, r *snapshot.Replica) bool {
	return r.Surge || RetentionOf(o.Spec).WhenScaled == v1alpha1.DeleteClaims
}

// removeLeftover deletes the claims of an identity that has no pod and that no pod will have again.
func (c planner) removeLeftover(r *snapshot.Replica, p *action.Plan) {
	if c.set.Ordinal() || r.Pod != nil || !c.complete || !GoesWhenLeft(c.set, r) {
		return
	}
	if r.NameTaken {
		p.Wake(fresh) // it may mount them, and nothing tells when it is gone
		return
	}
	for _, claim := range r.Claims {
		owner := metav1.GetControllerOfNoCopy(claim)
		if owner == nil || owner.UID != c.set.UID || claim.DeletionTimestamp != nil {
			continue // anybody can copy labels: only an owner reference says that a claim may go
		}
		if wait := fresh - c.set.Now.Sub(claim.CreationTimestamp.Time); wait > 0 {
			p.Wake(wait)
			continue
		}
		p.Add(action.DeleteClaim{ID: r.ID, Claim: claim, Reason: "retention policy, and no pod needs it"})
	}
}

// find returns the replica's claim of a name; nil if it has none.
func find(r *snapshot.Replica, name string) *corev1.PersistentVolumeClaim {
	for _, claim := range r.Claims {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// mounts says whether a pod has a claim of that name among its volumes.
func mounts(pod *corev1.Pod, claim string) bool {
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil && source.ClaimName == claim {
			return true
		}
	}
	return false
}
