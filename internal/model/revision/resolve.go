// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package revision computes the revision of a set's spec, the writes that record it, and the ControllerRevisions to delete.
//
// The rule: two revisions are equal if they mean the same, even if their bytes and hashes differ. While the generation of a set is
// the one last observed, its update revision is the one that the status names. Nothing can change that: no new version of this
// program, no re-ordered map, and no lost or forged ControllerRevision. Otherwise an equal revision is used again, as the newest. A
// new one is made only if there is none. A content that differs in the generation that was last observed, such as after a new
// default of the API server, is recorded as equal to the update revision.
//
// This relies on the caller: it must raise status.observedGeneration only together with status.updateRevision, even if the
// resolution could not be applied.
//
// A revision holds the pod template and the names of the claim templates: a new claim template needs new pods, and other
// changes of a claim template do not. It also keeps the claim templates from which it was made, to create claims when the
// spec no longer has such a template. The name of a revision ends with a digest of its content. A ControllerRevision whose
// content does not match its name is never used, because it was tampered with or is garbage.
package revision

import (
	"cmp"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Input is the input of [Resolve], which does not change it.
type Input struct {
	// Set is the set. Its spec counts, the fields observedGeneration, currentRevision, updateRevision and collisionCount of
	// its status, and the annotations by which users abort or retry a revision.
	Set *v1beta1.RollSet
	// Revisions are the ControllerRevisions that the set controls.
	Revisions []*appsv1.ControllerRevision
	// Taken are the names, as far as known, of ControllerRevisions that the set does not control.
	Taken sets.Set[string]
	// Used are the names of the revisions that pods of the set carry, terminating pods and those to be adopted included.
	Used sets.Set[string]
	// Decode, if not nil, replaces [Decode]: a caller may remember what it returned for a UID and resourceVersion.
	Decode func(*appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []string, error)
	// KeepsClaims, if not nil, remembers in the same way whether the claim templates of a revision can be read.
	KeepsClaims func(*appsv1.ControllerRevision) bool
	// Served, if not nil, reports whether a revision served last, and whether it nearly did: see [snapshot.Set.Served]. It is called
	// when another template takes effect. known are the usable revisions. current is empty if no revision was ever proven.
	Served func(known map[string]snapshot.Revision, revision, current string) (served, near bool)
	// Unwritten names a revision that was judged to have served last, while its proof could not be written; it may be empty.
	Unwritten string
}

// Resolution is the revisions of a set, and what to write. Applying it and resolving again leads, after at most two rounds,
// to a resolution with nothing to write.
type Resolution struct {
	// Revisions are those of the snapshot. If none was proven, Current is the one that the status names, or Update. The template of
	// Update is never nil: without its ControllerRevision, it is the template of the spec. It is rejected if its ControllerRevision
	// carries [RejectedAnnotation], whose value is the verdict.
	snapshot.Revisions
	// WasProven is true if Update was proven before.
	WasProven bool
	// Proof, if not nil, is a changed copy of the ControllerRevision before Update, and must be written before everything else:
	// Update takes effect, and the revision before it served last. It is Current then.
	Proof *appsv1.ControllerRevision
	// Near is true if the revision before Update would be that, if more of its pods were available.
	Near bool
	// Create, if not nil, must be created. If its name exists, a live read reports whether the set controls it: then the
	// cache is behind. Otherwise resolve again with the name among Taken.
	Create *appsv1.ControllerRevision
	// Bump, if not nil, is a changed copy of an existing ControllerRevision that must be written. A copy of Update's has a
	// number that makes it the newest, the change cause of the set, its claim templates, another content that is equal, or a
	// verdict that a user asked for. A copy of Current's records that it was proven.
	Bump *appsv1.ControllerRevision
	// Prune names the ControllerRevisions to delete, oldest first: those beyond the history limit that are neither Current
	// nor Update nor used by a pod, and one that blocks the name of Update with other content.
	Prune []string
	// CollisionCount is the new status.collisionCount; nil counts as 0.
	CollisionCount *int32
}

// Resolve finds the current and the update revision of a set. It is deterministic, and does not depend on the order of its
// input. It fails only if the template of the set must be encoded but cannot be. It must be encoded if it was not observed
// before, or if its ControllerRevision cannot be used.
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
	r.know()
	r.resolveCurrent()
	r.judgeOnceMore()
	verdicts{r}.judge()
	pruner{r}.prune()
	return r.out, nil
}

