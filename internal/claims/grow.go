// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// kind is a kind of change that templates ask of claims that exist. Each kind has turns of its own, so that a storage driver that
// does not carry out one kind holds up none of the other.
type kind struct {
	// underway reports whether the storage behind a claim is still being changed.
	underway func(*corev1.PersistentVolumeClaim) bool
	// has reports whether a claim asks for the values of its template.
	has func(template, claim *corev1.PersistentVolumeClaim) bool
	// due returns the write by which a claim gets the values of its template; nil if it has them.
	due func(snap *snapshot.Set, template, claim *corev1.PersistentVolumeClaim) *action.ChangeClaim
}

// change asks for what templates ask for, in the order of an update, and for no more pods at a time than an update may disturb.
func change(snap *snapshot.Set, p *action.Plan) {
	if len(snap.Spec.VolumeClaimTemplates) == 0 || snap.Paused() {
		return
	}
	for _, k := range []kind{{isGrowing, hasSize, resized}, {isModifying, hasAttributes, modified}} {
		k.plan(snap, p)
	}
}

// plan plans the changes of one kind. A change that is underway is corrected at once, because it has its turn.
func (k kind) plan(snap *snapshot.Set, p *action.Plan) {
	written := map[string]bool{}
	for _, a := range p.Actions {
		written[action.Subject(snap.Name, a)] = true
	}
	turns, others := k.turns(snap)
	others = slices.DeleteFunc(others, func(r *snapshot.Replica) bool { return !slices.ContainsFunc(r.Claims, k.underway) })
	free := snap.Limits.AtOnce() - len(others)
	var due [][]action.ChangeClaim
	for _, r := range turns {
		wanted := k.wanted(snap, r)
		// One write at a time: the second would be refused.
		changing := slices.ContainsFunc(wanted, func(a action.ChangeClaim) bool { return written[a.Claim.Name] })
		switch {
		case slices.ContainsFunc(r.Claims, k.underway):
			free--
			wanted = slices.DeleteFunc(wanted, func(a action.ChangeClaim) bool { return !k.underway(a.Claim) })
			if !changing {
				askFor(snap, wanted, p)
			}
		case len(wanted) > 0 && !changing:
			due = append(due, wanted)
		}
	}
	for _, wanted := range due {
		if free <= 0 {
			return
		}
		if askFor(snap, wanted, p) { // a claim that is left aside does not use up a turn
			free--
		}
	}
}

// askFor plans the changes of the claims of a replica. It reports false if the API server refused all of them a moment ago.
func askFor(snap *snapshot.Set, wanted []action.ChangeClaim, p *action.Plan) (asks bool) {
	for _, a := range wanted {
		p.Add(a)
		asks = asks || !snap.LeavesAside(action.KeyOf(a))
	}
	return asks
}

// turns returns the replicas whose claims may be changed now, in the order of an update: those at the update revision that no
// partition holds back. It returns the other active ones too. Surge and pods whose ordinals are not in use have no turn.
func (k kind) turns(snap *snapshot.Set) (turns, others []*snapshot.Replica) {
	var active []*snapshot.Replica
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; r.Active() {
			active = append(active, r)
		}
	}
	if snap.Ordinal() {
		slices.SortFunc(active, desired.HighestFirst)
	} else {
		desired.SortByLoss(snap, active)
		if snap.Partition() > 0 {
			active = k.changedFirst(snap, active)
		}
	}
	free := snap.Limits.Replicas - snap.Partition()
	for _, r := range active {
		place, used := snap.InUse(r.Ordinal)
		mayChange := free > 0
		if snap.Ordinal() {
			mayChange = used && place >= snap.Partition()
		}
		if mayChange && !r.Surge && r.Revision == snap.Update.Name {
			turns = append(turns, r)
			free--
		} else {
			others = append(others, r)
		}
	}
	return turns, others
}

// changedFirst returns the replicas of a set with random names: first those whose claims were changed, then those whose claims can be
// changed now, then the others, surge included. A partition may keep any of them. The order of an update depends on the time, so a
// partition that kept the last in that order would let the claims of more and more pods be changed.
func (k kind) changedFirst(snap *snapshot.Set, active []*snapshot.Replica) []*snapshot.Replica {
	var changed, due, others []*snapshot.Replica
	for _, r := range active {
		switch {
		case r.Revision != snap.Update.Name, r.Surge:
			others = append(others, r)
		case slices.ContainsFunc(r.Claims, k.underway), k.changed(snap, r):
			changed = append(changed, r)
		case len(k.wanted(snap, r)) > 0:
			due = append(due, r)
		default:
			others = append(others, r)
		}
	}
	return slices.Concat(changed, due, others)
}

