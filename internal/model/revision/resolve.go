// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package revision is the arithmetic of ControllerRevisions: which revision the spec of a set is, what is to be written
// so that it is recorded, and what may be forgotten.
//
// The rule: two revisions are equal if they mean the same, whatever their bytes and hashes. While the generation of a
// set is the one last observed, its update revision is the one that status names, and nothing can change that: not a new
// version of this program, not a re-ordered map, not a lost or forged ControllerRevision. Otherwise an equal revision is
// used again, as the newest; only if there is none, a new one is made. A content that differs though the generation is
// the one last observed, as with a default that a newer API server adds, is remembered as equal to the update revision.
//
// This rests on a promise of the caller: status.observedGeneration is raised only together with status.updateRevision,
// also when the resolution could not be carried out.
//
// What a revision holds is the pod template and the names of the claim templates: a new claim template needs new pods,
// any other change of one does not. Beside that it keeps the claim templates with which it was made, for claims that are to be
// made when the spec has no such template any more. The name of a revision ends with a digest of what it holds. A ControllerRevision
// whose content does not match its name was tampered with, or is garbage: nothing is ever made from it.
package revision

import (
	"cmp"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Input is what [Resolve] judges. Resolve does not change it.
type Input struct {
	// Set is the set; of its status, observedGeneration, currentRevision, updateRevision and collisionCount matter, of its
	// annotations those by which users give a revision up or try it again.
	Set *v1alpha1.RollSet
	// Revisions are the ControllerRevisions that the set controls.
	Revisions []*appsv1.ControllerRevision
	// Taken are the names, as far as known, of ControllerRevisions that the set does not control.
	Taken sets.Set[string]
	// Used are the names of the revisions that pods of the set carry, terminating pods included.
	Used sets.Set[string]
	// Decode, if not nil, replaces [Decode]: a caller may remember what it returned for a UID and resourceVersion.
	Decode func(*appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []string, error)
}

// Resolution says which revisions a set has and what is to be written. Applying it and resolving again leads, after at
// most two rounds, to a resolution with nothing to write.
type Resolution struct {
	// Current is the revision that status names as current; if status names none, the one that was completed last, or
	// Update if none was. Its template is nil if its ControllerRevision is lost or was tampered with.
	Current snapshot.Revision
	// Update is the revision of the spec. Its template is never nil: if its ControllerRevision is not there, the
	// template is the one of the spec.
	Update snapshot.Revision
	// Unproven is true if Current is not Update and was never completed: no revision of the set was.
	Unproven bool
	// Rejected is true if the ControllerRevision of Update carries [RejectedAnnotation], and Verdict what that says.
	Rejected bool
	Verdict  string
	// WasComplete is true if Update was complete before.
	WasComplete bool
	// Create, if not nil, is to be created. If its name turns out to exist, a live read tells whether the set controls
	// it: then the cache is behind. Else resolve again with the name among Taken.
	Create *appsv1.ControllerRevision
	// Bump, if not nil, is a changed copy of an existing ControllerRevision, to be written: Update's, with a number
	// that makes it the newest, with the change cause that the set has now, with its claim templates, with a content that is equal to its own, or with
	// the verdict that a user asked for; or Current's, with the note that it was completed.
	Bump *appsv1.ControllerRevision
	// Prune names the ControllerRevisions to be deleted, oldest first: those beyond the history limit that are neither
	// Current nor Update nor used by a pod, and one that blocks the name of Update with a content that is not its own.
	Prune []string
	// Known are all revisions that can be used, Update among them, by name.
	Known map[string]snapshot.Revision
	// CollisionCount is the new status.collisionCount; nil counts as 0.
	CollisionCount *int32
}

// Resolve finds the current and the update revision of a set. It is deterministic, and insensitive to the order of its
// input. It fails only if the template of the set has to be encoded, because it was not observed before or its
// ControllerRevision cannot be used, and cannot be.
func Resolve(in Input) (Resolution, error) {
	return resolve(in, digest)
}

// resolve is Resolve for any digest, so that tests can make digests collide.
func resolve(in Input, digest digestFunc) (Resolution, error) {
	r := &resolver{Input: in, digest: digest}
	r.read()
	if err := r.resolveUpdate(); err != nil {
		return Resolution{}, err
	}
	r.resolveCurrent()
	r.judge()
	r.prune()
	r.know()
	return r.out, nil
}

type resolver struct {
	Input
	digest digestFunc
	// wanted is what the spec says; empty until it matters.
	wanted content
	// intact are the revisions that hold what their names say, broken the others.
	intact map[string]record
	broken map[string]*appsv1.ControllerRevision
	out    Resolution
}

// record is a ControllerRevision and what it holds.
type record struct {
	object   *appsv1.ControllerRevision
	template *corev1.PodTemplateSpec
	claims   []string
}

// revision is what a record says of its revision.
func (r *resolver) revision(of record) snapshot.Revision {
	return snapshot.Revision{
		Name: of.object.Name, Number: of.object.Revision, Template: of.template,
		Claims: claimTemplates(&r.Set.Spec, of.object, of.claims),
	}
}

// know notes all revisions that can be used.
func (r *resolver) know() {
	r.out.Known = make(map[string]snapshot.Revision, len(r.intact)+1)
	for name, known := range r.intact {
		r.out.Known[name] = r.revision(known)
	}
	r.out.Known[r.out.Update.Name] = r.out.Update
}

// read decodes all revisions, and tells those apart that cannot be used.
func (r *resolver) read() {
	decode := r.Decode
	if decode == nil {
		decode = func(object *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []string, error) {
			return decodeWith(object, r.digest)
		}
	}
	r.intact = make(map[string]record, len(r.Revisions))
	r.broken = make(map[string]*appsv1.ControllerRevision)
	for _, object := range r.Revisions {
		template, claims, err := decode(object)
		if err != nil {
			r.broken[object.Name] = object
			continue
		}
		r.intact[object.Name] = record{object: object, template: template, claims: claims}
	}
}

// resolveUpdate finds the revision of the spec among those that exist, or makes it.
func (r *resolver) resolveUpdate() (err error) {
	status := &r.Set.Status
	r.out.CollisionCount = status.CollisionCount
	observedBefore := status.ObservedGeneration == r.Set.Generation && status.UpdateRevision != ""
	if found, ok := r.intact[status.UpdateRevision]; ok && observedBefore { // as it is nearly always: nothing is encoded
		r.reuse(found)
		return r.noteDrift(found)
	}
	if r.wanted, err = contentOf(r.Set); err != nil {
		return fmt.Errorf("encode the template of %s: %w", r.Set.Name, err)
	}
	if !observedBefore {
		if found, ok := r.equal(); ok {
			r.reuse(found)
			return nil
		}
		r.record(r.name())
		return nil
	}
	if collisions, ok := r.collisionsOf(status.UpdateRevision); ok {
		r.record(status.UpdateRevision, collisions)
		return nil
	}
	// The name is not one that we would give to this template today. The template goes on under it, for its pods carry
	// it, but no ControllerRevision can bear witness to that.
	r.out.Update = r.unrecorded(status.UpdateRevision)
	return nil
}

// equal returns the revision that means what the spec says, or came to. Of several, it is the one that the pods were moved to last,
// else the newest.
func (r *resolver) equal() (record, bool) {
	var best record
	entry := r.digest(r.wanted.canonical, 0)
	for _, candidate := range r.intact {
		if !r.wanted.equal(candidate) && !r.remembers(candidate, entry) {
			continue
		}
		if best.object == nil || r.preferred(candidate, best) < 0 {
			best = candidate
		}
	}
	return best, best.object != nil
}

// preferred orders equal revisions, the best first.
func (r *resolver) preferred(a, b record) int {
	return cmp.Or(
		compareBool(b.object.Name == r.Set.Status.UpdateRevision, a.object.Name == r.Set.Status.UpdateRevision),
		cmp.Compare(b.object.Revision, a.object.Revision),
		cmp.Compare(a.object.Name, b.object.Name),
	)
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// reuse makes an existing revision the update revision, and the newest one.
func (r *resolver) reuse(found record) {
	object := found.object.DeepCopy()
	newest := r.newest(object.Name)
	renumbered := newest >= object.Revision && object.Revision != successor(newest)
	if renumbered {
		object.Revision = successor(newest)
		// It was given up for another one and has been chosen again: the verdict on its last rollout is history.
		delete(object.Annotations, RejectedAnnotation)
	}
	cause, ok := r.Set.Annotations[changeCause]
	explained := ok && object.Annotations[changeCause] != cause
	if explained {
		if object.Annotations == nil {
			object.Annotations = make(map[string]string, 1)
		}
		object.Annotations[changeCause] = cause
	}
	if remembersClaims := r.rememberClaims(found, object); renumbered || explained || remembersClaims {
		r.out.Bump = object
	}
	r.out.Update = r.revision(found)
	r.out.Update.Number = object.Revision
	r.out.Verdict, r.out.Rejected = object.Annotations[RejectedAnnotation], has(object, RejectedAnnotation)
	completed, _ := completedAt(object)
	r.out.WasComplete = completed > 0
}

// newest is the highest number of a revision other than the named one; 0 if there is none.
func (r *resolver) newest(except string) int64 {
	var newest int64
	for name, known := range r.intact {
		if name != except {
			newest = max(newest, known.object.Revision)
		}
	}
	return newest
}

// successor is the number behind n. There is none behind the highest: then the name tells revisions apart, and status
// says which of them is the newest.
func successor(n int64) int64 {
	if n == math.MaxInt64 {
		return n
	}
	return n + 1
}

// unrecorded is the revision of the spec under a name that no usable ControllerRevision has.
func (r *resolver) unrecorded(name string) snapshot.Revision {
	update := snapshot.RevisionOf(name, &r.Set.Spec)
	update.Number, update.Template = successor(r.newest(name)), r.wanted.template
	return update
}

// record makes the spec a revision of the given name, and has that written down unless the name is occupied.
func (r *resolver) record(name string, collisions int32) {
	r.out.Update = r.unrecorded(name)
	impostor := r.broken[name]
	switch {
	case r.Taken.Has(name):
	case impostor == nil:
		r.out.Create = r.wanted.object(r.Set, name, collisions)
		r.out.Create.Revision = r.out.Update.Number
		setClaims(r.out.Create, &r.Set.Spec)
		if status := &r.Set.Status; name != status.CurrentRevision || status.UpdatedAvailableReplicas == 0 { // else what it said is lost
			metav1.SetMetaDataAnnotation(&r.out.Create.ObjectMeta, CompletedAnnotation, "0")
		}
	case impostor.DeletionTimestamp == nil:
		// An object of ours stands where this content belongs and holds another. It makes room, and the next resolution
		// records what the spec says. To call it a collision would restart all pods that carry the name.
		r.out.Prune = append(r.out.Prune, name)
	}
}

// resolveCurrent finds the revision that the set last completed. A status that was lost does not name it; then the
// revisions tell.
func (r *resolver) resolveCurrent() {
	name := cmp.Or(r.Set.Status.CurrentRevision, r.lastCompleted())
	found, ok := r.intact[name]
	switch {
	case name == "" || name == r.out.Update.Name:
		r.out.Current = r.out.Update
	case ok:
		r.out.Current = r.revision(found)
		r.out.Unproven = !WasCompleted(found.object)
		if _, known := completedAt(found.object); !known && r.out.Bump == nil {
			r.out.Bump = Completed(found.object) // status says so, and may be lost
		}
	default:
		r.out.Current = snapshot.Revision{Name: name}
	}
}
