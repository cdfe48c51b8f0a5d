// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity_test

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// The kinds that scripts are about.
const (
	pods      = "pod"
	claims    = "claim"
	revisions = "revision"
	rollSets  = "set"
)

var errBound = errors.New("the pod is bound, or going")

// operation is one line of a script. It names nothing that only one side knows.
type operation struct {
	verb, kind, name string
	// what names the part of an object that is changed.
	what string
	// precondition is the precondition of a write: "none", the "current" version, a "stale" one, or "another" object.
	precondition string
	// subresource is the part of the object that is written; empty for the object itself.
	subresource string
	dryRun      bool
	strategic   bool
	grace       *int64
	propagation *metav1.DeletionPropagation
}

// String returns the line for the report of a failure.
func (o operation) String() string {
	text := fmt.Sprintf("%s %s %s/%s: %s, %s", o.verb, o.kind, o.name, o.subresource, o.what, o.precondition)
	if o.grace != nil {
		text += fmt.Sprintf(", grace %d", *o.grace)
	}
	if o.propagation != nil {
		text += ", " + string(*o.propagation)
	}
	return fmt.Sprintf("%s, dry run %t, strategic %t", text, o.dryRun, o.strategic)
}

// operations draws an operation. Names are few, so that operations meet.
func operations() *rapid.Generator[operation] {
	return rapid.Custom(func(t *rapid.T) operation {
		op := operation{
			verb:         rapid.SampledFrom([]string{"create", "update", "patch", "update", "patch", "delete", "bind"}).Draw(t, "verb"),
			kind:         rapid.SampledFrom([]string{pods, pods, pods, claims, revisions, rollSets}).Draw(t, "kind"),
			name:         rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
			precondition: rapid.SampledFrom([]string{"current", "current", "none", "stale", "another"}).Draw(t, "precondition"),
			dryRun:       rapid.IntRange(0, 9).Draw(t, "dry run") == 9,
		}
		op.what = rapid.SampledFrom(append([]string{"nothing", "label", "annotation", "finalizer", "no finalizer", "owner", "generation", "status"}, words()[op.kind]...)).Draw(t, "what")
		switch op.verb {
		case "bind":
			op.kind, op.dryRun = pods, false
		case "delete":
			op.grace = rapid.SampledFrom([]*int64{nil, nil, new(int64(0)), new(int64(5))}).Draw(t, "grace")
			op.propagation = rapid.SampledFrom([]*metav1.DeletionPropagation{nil, nil, new(metav1.DeletePropagationBackground), new(metav1.DeletePropagationForeground), new(metav1.DeletePropagationOrphan)}).Draw(t, "propagation")
		case "update", "patch":
			op.subresource = rapid.SampledFrom(subresources()[op.kind]).Draw(t, "subresource")
			op.strategic = op.kind != rollSets && rapid.Bool().Draw(t, "strategic")
		}
		return op
	})
}

// words returns what else can differ in an object of a kind.
func words() map[string][]string {
	return map[string][]string{
		pods:      {"image", "env", "restart policy", "resources", "another container", "no image"},
		claims:    {"access modes", "volume name", "smaller", "smaller but more than it has", "attributes", "no attributes"},
		revisions: {"data", "number", "negative number"},
		rollSets:  {"replicas", "partition", "no partition", "image", "identity", "selector", "service"},
	}
}

func subresources() map[string][]string {
	return map[string][]string{
		pods:      {"", "", "status", "resize"},
		claims:    {"", "", "status"},
		revisions: {""},
		rollSets:  {"", "", "status"},
	}
}

// change changes an object as the operation demands.
func (o operation) change(obj client.Object) {
	switch o.what {
	case "label":
		obj.SetLabels(map[string]string{"app": "web", "more": "yes"})
	case "annotation":
		obj.SetAnnotations(map[string]string{"team": "a"})
	case "finalizer":
		obj.SetFinalizers([]string{"example.com/hold"})
	case "no finalizer":
		obj.SetFinalizers(nil)
	case "owner":
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: anotherUID, Controller: new(true)}})
	case "generation":
		obj.SetGeneration(obj.GetGeneration() + 7)
	}
	switch obj := obj.(type) {
	case *corev1.Pod:
		o.changePod(obj)
	case *corev1.PersistentVolumeClaim:
		o.changeClaim(obj)
	case *appsv1.ControllerRevision:
		o.changeRevision(obj)
	case *v1beta1.RollSet:
		o.changeSet(obj)
	}
}

