// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// inScope checks I14: a manager writes only in the set's namespace, only the kinds that a set owns, and of the set
// itself only the status.
func inScope(v *verdict) string {
	switch v.Key.Kind {
	case apiserver.Pods, apiserver.Claims, apiserver.Revisions, apiserver.Budgets:
	case apiserver.RollSets:
		if v.Subresource != "status" {
			return "the spec is the user's"
		}
	default:
		return "not an object of a set"
	}
	if v.set != nil && v.Key.Namespace != v.set.Namespace {
		return "another namespace than " + v.set.Namespace
	}
	return ""
}

// ownsIt checks I2: a written object belongs to the set. A delete has the UID as precondition, and for objects that can
// change their owner also the resource version.
func ownsIt(v *verdict) string {
	if v.set == nil {
		return "the manager sees no set"
	}
	if v.Key.Kind == apiserver.RollSets {
		return ""
	}
	if v.Verb == apiserver.Delete {
		p := v.DeleteOptions.Preconditions
		if p == nil || p.UID == nil || p.ResourceVersion == nil && v.Key.Kind != apiserver.Revisions {
			return "a delete without the UID or the resource version as precondition"
		}
	}
	owner := OwnerOf(v.Old)
	if v.Old == nil {
		owner = OwnerOf(v.New)
	}
	claimOfPod := v.Key.Kind == apiserver.Claims && claims{v}.ownsPod(owner)
	switch {
	case owner == v.set.UID, claimOfPod:
		return ""
	case owner == "" && v.Verb != apiserver.Delete && v.Key.Kind != apiserver.Budgets: // an adoption, judged by I8; or a claim that is kept
		return ""
	}
	return fmt.Sprintf("it is controlled by %q, the set is %q", owner, v.set.UID)
}

// keepsIdentity checks I1: no pod is deleted with a shorter grace period, no foreign finalizer is removed, and no claim
// is mounted twice.
func keepsIdentity(v *verdict) string {
	if g := v.DeleteOptions.GracePeriodSeconds; v.Verb == apiserver.Delete && g != nil {
		return "the grace period is not ours to set"
	}
	if v.Old != nil && v.New != nil {
		for _, f := range v.Old.GetFinalizers() {
			if !slices.Contains(v.New.GetFinalizers(), f) {
				return "finalizer " + f + " was taken away"
			}
		}
	}
	if !v.createsPod() {
		return ""
	}
	return claims{v}.mountedTwice()
}

// claimsFirst checks that, as far as the manager knows, the claims of a new pod exist before the pod and belong to no
// other set.
func claimsFirst(v *verdict) string {
	if !v.createsPod() || v.set == nil {
		return ""
	}
	for _, key := range ClaimsOf(v.New) {
		seen, claim := v.view.Cached(key), v.world.Store.Get(key)
		if seen != nil && seen.GetDeletionTimestamp() != nil {
			return "claim " + key.Name + " is being deleted"
		}
		if claim == nil || seen != nil && seen.GetUID() == claim.GetUID() && len(v.checker.managers) > 1 {
			claim = seen // another manager may have changed it meanwhile
		}
		if wrong := (claims{v}).notIts(claim); wrong != "" {
			return "claim " + key.Name + " " + wrong
		}
	}
	return ""
}

// keepsClaims checks I7: a manager gives claims that the policy deletes to an owner. It deletes a claim itself only if
// it is a surplus one of a set with random names, or surge brought it.
func keepsClaims(v *verdict) string {
	if v.Key.Kind != apiserver.Claims || v.Verb != apiserver.Delete {
		return ""
	}
	switch _, whenScaled := v.set.Spec.ClaimRetention(); {
	case v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity && v.Old.GetLabels()[v1beta1.SurgeLabel] != "true",
		whenScaled != v1beta1.DeleteClaims && v.Old.GetLabels()[v1beta1.SurgeLabel] != "true":
		return "claims go with their owners only"
	case slices.ContainsFunc(v.world.Pods(), func(pod *corev1.Pod) bool { return slices.Contains(ClaimsOf(pod), v.Key) }):
		return "a pod mounts it"
	case claims{v}.lacksClaims():
		return "a replica comes back to it"
	default:
		return ""
	}
}

// keepsRevisions checks that a manager does not delete a revision if it knows of a pod that runs it.
func keepsRevisions(v *verdict) string {
	if v.Key.Kind != apiserver.Revisions || v.Verb != apiserver.Delete {
		return ""
	}
	for key, pod := range v.pods {
		if pod.Labels[v1beta1.RevisionLabel] == v.Key.Name && (proof{v}).knewAt(pod, v.Key.Name) {
			return "pod " + key.Name + " runs it"
		}
	}
	return ""
}

