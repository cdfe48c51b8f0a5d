// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// podTemplate returns a template with the fields of real ones.
func podTemplate(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}, Annotations: map[string]string{"example.com/team": "a"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "nginx:1.28", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
		}}},
	}
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// newDeployment creates a Deployment and an autoscaler that points to it.
func (u *user) newDeployment(t *testing.T, name string) {
	t.Helper()
	u.create(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector(name), Template: podTemplate(name)},
	})
	u.create(t, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: new(int32(3)), MaxReplicas: 3,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		},
	})
}

// newCloneSet creates a CloneSet and the pods that OpenKruise would make of it.
func (u *user) newCloneSet(t *testing.T, name string) {
	t.Helper()
	installCloneSets(t)
	spec := map[string]any{"replicas": int64(3), "updateStrategy": map[string]any{"type": "ReCreate"}}
	var err error
	template := podTemplate(name)
	if spec["template"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&template); err != nil {
		t.Fatal(err)
	}
	spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": name}}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	u.create(t, set)
	for _, id := range []string{"bcdfg", "x7k2p", "m4t8z"} {
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		pod.Name = name + "-" + id
		pod.Labels["apps.kruise.io/cloneset-instance-id"] = id
		pod.Labels[v1beta1.RevisionLabel] = name + "-6c8f5d7b9c"
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
		u.create(t, pod)
		eventually(t, "the gate to open", func() error {
			now := &corev1.Pod{}
			if err := shared.Get(t.Context(), client.ObjectKeyFromObject(pod), now); err != nil {
				return err
			}
			now.Status.Conditions = append(now.Status.Conditions, corev1.PodCondition{Type: "InPlaceUpdateReady", Status: corev1.ConditionTrue})
			return shared.Status().Update(t.Context(), now)
		})
	}
}

// installCloneSets adds the kind CloneSet to the API server, as far as these tests need it.
func installCloneSets(t *testing.T) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "clonesets.apps.kruise.io"},
		"spec": map[string]any{
			"group": "apps.kruise.io", "scope": "Namespaced",
			"names": map[string]any{"kind": "CloneSet", "plural": "clonesets", "singular": "cloneset"},
			"versions": []any{map[string]any{
				"name": "v1alpha1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := shared.Create(t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/v1alpha1")
	list.SetKind("CloneSetList")
	eventually(t, "CloneSets to be served", func() error { return shared.List(t.Context(), list) })
}

// create creates an object in the user's namespace.
func (u *user) create(t *testing.T, o client.Object) {
	t.Helper()
	o.SetNamespace(u.namespace)
	eventually(t, "an object to be accepted", func() error { return shared.Create(t.Context(), o) })
}

// awaitPods waits until the given number of pods is ready, and returns their UIDs by name.
func (u *user) awaitPods(t *testing.T, app string, n int) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	eventually(t, fmt.Sprintf("%d ready pods", n), func() error {
		clear(uids)
		for _, pod := range u.pods(t, app) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					uids[pod.Name] = pod.UID
				}
			}
		}
		if len(uids) != n {
			return fmt.Errorf("there are %d", len(uids))
		}
		return nil
	})
	return uids
}

// sameProcesses fails unless the pods are the same as before, without restarts, and controlled by an object of a kind.
func (u *user) sameProcesses(t *testing.T, app string, before map[string]types.UID, kind string) {
	t.Helper()
	now := u.pods(t, app)
	if len(now) != len(before) {
		t.Errorf("there are %d pods, not %d", len(now), len(before))
	}
	for i := range now {
		pod := &now[i]
		if before[pod.Name] != pod.UID || pod.DeletionTimestamp != nil {
			t.Errorf("pod %s is not the one that was there before", pod.Name)
		}
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != kind {
			t.Errorf("pod %s belongs to %v, not to a %s", pod.Name, owner, kind)
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("pod %s was restarted", pod.Name)
			}
		}
	}
}

// TestAdoptCloneSet moves a CloneSet to RollSet while its pods run. Each step is killed and repeated. TestWorkloads moves the
// other kinds.
func TestAdoptCloneSet(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newCloneSet(t, "web")
	before := u.awaitPods(t, "web", 3)

	dry := u.run(t, "adopt", "cloneset/web")
	contains(t, dry, "cloneset/web becomes rollset/web; 3 of 3 pods match its template", "1. keep the manifest", "Nothing was done; --yes does it.")
	err := shared.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "web"}, &v1beta1.RollSet{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a dry run made a set: %v", err)
	}
	if n := u.killedAfterWrites(t, "adopt", "cloneset/web", "--yes"); n < 4 {
		t.Errorf("it was killed after %d writes only", n)
	}
	contains(t, u.run(t, "status", "web", longest()), "")
	u.sameProcesses(t, "web", before, "RollSet")
	u.fails(t, 1, []string{"release", "web"}, "the way back to a CloneSet is OpenKruise's")
}

// TestMoveInTrouble moves a workload there and back while the API server answers each write with a conflict, with a failure,
// and then not at all.
func TestMoveInTrouble(t *testing.T) {
	t.Parallel()
	j := newJourney(t, "testdata/workloads/redis.yaml", false)
	well := j.user
	j.user = well.troubled(t)
	j.move(t, "adopt", j.kind+"/"+j.name)
	j.same(t, "after adopt", "RollSet")
	j.user = well.troubled(t)
	j.move(t, "release", j.name)
	j.same(t, "after release", "StatefulSet")
	set := &appsv1.StatefulSet{}
	if err := shared.Get(t.Context(), client.ObjectKey{Namespace: well.namespace, Name: j.name}, set); err != nil {
		t.Fatal(err)
	}
	if set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || len(set.Annotations) > 0 {
		t.Errorf("the StatefulSet is left with %v and %v", set.Spec.UpdateStrategy, set.Annotations)
	}
}