// resolver computes one Resolution. Its methods are the steps of Resolve, a file for each concern; all fill the same result.
type resolver struct {
	Input
	digest digestFunc
	// wanted is the content of the spec; empty until it is needed.
	wanted content
	// begins is true if the update revision takes effect now: it is new, or becomes the newest.
	begins bool
	// intact holds the revisions whose content matches their name, broken the others.
	intact map[string]record
	broken map[string]*appsv1.ControllerRevision
	out    Resolution
}

// record is a ControllerRevision with its content.
type record struct {
	object   *appsv1.ControllerRevision
	template *corev1.PodTemplateSpec
	claims   []string
}

// revision returns the revision of a record.
func (r *resolver) revision(of record) snapshot.Revision {
	return snapshot.Revision{
		Name: of.object.Name, Number: of.object.Revision, Since: of.object.CreationTimestamp.Unix(), Template: of.template,
		Claims: claimTemplates(&r.Set.Spec, of.object, of.claims),
	}
}

// know adds all usable revisions to the result.
func (r *resolver) know() {
	r.out.Known = make(map[string]snapshot.Revision, len(r.intact)+1)
	for name, known := range r.intact {
		r.out.Known[name] = r.revision(known)
	}
	r.out.Known[r.out.Update.Name] = r.out.Update
}

// read decodes all revisions, and sets those aside that cannot be used.
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

// resolveUpdate finds the revision of the spec among the existing ones, or makes it.
func (r *resolver) resolveUpdate() (err error) {
	status := &r.Set.Status
	r.out.CollisionCount = status.CollisionCount
	observedBefore := status.ObservedGeneration == r.Set.Generation && status.UpdateRevision != ""
	if found, ok := r.intact[status.UpdateRevision]; ok && observedBefore { // the usual case: nothing is encoded
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
		r.record(namer{r}.name())
		return nil
	}
	if collisions, ok := (namer{r}).collisionsOf(status.UpdateRevision); ok {
		r.record(status.UpdateRevision, collisions)
		return nil
	}
	// The name is not one that this template would get today. The template keeps it because its pods carry it, but no
	// ControllerRevision can vouch for it.
	r.out.Update = r.unrecorded(status.UpdateRevision)
	return nil
}

