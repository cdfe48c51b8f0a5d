// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
)

// watchedPod is a running pod of the set "web", whose template has the annotation "team".
func watchedPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-abcde", Namespace: "default", UID: "1", Generation: 3, ResourceVersion: "10",
			Labels:          map[string]string{"app": "web"},
			Annotations:     map[string]string{"team": "blue", "example.com/network": "10.0.0.1"},
			OwnerReferences: []metav1.OwnerReference{claims.Owner("web", "set")},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			ObservedGeneration: 3,
			Phase:              corev1.PodRunning,
			Conditions:         []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Started: new(true),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(100, 0)}},
				Resources: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
				},
			}},
			InitContainerStatuses: []corev1.ContainerStatus{{
				Name:  "init",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}},
			}},
		},
	}
}

// changed compares two versions of a pod of a set whose template has the annotation "team".
func changed(before, after *corev1.Pod) bool {
	return Changed(before, after, func() map[string]string { return map[string]string{"team": "blue"} })
}

func TestChanged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing": {change: func(*corev1.Pod) {}},
		"a resync, or a write that only managers of fields see": {change: func(p *corev1.Pod) {
			p.ResourceVersion = "11"
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		}},
		"a foreign annotation comes":           {change: func(p *corev1.Pod) { p.Annotations["example.com/seen"] = "yes" }},
		"a foreign annotation changes":         {change: func(p *corev1.Pod) { p.Annotations["example.com/network"] = "10.0.0.2" }},
		"a foreign annotation goes":            {change: func(p *corev1.Pod) { delete(p.Annotations, "example.com/network") }},
		"an annotation of the template goes":   {change: func(p *corev1.Pod) { delete(p.Annotations, "team") }, want: true},
		"an annotation of the template varies": {change: func(p *corev1.Pod) { p.Annotations["team"] = "red" }, want: true},
		"an annotation of ours comes":          {change: func(p *corev1.Pod) { p.Annotations["apps.rollset.dev/in-place-update"] = "{}" }, want: true},
		"the date of a lifecycle state comes":  {change: func(p *corev1.Pod) { p.Annotations[v1beta1.LifecycleSinceAnnotation] = "x" }, want: true},
		"a deletion cost comes":                {change: func(p *corev1.Pod) { p.Annotations[corev1.PodDeletionCost] = "3" }, want: true},
		"a label of anybody comes":             {change: func(p *corev1.Pod) { p.Labels["example.com/tier"] = "gold" }, want: true},
		"the pod is released":                  {change: func(p *corev1.Pod) { p.OwnerReferences = nil }, want: true},
		"the owner is no controller any more":  {change: func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, want: true},
		"the deletion begins": {change: func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(200, 0)}
		}, want: true},
		"the deletion of the pod and the creation of its namesake were missed": {change: func(p *corev1.Pod) { p.UID = "2" }, want: true},
		"the spec changes":                         {change: func(p *corev1.Pod) { p.Generation++ }, want: true},
		"an API server does not count generations": {change: func(p *corev1.Pod) { p.Generation = 0 }, want: true},
		"the pod is bound to a node":               {change: func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, want: true},
		"the pod gets an address":                  {change: func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }},
		"a condition is looked at and found the same": {change: func(p *corev1.Pod) {
			p.Status.Conditions[0].LastProbeTime = metav1.Unix(200, 0)
		}},
		"the pod becomes unready": {change: func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, want: true},
		"a condition comes": {change: func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/gate"})
		}, want: true},
		"a container waits": {change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}, want: true},
		"a container is started again": {change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Unix(200, 0)}
		}, want: true},
		"a container gets other resources": {change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}, want: true},
		"the same resources are spelled otherwise": {change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1000m")
		}},
		"a container's resources are no longer told": {change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Resources = nil
		}, want: true},
		"an init container fails": {change: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
		}, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := watchedPod()
			tt.change(after)
			if got := changed(watchedPod(), after); got != tt.want {
				t.Errorf("Changed = %v, want %v", got, tt.want)
			}
			if got := changed(after, watchedPod()); got != tt.want {
				t.Errorf("Changed = %v the other way round, want %v", got, tt.want)
			}
		})
	}
}