// TestReleaseRefuses edits a set that was adopted in ways in which its old kind would delete or replace pods.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	j := newJourney(t, "testdata/workloads/zookeeper.yaml", false)
	j.adopt(t)
	edit := func(edit func(*v1beta1.RollSet)) {
		t.Helper()
		eventually(t, "an edit", func() error {
			set := j.user.get(t, j.name)
			edit(set)
			return shared.Update(t.Context(), set)
		})
		j.settled(t)
	}
	edit(func(set *v1beta1.RollSet) { set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)} })
	j.remember(t)
	j.user.fails(t, 1, []string{"release", j.name, "--yes"}, "no counterpart for spec.reserveOrdinals: a StatefulSet has no such field")
	lossy := j.user.try(t, "", "release", j.name, "--yes", "--lossy")
	contains(t, lossy.err, "warning: left out: spec.reserveOrdinals", "pod zk-3 would be deleted")
	if lossy.code != 1 {
		t.Errorf("exit code %d", lossy.code)
	}
	edit(func(set *v1beta1.RollSet) {
		set.Spec.ReserveOrdinals = nil
		set.Spec.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{{Updated: intstr.FromInt32(1)}}
	})
	j.remember(t)
	j.user.fails(t, 1, []string{"release", j.name, "--yes"}, "spec.updateStrategy.rollingUpdate.steps: a StatefulSet has no such field")
	edit(func(set *v1beta1.RollSet) { set.Spec.UpdateStrategy.RollingUpdate.Steps = nil })

	// A rollout that does not end.
	j.user.run(t, "set", "image", j.name, "zookeeper=zookeeper:broken")
	eventually(t, "a pod at another revision", func() error {
		if set := j.user.get(t, j.name); set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == set.Status.CurrentRevision {
			return errors.New("not yet")
		}
		return nil
	})
	j.user.fails(t, 1, []string{"release", j.name, "--yes"}, "is not at the update revision and would be replaced")
	j.user.run(t, "undo", j.name)
	j.settled(t)
	j.remember(t)
	j.move(t, "release", j.name)
	j.same(t, "after release", "StatefulSet")
}

// scales fails unless the autoscaler, if there is one, scales an object of a kind.
func (u *user) scales(t *testing.T, name, kind string) {
	t.Helper()
	scaler := &autoscalingv2.HorizontalPodAutoscaler{}
	err := shared.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: name}, scaler)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err == nil && scaler.Spec.ScaleTargetRef.Kind != kind {
		t.Errorf("the autoscaler scales a %s, not a %s", scaler.Spec.ScaleTargetRef.Kind, kind)
	}
}

// TestAdoptRefuses runs adopt on what it must not touch.
func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newDeployment(t, "web")
	before := u.awaitPods(t, "web", 3)
	// The pod was changed by hand, in a field that the template does not set.
	for name := range before {
		pod := &corev1.Pod{}
		if err := shared.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: name}, pod); err != nil {
			t.Fatal(err)
		}
		patch := client.MergeFrom(pod.DeepCopy())
		pod.Annotations["example.com/team"] = "b"
		if err := shared.Patch(t.Context(), pod, patch); err != nil {
			t.Fatal(err)
		}
		r := u.try(t, "", "adopt", "deployment/web", "--yes")
		contains(t, r.err, name+": metadata.annotations[example.com/team]", "--allow-restarts accepts that")
		if r.code != 1 {
			t.Errorf("exit code %d", r.code)
		}
		break
	}
	u.sameProcesses(t, "web", before, "ReplicaSet")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "web"}}
	parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "parent"}}
	u.create(t, parent)
	owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"parent","uid":%q,"controller":true}]}}`, parent.UID)
	if err := shared.Patch(t.Context(), deployment, client.RawPatch(types.MergePatchType, []byte(owner))); err != nil {
		t.Fatal(err)
	}
	u.fails(t, 1, []string{"adopt", "deployment/web", "--yes", "--lossy", "--allow-restarts"}, "deployment/web is controlled by configmap/parent, which would make it again")
	u.sameProcesses(t, "web", before, "ReplicaSet")
	u.fails(t, 1, []string{"adopt", "deployment/nosuch"}, "there is no deployment/nosuch")
	u.fails(t, 1, []string{"adopt", "web"}, `"web" is not KIND/NAME`)
	u.fails(t, 1, []string{"adopt", "job/web"}, "job cannot be moved to a RollSet")
	u.fails(t, 1, []string{"release", "nosuch"}, "there is no rollset nosuch")
}

// TestConvertedIsAccepted sends the output of convert to the API server.
func TestConvertedIsAccepted(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	converted := t.TempDir()
	inputs, err := filepath.Glob(filepath.Join(shared.root, "internal/cli/move/testdata/*.in.yaml"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no input: %v", err)
	}
	for _, input := range inputs {
		manifest, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(manifest), "namespace: prod", "namespace: "+u.namespace)
		r := u.here().try(t, text, "convert", "-f", "-", "--lossy")
		if err := os.WriteFile(filepath.Join(converted, filepath.Base(input)), []byte(r.out), 0o600); err != nil || r.code != 0 {
			t.Fatalf("%s: %v %s", input, err, r.err)
		}
	}
	// kubectl goes on after an error, and names the file.
	for _, way := range []string{"--server-side=false", "--server-side"} {
		u.kubectl(t, "apply", way, "--dry-run=server", "--validate=strict", "-f", converted)
	}
}