// equal returns the revision that equals the spec or was recorded as equal. Of several, it is the one that the pods were
// moved to last, otherwise the newest.
func (r *resolver) equal() (record, bool) {
	var best record
	entry := r.digest(r.wanted.canonical, 0)
	for _, candidate := range r.intact {
		if !r.wanted.equal(candidate) && !remembers(candidate, entry) {
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
		r.begins = true
		object.Revision = successor(newest)
		// It was replaced by another and is chosen again, so the verdict on its last rollout no longer counts.
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
	remembersClaims := r.rememberClaims(found, object)
	if waits := renumbered && r.outlived(found); !waits && (renumbered || explained || remembersClaims) {
		r.out.Bump = object
	}
	r.out.Update = r.revision(found)
	r.out.Update.Number = object.Revision
	r.out.Verdict, r.out.Rejected = object.Annotations[RejectedAnnotation], has(object, RejectedAnnotation)
	proven, _ := provenAt(object)
	r.out.WasProven = proven > 0
}

// outlived reports whether the status names a revision as current that was never proven, although another one was since. With a higher
// number it would count as one whose proof could not be written, so it gets none before the status names the other one.
func (r *resolver) outlived(found record) bool {
	noted, _ := provenAt(found.object)
	name := found.object.Name
	return noted == 0 && name == r.Set.Status.CurrentRevision && r.current() != name
}

// newest returns the highest number of a revision other than the named one; 0 if there is none.
func (r *resolver) newest(except string) int64 {
	var newest int64
	for name, known := range r.intact {
		if name != except {
			newest = max(newest, known.object.Revision)
		}
	}
	return newest
}

// successor returns the number after n. If n is the highest number, revisions have the same number and different names, and the
// status names the newest.
func successor(n int64) int64 {
	if n == math.MaxInt64 {
		return n
	}
	return n + 1
}

// unrecorded returns the revision of the spec under a name that no usable ControllerRevision has.
func (r *resolver) unrecorded(name string) snapshot.Revision {
	update := snapshot.RevisionOf(name, &r.Set.Spec)
	update.Number, update.Template = successor(r.newest(name)), r.wanted.template
	return update
}

// record makes the spec a revision of the given name, and plans to write it unless the name is occupied.
func (r *resolver) record(name string, collisions int32) {
	r.begins = true
	r.out.Update = r.unrecorded(name)
	verdicts{r}.recallVerdict()
	impostor := r.broken[name]
	switch {
	case r.Taken.Has(name):
	case impostor == nil:
		r.out.Create = r.wanted.object(r.Set, name, collisions)
		r.out.Create.Revision = r.out.Update.Number
		setClaims(r.out.Create, &r.Set.Spec)
		verdicts{r}.keepVerdict(r.out.Create)
		if status := &r.Set.Status; name != status.CurrentRevision || status.UpdatedAvailableReplicas == 0 { // otherwise its content is lost
			metav1.SetMetaDataAnnotation(&r.out.Create.ObjectMeta, CompletedAnnotation, "0")
		}
	case impostor.DeletionTimestamp == nil:
		// One of the set's objects has the name of this content but holds another. It is deleted, and the next resolution
		// records the spec. Counting it as a collision would restart all pods that carry the name.
		r.out.Prune = append(r.out.Prune, name)
	}
}

// resolveCurrent finds the revision that was proven last.
func (r *resolver) resolveCurrent() {
	name := r.current()
	found, ok := r.intact[name]
	switch {
	case name == "" || name == r.out.Update.Name:
		r.out.Current = r.out.Update
	case ok:
		r.out.Current = r.revision(found)
		r.out.Unproven = !WasProven(found.object)
		last, _ := r.lastProven()
		if name == r.Unwritten {
			last = name
		}
		noted, known := provenAt(found.object)
		if r.out.Unproven = r.out.Unproven && last == ""; (!known || noted == 0 && last != "") && r.out.Bump == nil {
			r.out.Bump = Prove(found.object) // only the status records it, and the status may be lost
		}
	default:
		r.out.Current = snapshot.Revision{Name: name}
	}
}

// current returns the name of the current revision; empty if it is not recorded. The revisions record which was proven last. The
// status counts where they do not: if none was proven, if the object of the one that it names is lost and its update revision was not
// proven since, or if the proof of that one could not be written, so that its number is higher than that of the last proof.
func (r *resolver) current() string {
	named := r.Set.Status.CurrentRevision
	proven, number := r.lastProven()
	_, ok := r.intact[named]
	provenSince := proven != "" && proven == r.Set.Status.UpdateRevision && r.intact[proven].object.Revision == number
	switch {
	case r.isAhead(r.Unwritten, number):
		return r.Unwritten
	case proven == "" || named != "" && !ok && !provenSince || r.isAhead(named, number):
		return named
	default:
		return proven
	}
}

// isAhead reports whether a revision has no proof, and is newer than the last one that has: its number is higher than that had then. Of
// two that were proven with one number, none is ahead, and the status decides.
func (r *resolver) isAhead(name string, number int64) bool {
	found, ok := r.intact[name]
	if !ok {
		return false
	}
	noted, _ := provenAt(found.object)
	return noted == 0 && found.object.Revision > number || noted > 0 && noted == number
}

// judgeOnceMore judges the revision before the update revision once more, when the latter takes effect: if it served last, it
// becomes the current one, although a pod was missing, or its proof was not written yet.
func (r *resolver) judgeOnceMore() {
	before, ok := r.before()
	if !ok || r.Served == nil || has(before.object, RejectedAnnotation) {
		return
	}
	current := r.out.Current.Name
	if before.object.Name == current && !r.out.Unproven {
		return
	}
	if r.out.Unproven {
		current = ""
	}
	served, near := r.Served(r.out.Known, before.object.Name, current)
	r.out.Near = near
	if served {
		r.out.Proof = Prove(before.object)
		r.out.Current, r.out.Unproven, r.out.Near = r.revision(before), false, false
	}
}

// before returns the revision in whose place the update revision takes effect now: the newest of the others.
func (r *resolver) before() (newest record, ok bool) {
	for name, known := range r.intact {
		if !r.begins || name == r.out.Update.Name {
			continue
		}
		if newest.object == nil || cmp.Or(cmp.Compare(known.object.Revision, newest.object.Revision), cmp.Compare(newest.object.Name, name)) > 0 {
			newest = known
		}
	}
	return newest, newest.object != nil
}
