// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// restore returns the workload of an old kind that does what a set does now, and what of it has no counterpart.
func restore(set, old *unstructured.Unstructured, limits snapshot.Limits) (*unstructured.Unstructured, []string) {
	t := newTranslation(set)
	delete(t.old, "podIdentity")
	if old.GetKind() == statefulSet {
		t.toStatefulSet(limits)
	} else {
		t.toDeployment()
	}
	for path, values := range withoutEffect() {
		fields := strings.Split(path, ".")
		if value, found, _ := unstructured.NestedFieldNoCopy(t.old, fields...); found && slices.Contains(values, value) {
			unstructured.RemoveNestedField(t.old, fields...)
		}
	}
	t.loseDeep("spec", t.old, "a "+old.GetKind()+" has no such field")
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata(set), "spec": t.spec}}
	o.SetGroupVersionKind(old.GroupVersionKind())
	return o, t.lost
}

// withoutEffect are the values with which a field of a RollSet does nothing that the old kind does not do.
func withoutEffect() map[string][]any {
	return map[string][]any{
		"serviceName":                                     {""},
		"podManagementPolicy":                             {string(v1beta1.ParallelPodManagement)},
		"progressDeadlineSeconds":                         {int64(600)},
		"updateStrategy.rollingUpdate.partition":          {int64(0), "0%"},
		"updateStrategy.rollingUpdate.maxSurge":           {int64(0), "0%"},
		"updateStrategy.rollingUpdate.podUpdatePolicy":    {string(v1beta1.RecreatePod), string(v1beta1.RecreatePodInCloneSet)},
		"updateStrategy.rollingUpdate.paused":             {false},
		"updateStrategy.rollingUpdate.onDeadlineExceeded": {string(v1beta1.HoldOnDeadline)},
		"updateStrategy.rollingUpdate.onStepFailed":       {string(v1beta1.HoldOnDeadline)},
		"disruption.onDrain":                              {string(v1beta1.IgnoreDrain)},
		"disruption.podDisruptionBudget":                  {string(v1beta1.NoBudget)},
	}
}

// loseDeep records what is left of an object as lost, down to fields without fields of their own. An empty field is no loss.
func (t *translation) loseDeep(path string, rest map[string]any, why string) {
	remains := map[string]any{}
	for field, value := range rest {
		if nested, ok := value.(map[string]any); ok {
			t.loseDeep(path+"."+field, nested, why)
		} else if v := reflect.ValueOf(value); v.IsValid() && (v.Kind() != reflect.Slice || v.Len() > 0) {
			remains[field] = value
		}
	}
	t.loseRest(path, remains, why)
}

// toStatefulSet translates the fields that a StatefulSet has under the same names.
func (t *translation) toStatefulSet(limits snapshot.Limits) {
	t.keep("serviceName", "podManagementPolicy", "ordinals", "persistentVolumeClaimRetentionPolicy", "volumeClaimTemplates")
	strategy, _ := t.old["updateStrategy"].(map[string]any)
	update, rolling := map[string]any{}, map[string]any{}
	if strategy["type"] != string(v1beta1.RecreateStrategy) {
		move(strategy, update, "type")
	}
	from, _ := strategy["rollingUpdate"].(map[string]any)
	if update["type"] == string(v1beta1.OnDeleteStrategy) {
		delete(strategy, "rollingUpdate") // it has no effect
	} else if from != nil {
		move(from, rolling, "partition", "maxUnavailable")
		update["rollingUpdate"] = rolling
		if _, ok := rolling["partition"].(string); ok {
			rolling["partition"] = int64(limits.Partition)
		}
		if nothing(rolling["maxUnavailable"]) { // it counts as 1
			rolling["maxUnavailable"] = int64(1)
		}
	}
	t.spec["updateStrategy"] = update
}

// toDeployment translates the fields of a Deployment. Its defaults differ, so everything is spelled out.
func (t *translation) toDeployment() {
	t.keep("progressDeadlineSeconds")
	delete(t.old, "persistentVolumeClaimRetentionPolicy") // without claims it has no effect
	strategy, _ := t.old["updateStrategy"].(map[string]any)
	update := map[string]any{}
	from, _ := strategy["rollingUpdate"].(map[string]any)
	move(from, t.spec, "paused")
	switch strategy["type"] {
	case string(v1beta1.OnDeleteStrategy):
		delete(strategy, "rollingUpdate") // it has no effect
	case string(v1beta1.RecreateStrategy):
		update["type"] = strategy["type"]
		delete(t.old, "updateStrategy") // the limits have no effect
	default:
		rolling := map[string]any{"maxSurge": int64(0), "maxUnavailable": "20%"}
		move(from, rolling, "maxSurge", "maxUnavailable")
		if nothing(rolling["maxSurge"]) && nothing(rolling["maxUnavailable"]) { // it counts as 1
			rolling["maxUnavailable"] = int64(1)
		}
		move(strategy, update, "type")
		update["rollingUpdate"] = rolling
	}
	t.spec["strategy"] = update
}

// nothing reports whether a limit allows no pod.
func nothing(limit any) bool { return limit == int64(0) || limit == "0%" }