// changed reports whether all claims of a replica ask for the values of their templates.
func (k kind) changed(snap *snapshot.Set, r *snapshot.Replica) bool {
	return !slices.ContainsFunc(snap.Spec.VolumeClaimTemplates, func(template corev1.PersistentVolumeClaim) bool {
		claim := r.Claim(identity.ClaimName(snap.Name, template.Name, r.ID))
		return claim == nil || !k.has(&template, claim)
	})
}

// wanted returns the changes of the claims of a replica that the templates ask for.
func (k kind) wanted(snap *snapshot.Set, r *snapshot.Replica) []action.ChangeClaim {
	var wanted []action.ChangeClaim
	for i := range snap.Spec.VolumeClaimTemplates {
		template := &snap.Spec.VolumeClaimTemplates[i]
		claim := r.Claim(identity.ClaimName(snap.Name, template.Name, r.ID))
		if claim == nil || snap.ClaimObstacle(r, claim) != "" {
			continue
		}
		if a := k.due(snap, template, claim); a != nil {
			wanted = append(wanted, *a)
		}
	}
	return wanted
}

// hasSize reports whether a claim requests as much storage as its template, or more.
func hasSize(template, claim *corev1.PersistentVolumeClaim) bool {
	size := requested(claim)
	return size.Cmp(requested(template)) >= 0
}

// resized returns the write by which a claim comes to request as much storage as its template; nil if it does, or cannot.
func resized(snap *snapshot.Set, template, claim *corev1.PersistentVolumeClaim) *action.ChangeClaim {
	want := requested(template)
	grows := want.Cmp(requested(claim)) > 0 && hindrance(snap, claim) == ""
	if !grows && !takesBack(want, claim) {
		return nil
	}
	return &action.ChangeClaim{Claim: claim, Size: &want}
}

// takesBack reports whether a smaller size takes back a growth that is not done. The API server lowers a request only to more than
// the capacity, because no volume shrinks.
func takesBack(want resource.Quantity, claim *corev1.PersistentVolumeClaim) bool {
	capacity := claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && want.Cmp(requested(claim)) < 0 && !capacity.IsZero() && want.Cmp(capacity) > 0
}

// hindrance returns why a claim cannot grow; empty if it can.
func hindrance(snap *snapshot.Set, claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase != corev1.ClaimBound {
		return "it is not bound"
	}
	name, _ := ClassOf(claim)
	class, exists := snap.Classes[name]
	switch {
	case name == "":
		return "it has no storage class"
	case !exists:
		return fmt.Sprintf("its storage class %s does not exist", name)
	case !class.Expandable:
		return fmt.Sprintf("its storage class %s does not allow volume expansion", name)
	default:
		return ""
	}
}

// Unbound returns the claim that keeps a pod from being scheduled, and why it is not bound; empty if no claim can be the
// cause.
func Unbound(snap *snapshot.Set, r *snapshot.Replica) string {
	for _, claim := range r.Claims {
		if claim.Status.Phase == corev1.ClaimBound || !podstate.Mounts(r.Pod, claim.Name) {
			continue
		}
		name, _ := ClassOf(claim)
		switch class, exists := snap.Classes[name]; {
		case name == "":
			return fmt.Sprintf("claim %s is not bound, and it has no storage class", claim.Name)
		case !exists:
			return fmt.Sprintf("claim %s is not bound: its storage class %s does not exist", claim.Name, name)
		case class.Immediate:
			return fmt.Sprintf("claim %s is not bound", claim.Name)
		}
	}
	return ""
}

// ClassOf returns the name of the storage class of a claim, and whether the claim says which. The annotation is older than the
// field, and counts before it, as it does for the controllers that provision volumes.
func ClassOf(claim *corev1.PersistentVolumeClaim) (name string, says bool) {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name, true
	}
	if claim.Spec.StorageClassName == nil {
		return "", false
	}
	return *claim.Spec.StorageClassName, true
}

// otherClass reports whether a claim has another storage class than its template asks for.
func otherClass(template, claim *corev1.PersistentVolumeClaim) bool {
	want, asks := ClassOf(template)
	have, says := ClassOf(claim)
	return asks && (!says || have != want)
}

// isGrowing reports whether the storage behind a claim is still being expanded. A file system that is resized only when the pod
// restarts is not waited for.
func isGrowing(claim *corev1.PersistentVolumeClaim) bool {
	size := claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && size.Cmp(requested(claim)) < 0 &&
		saysOf(claim, corev1.PersistentVolumeClaimFileSystemResizePending) == nil
}

// saysOf returns a condition of a claim that is true; nil if none is.
func saysOf(claim *corev1.PersistentVolumeClaim, types ...corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Status == corev1.ConditionTrue && slices.Contains(types, c.Type) {
			return c
		}
	}
	return nil
}

// requested returns the storage that a claim requests.
func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}
