// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

// means is a way to install the operator.
type means struct {
	// install installs a version, or upgrades to it, and returns the manager's Deployment.
	install func(version int) *appsv1.Deployment
	// uninstall removes the operator as its page says.
	uninstall func()
}

// TestLifeByKustomize is the life of an installation by kubectl.
func TestLifeByKustomize(t *testing.T) {
	manifest := kustomize(t, "config/default")
	life(t, "life-kustomize", means{
		install: func(version int) *appsv1.Deployment {
			versioned := strings.ReplaceAll(manifest, "controller:latest", fmt.Sprintf("controller:v%d", version))
			apply(t, versioned)
			return deployment(t, objects(t, versioned))
		},
		uninstall: func() {
			kubectl(t, manifest, "delete", "--ignore-not-found", "-f", "-", "-l", "app.kubernetes.io/name=rollset")
		},
	})
}

// life installs the operator, upgrades it twice while a set is in the middle of a rollout, removes it and installs it again. No set,
// pod or claim is lost, and no pod is restarted.
func life(t *testing.T, namespace string, by means) {
	t.Helper()
	p, err := tryRun(t, by.install(1))
	if err != nil {
		t.Fatal(err)
	}
	ensureNamespace(t, namespace)
	set := inTheMiddle(t, namespace)
	before := ownedBy(t, set)
	for version := 2; version <= 3; version++ {
		d := by.install(version)
		sameAs(t, "an upgrade", set, before)
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if p, err = tryRun(t, d); err != nil {
			t.Fatal(err)
		}
		edit(t, set, func(spec *v1alpha1.RollSetSpec) { spec.RevisionHistoryLimit = new(int32(version)) })
		awaitUpdated(t, set, 2) // the new manager has looked at it
		sameAs(t, "an upgrade, under the new manager", set, before)
	}
	if err := p.Stop(); err != nil { // the rights go with the operator
		t.Error(err)
	}
	by.uninstall()
	established(t, "rollsets.apps.rollset.dev")
	sameAs(t, "the uninstall", set, before)

	if p, err = tryRun(t, by.install(3)); err != nil {
		t.Fatal(err)
	}
	edit(t, set, func(spec *v1alpha1.RollSetSpec) { spec.UpdateStrategy.RollingUpdate.Partition = nil })
	awaitUpdated(t, set, 4)
	now := ownedBy(t, set)
	for name, uid := range before {
		if strings.HasPrefix(name, "claim ") && now[name] != uid {
			t.Errorf("%s is lost: %v", name, now)
		}
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	by.uninstall()
}

// inTheMiddle creates a set of four pods with claims. Two of them are updated.
func inTheMiddle(t *testing.T, namespace string) *v1alpha1.RollSet {
	t.Helper()
	set := newSet(t, namespace, "live", func(spec *v1alpha1.RollSetSpec) {
		spec.Replicas = new(int32(4))
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}}
	})
	awaitUpdated(t, set, 4)
	edit(t, set, func(spec *v1alpha1.RollSetSpec) {
		spec.Template.Spec.Containers[0].Image = "registry.k8s.io/pause:3.11"
		spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(2))
	})
	awaitUpdated(t, set, 2)
	awaitPods(t, set, 4)
	return set
}

// ownedBy returns the UIDs of a set, its pods by revision and name, and its claims. A restarted pod fails the test.
func ownedBy(t *testing.T, set *v1alpha1.RollSet) map[string]types.UID {
	t.Helper()
	now := &v1alpha1.RollSet{}
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(set), now); err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{"set " + now.Name: now.UID}
	pods := &corev1.PodList{}
	if err := shared.List(t.Context(), pods, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		uids["pod "+pod.Labels[v1alpha1.RevisionLabel]+" "+pod.Name] = pod.UID
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("pod %s was restarted", pod.Name)
			}
		}
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := shared.List(t.Context(), claims, client.InNamespace(set.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range claims.Items {
		uids["claim "+claims.Items[i].Name] = claims.Items[i].UID
	}
	return uids
}

// sameAs fails unless a set, its pods and its claims are those from before.
func sameAs(t *testing.T, after string, set *v1alpha1.RollSet, before map[string]types.UID) {
	t.Helper()
	if now := ownedBy(t, set); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("after %s there is %v, not %v", after, now, before)
	}
}

// edit changes the spec of a set.
func edit(t *testing.T, set *v1alpha1.RollSet, change func(spec *v1alpha1.RollSetSpec)) {
	t.Helper()
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(set.DeepCopy())
	change(&set.Spec)
	if err := shared.Patch(t.Context(), set, patch); err != nil {
		t.Fatal(err)
	}
}

// awaitUpdated waits until the given number of pods of a set are updated and available.
func awaitUpdated(t *testing.T, set *v1alpha1.RollSet, n int32) {
	t.Helper()
	eventually(t, "updated pods", func() error {
		now := &v1alpha1.RollSet{}
		if err := shared.Get(t.Context(), client.ObjectKeyFromObject(set), now); err != nil {
			return err
		}
		if now.Status.ObservedGeneration != now.Generation || now.Status.UpdatedAvailableReplicas != n || now.Status.Replicas != *now.Spec.Replicas {
			return fmt.Errorf("the status is %+v", now.Status)
		}
		return nil
	})
}
