// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollset.dev/rollset/api/v1beta1"
)

// These are the kinds that are translated.
const (
	statefulSet = "StatefulSet"
	deployment  = "Deployment"
	cloneSet    = "CloneSet"
)

// versions are the API versions of each kind that are translated.
func versions(kind string) []string {
	switch kind {
	case statefulSet, deployment:
		return []string{"apps/v1"}
	case cloneSet:
		return []string{"apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"}
	default:
		return nil
	}
}

// translation turns the spec of one kind into that of another. It removes from the old spec what it takes over; what
// remains in the end has no counterpart.
type translation struct {
	old, spec map[string]any
	// lost lists what the other kind cannot express, each with the cause.
	lost []string
}

// newTranslation begins with the fields that all kinds have.
func newTranslation(o *unstructured.Unstructured) *translation {
	t := &translation{old: map[string]any{}, spec: map[string]any{}}
	if spec, ok := o.DeepCopy().Object["spec"].(map[string]any); ok {
		t.old = spec
	}
	t.keep("replicas", "selector", "template", "minReadySeconds", "revisionHistoryLimit")
	return t
}

// translate returns the RollSet that does what an object of another kind does, and what of it has no counterpart.
func translate(o *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	t := newTranslation(o)
	if len(o.GetFinalizers()) > 0 {
		t.lose("metadata.finalizers", "the program that removes them does not know RollSets")
	}
	if len(o.GetOwnerReferences()) > 0 {
		t.lose("metadata.ownerReferences", "the owner does not know RollSets")
	}
	switch o.GetKind() {
	case statefulSet:
		t.statefulSet()
	case deployment:
		t.deployment()
	case cloneSet:
		t.cloneSet(strings.HasSuffix(o.GetAPIVersion(), "/v1beta1"))
	}
	t.loseRest("spec", t.old, "RollSet has no such field")
	withoutStatus(t.spec["volumeClaimTemplates"])
	withoutNulls(t.spec, reflect.TypeFor[v1beta1.RollSetSpec]())
	set := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata(o), "spec": t.spec}}
	set.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("RollSet"))
	return set, t.lost
}

// metadata returns the part of an object's metadata that its user wrote.
func metadata(o *unstructured.Unstructured) map[string]any {
	written, _, _ := unstructured.NestedMap(o.Object, "metadata")
	withoutNulls(written, reflect.TypeFor[metav1.ObjectMeta]())
	emptyNulls(written["annotations"])
	kept := map[string]any{}
	move(written, kept, "name", "generateName", "namespace", "labels", "annotations")
	annotations, _ := kept["annotations"].(map[string]any)
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return key == corev1.LastAppliedConfigAnnotation || key == "deployment.kubernetes.io/revision" || strings.HasPrefix(key, v1beta1.GroupVersion.Group+"/")
	})
	for _, field := range []string{"labels", "annotations"} {
		if entries, ok := kept[field].(map[string]any); ok && len(entries) == 0 {
			delete(kept, field)
		}
	}
	return kept
}

func (t *translation) lose(field, why string) { t.lost = append(t.lost, field+": "+why) }

// keep moves fields with the same meaning.
func (t *translation) keep(fields ...string) { move(t.old, t.spec, fields...) }

// move moves fields from one object to another.
func move(from, to map[string]any, fields ...string) {
	for _, field := range fields {
		if value, ok := from[field]; ok {
			if value != nil {
				to[field] = value
			}
			delete(from, field)
		}
	}
}

// take removes a nested object and returns it; empty if there is none.
func take(from map[string]any, field string) map[string]any {
	value, _ := from[field].(map[string]any)
	delete(from, field)
	if value == nil {
		return map[string]any{}
	}
	return value
}

// loseRest records everything that is left of an object as lost.
func (t *translation) loseRest(path string, rest map[string]any, why string) {
	for _, field := range slices.Sorted(maps.Keys(rest)) {
		if rest[field] != nil {
			t.lose(path+"."+field, why)
		}
	}
}

// statefulSet translates the fields of a StatefulSet. All of them exist under the same names.
func (t *translation) statefulSet() {
	t.spec["podIdentity"] = string(v1beta1.OrdinalIdentity)
	t.keep("serviceName", "podManagementPolicy", "updateStrategy", "ordinals", "persistentVolumeClaimRetentionPolicy", "volumeClaimTemplates")
}