// TestUpdatesThatDoNotMatterAllocateNothing holds the comparison to what each of the many events of a pod may cost.
func TestUpdatesThatDoNotMatterAllocateNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts those of the whole process
	before, after := watchedPod(), watchedPod()
	after.Status.PodIP = "10.0.0.1"
	if got := testing.AllocsPerRun(100, func() { changed(before, after) }); got != 0 {
		t.Errorf("Changed allocates %v times for an address", got)
	}
}

// TestEveryFieldOfAPodIsDecidedOn fails when an upgrade of the API adds a field that is neither kept nor dropped on purpose.
func TestEveryFieldOfAPodIsDecidedOn(t *testing.T) {
	t.Parallel()
	const matters, ignored = true, false
	tests := map[string]struct {
		// of returns the struct within a pod.
		of     func(*corev1.Pod) any
		fields map[string]bool
	}{
		"status": {of: func(p *corev1.Pod) any { return &p.Status }, fields: map[string]bool{
			"ObservedGeneration": matters, "Phase": matters, "Conditions": matters, "Message": matters, "Reason": matters,
			"InitContainerStatuses": matters, "ContainerStatuses": matters,
			"NominatedNodeName": ignored, "HostIP": ignored, "HostIPs": ignored, "PodIP": ignored, "PodIPs": ignored,
			"StartTime": ignored, "QOSClass": ignored, "EphemeralContainerStatuses": ignored, "Resize": ignored,
			"ResourceClaimStatuses": ignored, "ExtendedResourceClaimStatus": ignored,
			"NodeAllocatableResourceClaimStatuses": ignored, "VolumeHealth": ignored,
			"AllocatedResources": ignored, "Resources": ignored, // the pod's as a whole; what is resized are containers
		}},
		"condition": {of: func(p *corev1.Pod) any { return &p.Status.Conditions[0] }, fields: map[string]bool{
			"Type": matters, "ObservedGeneration": matters, "Status": matters, "LastTransitionTime": matters,
			"Reason": matters, "Message": matters,
			"LastProbeTime": ignored,
		}},
		"container": {of: func(p *corev1.Pod) any { return &p.Status.ContainerStatuses[0] }, fields: map[string]bool{
			"Name": matters, "State": matters, "LastTerminationState": matters, "Ready": matters, "RestartCount": matters,
			"Image": matters, "ImageID": matters, "ContainerID": matters, "Started": matters, "Resources": matters,
			"AllocatedResources": ignored, "VolumeMounts": ignored, "User": ignored, "AllocatedResourcesStatus": ignored,
			"StopSignal": ignored,
		}},
		"metadata": {of: func(p *corev1.Pod) any { return &p.ObjectMeta }, fields: map[string]bool{
			"UID": matters, "Generation": matters, "DeletionTimestamp": matters, "Labels": matters, "Annotations": matters,
			"OwnerReferences": matters, "Finalizers": matters,
			"Name": ignored, "GenerateName": ignored, "Namespace": ignored, "SelfLink": ignored, "CreationTimestamp": ignored,
			"ResourceVersion": ignored, "DeletionGracePeriodSeconds": ignored, "ManagedFields": ignored,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, field := range reflect.VisibleFields(reflect.TypeOf(tt.of(watchedPod())).Elem()) {
				want, decided := tt.fields[field.Name]
				if !decided {
					t.Errorf("does %s matter? Nobody has decided", field.Name)
					continue
				}
				before, after := watchedPod(), watchedPod()
				// With and without: a field that is filled must be told from its zero value.
				reflect.ValueOf(tt.of(before)).Elem().FieldByIndex(field.Index).SetZero()
				occupy(reflect.ValueOf(tt.of(after)).Elem().FieldByIndex(field.Index))
				if got := changed(before, after); got != want {
					t.Errorf("Changed = %v for %s, want %v", got, field.Name, want)
				}
				trimmed := after.DeepCopy()
				trim(trimmed)
				if changed(after, trimmed) {
					t.Errorf("%s matters, but is trimmed away", field.Name)
				}
			}
		})
	}
}

// occupy gives a value something that is not zero, down to the first field of a struct.
func occupy(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("apps.rollset.dev/x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		occupy(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		occupy(v.Index(0))
	case reflect.Map:
		key := reflect.New(v.Type().Key()).Elem()
		occupy(key)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
	case reflect.Struct:
		if t, ok := reflect.TypeAssert[*metav1.Time](v.Addr()); ok {
			*t = metav1.Unix(300, 0)
			return
		}
		occupy(v.Field(0))
	default:
	}
}
