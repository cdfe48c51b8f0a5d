// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

// helm runs the pinned Helm, with all rights, in the folder of its module.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"-C", "hack/helm", "tool", "helm", "--kubeconfig=" + shared.Kubeconfig}, args...)...)
	cmd.Dir = shared.root
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// mustHelm is helm for what has to succeed.
func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// podsOf returns the UIDs of the pods of a set by revision and name. A pod that was restarted fails the test.
func podsOf(t *testing.T, set *v1alpha1.RollSet) map[string]types.UID {
	t.Helper()
	pods := &corev1.PodList{}
	if err := shared.List(t.Context(), pods, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		uids[pod.Labels[v1alpha1.RevisionLabel]+" "+pod.Name] = pod.UID
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("pod %s was restarted", pod.Name)
			}
		}
	}
	return uids
}

// sameAs fails unless a set has the very pods that it had.
func sameAs(t *testing.T, after string, set *v1alpha1.RollSet, before map[string]types.UID) {
	t.Helper()
	if now := podsOf(t, set); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("after %s the pods are %v, not %v", after, now, before)
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

// awaitUpdated waits until so many pods of a set are updated and available.
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

// TestHelm goes through the life of a release, on a cluster where kubectl has installed the CRD before, while a set is in the
// middle of a rollout: its pods notice nothing, and outlive the release.
func TestHelm(t *testing.T) {
	kubectl(t, kustomize(t, "config/crd"), "apply", "-f", "-")
	chart := "../../charts/rollset"
	in := []string{"--namespace=rollset-system", "--set=image.repository=registry.example/rollset,image.tag=v1"}
	install := append([]string{"install", "rollset", chart, "--create-namespace", "--wait", "--timeout=2m"}, in...)
	if _, err := helm(t, install...); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("over what kubectl has installed: %v", err)
	}
	mustHelm(t, append(install, "--take-ownership")...)
	d := deployment(t, objects(t, mustHelm(t, append([]string{"template", "rollset", chart}, in...)...)))
	p, err := tryRun(t, d)
	if err != nil {
		t.Fatal(err)
	}
	ensureNamespace(t, "helm")
	set := newSet(t, "helm", "live")
	edit(t, set, func(spec *v1alpha1.RollSetSpec) { spec.Replicas = new(int32(4)) })
	awaitUpdated(t, set, 4)
	edit(t, set, func(spec *v1alpha1.RollSetSpec) {
		spec.Template.Spec.Containers[0].Image = "registry.k8s.io/pause:3.11"
		spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt(2))
	})
	awaitUpdated(t, set, 2)
	awaitPods(t, set, 4)
	before := podsOf(t, set)

	mustHelm(t, append([]string{"upgrade", "rollset", chart, "--wait", "--timeout=2m", "--set=replicas=1,logLevel=1"}, in...)...)
	sameAs(t, "helm upgrade", set, before)
	mustHelm(t, "rollback", "rollset", "1", "--namespace=rollset-system", "--wait", "--timeout=2m")
	sameAs(t, "helm rollback", set, before)
	if err := p.Stop(); err != nil { // the rights go with the release
		t.Error(err)
	}
	mustHelm(t, "uninstall", "rollset", "--namespace=rollset-system", "--wait", "--timeout=2m")
	kubectl(t, "", "wait", "--for=condition=Established", "crd/rollsets.apps.rollset.dev")
	sameAs(t, "helm uninstall", set, before)

	mustHelm(t, install...) // the CRD that was left is the release's own
	if p, err = tryRun(t, d); err != nil {
		t.Fatal(err)
	}
	edit(t, set, func(spec *v1alpha1.RollSetSpec) { spec.UpdateStrategy.RollingUpdate.Partition = nil })
	awaitUpdated(t, set, 4)
	t.Run("wait", waitsForSets)
	mustHelm(t, "uninstall", "ready", "slow", "stalled", "--namespace=helm")
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	mustHelm(t, "uninstall", "rollset", "--namespace=rollset-system", "--wait", "--timeout=2m")
}

// waitsForSets has helm --wait wait for the RollSet of an application: until it is ready, however slow it is, and no longer
// than it takes to see that it never will be.
func waitsForSets(t *testing.T) {
	install := func(name string, args ...string) error {
		t.Helper()
		_, err := helm(t, append([]string{"install", name, "../../charts/application", "--namespace=helm", "--wait"}, args...)...)
		return err
	}
	for name, image := range map[string]string{"ready": "nginx:1.29", "slow": "nginx:slow"} {
		if err := install(name, "--timeout=2m", "--set=image="+image); err != nil {
			t.Error(err)
		}
		set := &v1alpha1.RollSet{}
		if err := shared.Get(t.Context(), client.ObjectKey{Namespace: "helm", Name: name}, set); err != nil {
			t.Fatal(err)
		}
		if set.Status.AvailableReplicas != 2 {
			t.Errorf("helm --wait ends while %d of 2 pods of %s are available", set.Status.AvailableReplicas, name)
		}
	}
	begin := time.Now()
	err := install("stalled", "--timeout=5m", "--set=image=nginx:broken,progressDeadlineSeconds=3")
	if took := time.Since(begin); err == nil || took > patience {
		t.Errorf("helm --wait for a set that makes no progress: %v after %s", err, took)
	}
}