func (o operation) changePod(pod *corev1.Pod) {
	c := &pod.Spec.Containers[0]
	switch o.what {
	case "image":
		c.Image = "app:v2"
	case "no image":
		c.Image = ""
	case "env":
		c.Env = []corev1.EnvVar{{Name: "COLOR", Value: "red"}}
	case "restart policy":
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	case "resources":
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	case "another container":
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "more", Image: "more:v1"})
	case "status":
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
}

func (o operation) changeClaim(claim *corev1.PersistentVolumeClaim) {
	switch o.what {
	case "access modes":
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	case "volume name":
		claim.Spec.VolumeName = "pv-1"
	case "smaller":
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Mi")}
	case "smaller but more than it has":
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("800Mi")}
	case "attributes":
		claim.Spec.VolumeAttributesClassName = new("gold")
	case "no attributes":
		claim.Spec.VolumeAttributesClassName = nil
	case "status":
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Mi")}
	}
}

func (o operation) changeRevision(revision *appsv1.ControllerRevision) {
	switch o.what {
	case "data":
		revision.Data.Raw = []byte(`{"spec":{"other":true}}`)
	case "number":
		revision.Revision++
	case "negative number":
		revision.Revision = -1
	}
}

func (o operation) changeSet(set *v1beta1.RollSet) {
	rolling := &set.Spec.UpdateStrategy.RollingUpdate
	switch o.what {
	case "replicas":
		set.Spec.Replicas = new(int32(4))
	case "partition":
		rolling.Partition = percent("50%")
	case "no partition":
		rolling.Partition = nil
	case "image":
		set.Spec.Template.Spec.Containers[0].Image = "app:v2"
	case "identity":
		set.Spec.PodIdentity = v1beta1.OrdinalIdentity
	case "selector":
		set.Spec.Selector.MatchLabels = map[string]string{"app": "web", "more": "yes"}
		set.Spec.Template.Labels = map[string]string{"app": "web", "more": "yes"}
	case "service":
		set.Spec.ServiceName = "other"
	case "status":
		set.Status.ObservedGeneration, set.Status.Replicas = 1, 2
	}
}

// patchType returns how a patch is written.
func (o operation) patchType() types.PatchType {
	if o.strategic {
		return types.StrategicMergePatchType
	}
	return types.MergePatchType
}

func patchBody(op operation, from, to client.Object) ([]byte, error) {
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	var body []byte
	if op.strategic {
		body, err = strategicpatch.CreateTwoWayMergePatch(before, after, emptyObject(op.kind))
	} else {
		body, err = jsonpatch.CreateMergePatch(before, after)
	}
	if err != nil || op.precondition != "current" {
		return body, err
	}
	insists := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"uid":%q}}`, from.GetResourceVersion(), from.GetUID())
	if from.GetUID() == "" {
		return body, nil
	}
	return jsonpatch.MergeMergePatches(body, []byte(insists))
}

func (o operation) dry() []string {
	if o.dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (o operation) updateOptions() []client.UpdateOption {
	return []client.UpdateOption{&client.UpdateOptions{DryRun: o.dry()}}
}

func (o operation) patchOptions() []client.PatchOption {
	return []client.PatchOption{&client.PatchOptions{DryRun: o.dry()}}
}

func (o operation) subResourceOptions() []client.SubResourceUpdateOption {
	return []client.SubResourceUpdateOption{&client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: o.dry()}}}
}

func (o operation) subResourcePatchOptions() []client.SubResourcePatchOption {
	return []client.SubResourcePatchOption{&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: o.dry()}}}
}
