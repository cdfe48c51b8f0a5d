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

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// means is a way to install the operator.
type means struct {
	// install installs a version, or upgrades to it, and returns the manager's Deployment.
	install func(version int) *appsv1.Deployment
	// uninstall removes the operator as its page says.
	uninstall func()
}

// step is one of the steps in the life of an installation.
type step struct {
	name string
	// version is the version that is installed from now on; 0 is none.
	version int
}

// steps is the life of an installation: each manager goes on with the rollout that the one before has begun. The short form has no second
// upgrade, which is the first again.
var steps = []step{
	{"the installation", 1},
	{"the first upgrade", 2},
	{"the second upgrade", 3},
	{"the uninstall", 0},
	{"the installation after it", 2},
	{"the last uninstall", 0},
}

// TestLife takes the operator through the steps of its life by each means, on a cluster that does not know the kind, while a set
// is in the middle of a rollout. No set, pod or claim is lost, and no pod is restarted.
func TestLife(t *testing.T) {
	all := map[string]func(t *testing.T, own string) means{"kustomize": byKustomize, "olm": byOLM}
	for name, h := range helms() {
		all[name] = h.means
	}
	for name, by := range all {
		t.Run(name, func(t *testing.T) {
			kubectl(t, kustomize(t, "config/default"), "delete", "--ignore-not-found", "-f", "-") // what another test has left
			ensureNamespace(t, "life-"+name)
			live(t, "life-"+name, by(t, "life-of-"+name))
		})
	}
}

// live goes through the steps with a set in a namespace.
func live(t *testing.T, namespace string, by means) {
	t.Helper()
	var set *v1beta1.RollSet
	var before map[string]types.UID
	var p *manager.Process
	stop := func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		p = nil
	}
	defer func() {
		if p != nil {
			stop()
		}
	}()
	updated := int32(0) // of the set's pods, one more by each manager
	for _, next := range steps {
		if next.version == 3 && testing.Short() {
			continue
		}
		if next.version == 0 {
			stop() // the rights go with the operator
			by.uninstall()
			established(t, "rollsets.apps.rollset.dev")
			sameAs(t, next.name, set, before)
			continue
		}
		d := by.install(next.version)
		if set != nil {
			sameAs(t, next.name, set, before)
		}
		if p != nil {
			stop()
		}
		var err error
		if p, err = tryRun(t, d); err != nil {
			t.Fatalf("%s: %v", next.name, err)
		}
		updated++
		if set == nil {
			set = inTheMiddle(t, namespace)
			before = ownedBy(t, set)
			continue
		}
		edit(t, set, func(spec *v1beta1.RollSetSpec) {
			spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(4 - updated))
		})
		awaitUpdated(t, set, updated)
		now := ownedBy(t, set)
		oneMoved(t, next.name, before, now)
		before = now
	}
}

// oneMoved fails unless everything from before is there, but for one pod that is replaced.
func oneMoved(t *testing.T, after string, before, now map[string]types.UID) {
	t.Helper()
	var lost []string
	for name, uid := range before {
		if now[name] != uid {
			lost = append(lost, name)
		}
	}
	if len(now) != len(before) || len(lost) != 1 || !strings.HasPrefix(lost[0], "pod ") {
		t.Errorf("after %s there is %v, not %v: %v", after, now, before, lost)
	}
}

// byKustomize installs with kubectl. What it installs says where.
func byKustomize(t *testing.T, _ string) means {
	t.Helper()
	manifest := kustomize(t, "config/default")
	return means{
		install: func(version int) *appsv1.Deployment {
			versioned := strings.ReplaceAll(manifest, "controller:latest", fmt.Sprintf("controller:v%d", version))
			kubectl(t, versioned, "apply", "-f", "-")
			established(t, "rollsets.apps.rollset.dev")
			return deployment(t, objects(t, versioned))
		},
		uninstall: func() {
			kubectl(t, manifest, "delete", "--ignore-not-found", "-f", "-", "-l", "app.kubernetes.io/name=rollset")
		},
	}
}

// inTheMiddle creates a set of four pods with claims. One of them is updated.
func inTheMiddle(t *testing.T, namespace string) *v1beta1.RollSet {
	t.Helper()
	set := newSet(t, namespace, "live", func(spec *v1beta1.RollSetSpec) {
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
	edit(t, set, func(spec *v1beta1.RollSetSpec) {
		spec.Template.Spec.Containers[0].Image = "registry.k8s.io/pause:3.11"
		spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(3))
	})
	awaitUpdated(t, set, 1)
	awaitPods(t, set, 4)
	return set
}

// ownedBy returns the UIDs of a set, its pods by revision and name, and its claims. A restarted pod fails the test.
func ownedBy(t *testing.T, set *v1beta1.RollSet) map[string]types.UID {
	t.Helper()
	now := &v1beta1.RollSet{}
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
		uids["pod "+pod.Labels[v1beta1.RevisionLabel]+" "+pod.Name] = pod.UID
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

// sameAs fails unless a set, its pods and its claims are the same as before.
func sameAs(t *testing.T, after string, set *v1beta1.RollSet, before map[string]types.UID) {
	t.Helper()
	if now := ownedBy(t, set); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("after %s there is %v, not %v", after, now, before)
	}
}

// edit changes the spec of a set.
func edit(t *testing.T, set *v1beta1.RollSet, change func(spec *v1beta1.RollSetSpec)) {
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
func awaitUpdated(t *testing.T, set *v1beta1.RollSet, n int32) {
	t.Helper()
	eventually(t, "updated pods", func() error {
		now := &v1beta1.RollSet{}
		if err := shared.Get(t.Context(), client.ObjectKeyFromObject(set), now); err != nil {
			return err
		}
		if now.Status.ObservedGeneration != now.Generation || now.Status.UpdatedAvailableReplicas != n || now.Status.Replicas != *now.Spec.Replicas {
			return fmt.Errorf("the status is %+v", now.Status)
		}
		return nil
	})
}