// adoptsOrphansOnly checks I8. A set that exists adopts only orphans that match and are not being deleted, with their
// UID and resource version. It releases only pods that do not match.
func adoptsOrphansOnly(v *verdict) string {
	if v.Key.Kind != apiserver.Pods && v.Key.Kind != apiserver.Revisions || v.Old == nil || v.New == nil || v.Verb == apiserver.Delete || v.set == nil {
		return ""
	}
	was, is := OwnerOf(v.Old), OwnerOf(v.New)
	switch {
	case was == is:
		return ""
	case v.Key.Kind == apiserver.Revisions && is != v.set.UID:
		return "a revision was given away"
	case was == v.set.UID && is == "":
		if matches(v.set, v.Old) {
			return "a pod that matches was released"
		}
		return preconditions(v)
	case was != "":
		return fmt.Sprintf("it was controlled by %q", was)
	}
	active := v.world.Store.ByUID(v.set.UID)
	switch {
	case active == nil || active.GetDeletionTimestamp() != nil:
		return "a set that is going or gone adopts"
	case !matches(v.set, v.Old):
		return "what is adopted does not match"
	case v.Old.GetDeletionTimestamp() != nil:
		return "what is adopted is being deleted"
	}
	return preconditions(v)
}

// preconditions returns what is wrong with a patch that changes the owner without a UID and a resource version.
func preconditions(v *verdict) string {
	var body struct {
		Metadata struct {
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(v.Body, &body); err != nil {
		return "the patch cannot be read: " + err.Error()
	}
	if body.Metadata.UID == "" || body.Metadata.ResourceVersion == "" {
		return "the patch carries no UID, or no resource version"
	}
	return ""
}

// tellsTheTruth checks I12: the numbers of a status are possible, observedGeneration never decreases, and a condition
// that did not change keeps its lastTransitionTime. The time of Progressing moves with every progress, because the
// deadline counts from it.
func tellsTheTruth(v *verdict) string {
	set, ok := v.New.(*v1beta1.RollSet)
	if !ok {
		return ""
	}
	s := &set.Status
	old := &apiserver.MustBe[*v1beta1.RollSet](v.Old).Status
	switch {
	case s.ReadyReplicas > s.Replicas, s.AvailableReplicas > s.ReadyReplicas,
		s.UpdatedReplicas > s.Replicas, s.UpdatedReadyReplicas > s.UpdatedReplicas,
		s.UpdatedAvailableReplicas > s.UpdatedReadyReplicas, s.CurrentReplicas > s.Replicas,
		s.ExpectedUpdatedReplicas < 0:
		return fmt.Sprintf("impossible numbers: %+v", *s)
	case s.ObservedGeneration < old.ObservedGeneration:
		return fmt.Sprintf("observedGeneration goes from %d back to %d", old.ObservedGeneration, s.ObservedGeneration)
	case s.ObservedGeneration > set.Generation:
		return "a generation is observed that is yet to come"
	case len(s.Conditions) == 0:
		return "no conditions"
	}
	for _, is := range s.Conditions {
		for _, was := range old.Conditions {
			if is.Type != "Progressing" && is.Type == was.Type && is.Status == was.Status && !is.LastTransitionTime.Equal(&was.LastTransitionTime) {
				return "condition " + is.Type + " did not change and its lastTransitionTime did"
			}
		}
	}
	return ""
}

// agreesWithItself checks I12 for what users compare: every count is present, the revisions add up to no more than all
// pods, a stalled set does not progress, and no message speaks of "3 of 2" pods.
func agreesWithItself(v *verdict) string {
	set, ok := v.New.(*v1beta1.RollSet)
	if !ok {
		return ""
	}
	s := &set.Status
	text := encoded(s)
	for _, count := range []string{
		"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas", "updatedReadyReplicas",
		"updatedAvailableReplicas", "expectedUpdatedReplicas",
	} {
		if !strings.Contains(text, `"`+count+`":`) {
			return count + " is not there"
		}
	}
	pods := int32(0)
	for _, r := range s.Revisions {
		if pods += r.Replicas; r.AvailableReplicas > r.Replicas {
			return fmt.Sprintf("revision %s has %d available of %d pods", r.Name, r.AvailableReplicas, r.Replicas)
		}
	}
	if pods > s.Replicas {
		return fmt.Sprintf("%d pods at all revisions, %d in all", pods, s.Replicas)
	}
	return conditionsAgree(s)
}

// conditionsAgree returns what is wrong with the conditions of a status.
func conditionsAgree(s *v1beta1.RollSetStatus) string {
	stalled := meta.IsStatusConditionTrue(s.Conditions, "Stalled")
	for _, c := range s.Conditions {
		if stalled && (c.Type == "Progressing" || c.Type == "Ready") && c.Status != metav1.ConditionFalse {
			return fmt.Sprintf("%s is %s and Stalled is True", c.Type, c.Status)
		}
		for _, m := range share.FindAllStringSubmatch(c.Message, -1) {
			if n, of := atoi(m[1]), atoi(m[2]); n > of {
				return fmt.Sprintf("condition %s tells of %q", c.Type, m[0])
			}
		}
	}
	return ""
}

// share matches "2 of 3" in a message.
var share = regexp.MustCompile(`(\d+) of (\d+)`)

func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		apiserver.Unmodeled("the number %s: %v", digits, err)
	}
	return n
}

// leavesDeletingSets checks I13: a set that is being deleted creates, adopts and updates nothing.
func leavesDeletingSets(v *verdict) string {
	if v.set != nil && v.set.DeletionTimestamp != nil && v.Verb != apiserver.Delete && v.Subresource != "status" {
		return "the set is being deleted"
	}
	return ""
}

// encoded returns a value as JSON.
func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		apiserver.Unmodeled("%T as JSON: %v", v, err)
	}
	return string(text)
}