// deployment translates the fields of a Deployment, whose strategy has other defaults.
func (t *translation) deployment() {
	t.keep("progressDeadlineSeconds")
	rolling := map[string]any{}
	strategy := take(t.old, "strategy")
	update := map[string]any{}
	move(strategy, update, "type")
	if limits := take(strategy, "rollingUpdate"); update["type"] != "Recreate" {
		rolling["maxSurge"], rolling["maxUnavailable"] = "25%", "25%"
		move(limits, rolling, "maxSurge", "maxUnavailable")
		t.loseRest("spec.strategy.rollingUpdate", limits, "RollSet has no such field")
	}
	t.loseRest("spec.strategy", strategy, "RollSet has no such field")
	move(t.old, rolling, "paused")
	if len(rolling) > 0 {
		update["rollingUpdate"] = rolling
	}
	t.spec["updateStrategy"] = update
}

// cloneSet translates the fields of a CloneSet. In v1alpha1 the update strategy is flat.
func (t *translation) cloneSet(nested bool) {
	t.keep("volumeClaimTemplates", "progressDeadlineSeconds", "lifecycle", "persistentVolumeClaimRetentionPolicy")
	t.cloneSetScale()
	strategy := take(t.old, "updateStrategy")
	update, rolling := map[string]any{}, map[string]any{}
	from, path := strategy, "spec.updateStrategy"
	if nested {
		move(strategy, update, "type")
		from, path = take(strategy, "rollingUpdate"), "spec.updateStrategy.rollingUpdate"
		move(from, rolling, "podUpdatePolicy")
	} else {
		t.flatType(strategy, update, rolling)
	}
	if rolling["podUpdatePolicy"] == string(v1beta1.RecreatePodInCloneSet) {
		rolling["podUpdatePolicy"] = string(v1beta1.RecreatePod)
	}
	move(from, rolling, "partition", "maxUnavailable", "maxSurge", "paused", "priorityStrategy", "scatterStrategy")
	inPlace := take(from, "inPlaceUpdateStrategy")
	grace := map[string]any{}
	move(inPlace, grace, "gracePeriodSeconds")
	if len(grace) > 0 {
		rolling["inPlaceUpdateStrategy"] = grace
	}
	t.loseRest(path+".inPlaceUpdateStrategy", inPlace, "images are not downloaded beforehand")
	t.loseRest(path, from, "RollSet has no such field")
	if nested {
		t.loseRest("spec.updateStrategy", strategy, "RollSet has no such field")
	}
	if len(rolling) > 0 {
		update["rollingUpdate"] = rolling
	}
	if len(update) > 0 {
		t.spec["updateStrategy"] = update
	}
	t.cloneSetGates()
}

// flatType translates the type of an update strategy of v1alpha1, which is the policy of RollSet.
func (t *translation) flatType(strategy, update, rolling map[string]any) {
	switch kind := strategy["type"]; kind {
	case nil, "":
	case string(v1beta1.OnDeleteStrategy):
		update["type"] = kind
	case string(v1beta1.RecreatePodInCloneSet), string(v1beta1.InPlaceIfPossiblePod), string(v1beta1.InPlaceOnlyPod):
		rolling["podUpdatePolicy"] = kind
	default:
		t.lose(fmt.Sprintf("spec.updateStrategy.type: %v", kind), "CloneSet v1alpha1 has no such type; ReCreate, InPlaceIfPossible, InPlaceOnly and OnDelete are its types")
	}
	delete(strategy, "type")
}

// cloneSetScale translates the scale strategy of a CloneSet.
func (t *translation) cloneSetScale() {
	old := take(t.old, "scaleStrategy")
	scale := map[string]any{}
	move(old, scale, "podsToDelete", "maxUnavailable")
	if len(scale) > 0 {
		t.spec["scaleStrategy"] = scale
	}
	delete(old, "enablePVCReuse") // free claims are always used first
	for field, value := range old {
		if off, isBool := value.(bool); isBool && !off {
			delete(old, field)
		}
	}
	t.loseRest("spec.scaleStrategy", old, "RollSet has no such field")
}

// cloneSetGates removes the readiness gates that only OpenKruise opens, because new pods would never be ready.
func (t *translation) cloneSetGates() {
	template, _ := t.spec["template"].(map[string]any)
	spec, _ := template["spec"].(map[string]any)
	gates, _ := spec["readinessGates"].([]any)
	gates = slices.DeleteFunc(gates, func(gate any) bool {
		g, _ := gate.(map[string]any)
		return g["conditionType"] == "InPlaceUpdateReady" || g["conditionType"] == "KruisePodReady"
	})
	if spec != nil {
		spec["readinessGates"] = gates
		if len(gates) == 0 {
			delete(spec, "readinessGates")
		}
	}
}

// withoutStatus removes the status that the API server adds to claim templates.
func withoutStatus(templates any) {
	list, _ := templates.([]any)
	for _, item := range list {
		if claim, ok := item.(map[string]any); ok {
			delete(claim, "status")
		}
	}
}

// describe names an object as kubectl does.
func describe(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s/%s", strings.ToLower(o.GetKind()), o.GetName())
}
