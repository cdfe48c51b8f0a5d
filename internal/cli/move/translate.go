// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollset.dev/rollset/api/v1alpha1"
)

// These are the kinds that are translated.
const (
	statefulSet = "StatefulSet"
	deployment  = "Deployment"
	cloneSet    = "CloneSet"
)

// translates reports whether an object is of a kind that becomes a RollSet.
func translates(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case statefulSet, deployment:
		return o.GetAPIVersion() == "apps/v1"
	case cloneSet:
		return o.GetAPIVersion() == "apps.kruise.io/v1alpha1" || o.GetAPIVersion() == "apps.kruise.io/v1beta1"
	default:
		return false
	}
}

// translation turns the spec of another kind into that of a RollSet. It removes from the old spec what it takes over; what
// remains in the end has no counterpart.
type translation struct {
	old, spec map[string]any
	// lost is what a RollSet cannot express, each with the cause.
	lost []string
}

// translate returns the RollSet that does what an object of another kind does, and what of it has no counterpart.
func translate(o *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	t := &translation{old: map[string]any{}, spec: map[string]any{}}
	if spec, ok := o.DeepCopy().Object["spec"].(map[string]any); ok {
		t.old = spec
	}
	t.keep("replicas", "selector", "template", "minReadySeconds", "revisionHistoryLimit")
	switch o.GetKind() {
	case statefulSet:
		t.statefulSet()
	case deployment:
		t.deployment()
	case cloneSet:
		t.cloneSet(strings.HasSuffix(o.GetAPIVersion(), "/v1beta1"))
	}
	t.clean()
	for _, field := range slices.Sorted(maps.Keys(t.old)) {
		t.lose("spec."+field, "RollSet has no such field")
	}
	set := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata(o), "spec": t.spec}}
	set.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RollSet"))
	return set, t.lost
}

// metadata returns the part of an object's metadata that its user wrote.
func metadata(o *unstructured.Unstructured) map[string]any {
	kept := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		kept["namespace"] = o.GetNamespace()
	}
	if labels := o.GetLabels(); len(labels) > 0 {
		kept["labels"] = anyMap(labels)
	}
	annotations := o.GetAnnotations()
	for _, key := range []string{"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"} {
		delete(annotations, key)
	}
	if len(annotations) > 0 {
		kept["annotations"] = anyMap(annotations)
	}
	return kept
}

func anyMap(m map[string]string) map[string]any {
	all := make(map[string]any, len(m))
	for key, value := range m {
		all[key] = value
	}
	return all
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
		t.lose(path+"."+field, why)
	}
}

// statefulSet translates the fields of a StatefulSet. All of them exist under the same names.
func (t *translation) statefulSet() {
	t.spec["podIdentity"] = string(v1alpha1.OrdinalIdentity)
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
		switch kind := strategy["type"]; kind {
		case nil, "":
		case "OnDelete":
			update["type"] = kind
		default:
			rolling["podUpdatePolicy"] = kind
		}
		delete(strategy, "type")
	}
	if rolling["podUpdatePolicy"] == string(v1alpha1.RecreatePodInCloneSet) {
		rolling["podUpdatePolicy"] = string(v1alpha1.RecreatePod)
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

// clean removes fields that the API server adds to the specs that it returns and that no user asked for.
func (t *translation) clean() {
	if template, ok := t.spec["template"].(map[string]any); ok {
		cleanMetadata(template)
	}
	templates, _ := t.spec["volumeClaimTemplates"].([]any)
	for _, item := range templates {
		if claim, ok := item.(map[string]any); ok {
			cleanMetadata(claim)
			delete(claim, "status")
		}
	}
}

func cleanMetadata(o map[string]any) {
	if metadata, ok := o["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
}

// retarget points an autoscaler of a workload to the RollSet that it becomes. It reports whether it was an autoscaler of
// that workload.
func retarget(o, from, to *unstructured.Unstructured) bool {
	if o.GetKind() != "HorizontalPodAutoscaler" {
		return false
	}
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "scaleTargetRef")
	group, _, _ := strings.Cut(ref["apiVersion"], "/")
	if group != from.GroupVersionKind().Group || ref["kind"] != from.GetKind() || ref["name"] != from.GetName() {
		return false
	}
	ref["apiVersion"], ref["kind"] = to.GetAPIVersion(), to.GetKind()
	return unstructured.SetNestedStringMap(o.Object, ref, "spec", "scaleTargetRef") == nil
}

// describe names an object as kubectl does.
func describe(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s/%s", strings.ToLower(o.GetKind()), o.GetName())
}
