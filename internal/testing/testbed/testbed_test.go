// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

const (
	namespace = "default"
	gate      = corev1.PodConditionType("example.com/gate")
)

// TestCluster goes through the life of pods on one cluster, which takes seconds to start.
func TestCluster(t *testing.T) {
	begin := time.Now()
	cluster, err := testbed.Start(t.Context(), testbed.Options{Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := clientFor(t, cluster.RESTConfig())
	t.Run("a deployment becomes available", func(t *testing.T) { testDeployment(t, client) })
	t.Run("a changed image restarts the container", func(t *testing.T) { testImage(t, client) })
	t.Run("a resize needs no restart", func(t *testing.T) { testResize(t, client) })
	t.Run("a broken image never becomes ready", func(t *testing.T) { testBroken(t, client) })
	t.Run("readiness waits for the gate", func(t *testing.T) { testGate(t, client) })
	t.Run("a deleted pod ends before it goes", func(t *testing.T) { testDelete(t, client) })
	t.Run("claims are bound and grow", func(t *testing.T) { testClaims(t, client) })
	t.Run("a user has the rights it was given", func(t *testing.T) { testUser(t, cluster, client) })
	t.Run("the audit log has every user's requests", func(t *testing.T) { testAudit(t, cluster) })
	t.Run("a scheduler that ends is started again", func(t *testing.T) { testRestart(t, cluster, client) })
	t.Run("nothing is left behind", func(t *testing.T) { testStop(t, cluster) })
}

// TestBareAPIServer starts an API server without scheduler and controllers, as envtest does, and nodes that bind pods themselves.
func TestBareAPIServer(t *testing.T) {
	cluster, err := testbed.Start(t.Context(), testbed.Options{WithoutScheduler: true, WithoutControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := clientFor(t, cluster.RESTConfig())
	t.Run("pods are bound", func(t *testing.T) { create(t, client, newPod("bound", "app:v1"), isReady) })
	t.Run("claims are waited for", func(t *testing.T) {
		pod := newPod("claiming", "app:v1")
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "late"},
		}}}
		create(t, client, pod, func(p *corev1.Pod) bool { return scheduling(p) == corev1.PodReasonUnschedulable })
		createClaim(t, client, "late", nodes.ClaimClass)
		wait(t, client, pod.Name, isReady)
	})
	t.Run("a silent node does nothing until it comes back", func(t *testing.T) { testSilence(t, cluster, client) })
	t.Run("nodes can be registered again", func(t *testing.T) {
		for range 2 {
			ctx, stop := context.WithCancel(t.Context())
			fleet, err := nodes.Start(ctx, cluster.RESTConfig(), nodes.Options{Count: 1, Prefix: "again-"})
			stop()
			if err != nil {
				t.Fatal(err)
			}
			fleet.Wait()
		}
	})
	t.Run("selectors that match nothing are waited for", func(t *testing.T) {
		pod := newPod("nowhere", "app:v1")
		pod.Spec.NodeSelector = map[string]string{"disk": "fast"}
		create(t, client, pod, func(p *corev1.Pod) bool { return scheduling(p) == corev1.PodReasonUnschedulable })
	})
	if !testing.Short() { // test/e2e does the same, with a manager
		t.Run("an outage of the API server loses nothing", func(t *testing.T) { testOutage(t, cluster, client) })
	}
}

func testOutage(t *testing.T, cluster *testbed.Cluster, client kubernetes.Interface) {
	t.Helper()
	before := create(t, client, newPod("survivor", "app:v1"), isReady)
	if err := cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(namespace).Get(t.Context(), before.Name, metav1.GetOptions{}); err == nil {
		t.Fatal("the API server answers though it was killed")
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := wait(t, client, before.Name, isReady); after.UID != before.UID {
		t.Errorf("pod %s has UID %s after the outage, want %s", before.Name, after.UID, before.UID)
	}
	create(t, client, newPod("newcomer", "app:v1"), isReady) // the nodes have found the API server again
}

func testRestart(t *testing.T, cluster *testbed.Cluster, client kubernetes.Interface) {
	t.Helper()
	killed := 0
	for _, pid := range processesUnder(t, cluster.Dir()) {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && filepath.Base(name) == "kube-scheduler" {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed != 1 {
		t.Fatalf("%d schedulers killed, want one", killed)
	}
	create(t, client, newPod("late", "app:v1"), isReady)
}

func testDeployment(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	pod := newPod("", "app:v1")
	_, err := client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(5)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		d, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != 5 {
			err = fmt.Errorf("%d of 5 pods are available", d.Status.AvailableReplicas)
		}
		return err
	})
}

func testImage(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	before := create(t, client, newPod("image", "app:v1"), isReady)
	patch(t, client, "image", `{"spec":{"containers":[{"name":"app","image":"app:v2"}]}}`)
	after := wait(t, client, "image", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 })
	was, is := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]
	if is.Image != updatedImage || is.ImageID == was.ImageID || is.ContainerID == was.ContainerID {
		t.Errorf("container status = %+v, want another image in another container than %+v", is, was)
	}
	if after.Status.ObservedGeneration != after.Generation || !isReady(after) {
		t.Errorf("generation %d observed of %d, conditions %v", after.Status.ObservedGeneration, after.Generation, after.Status.Conditions)
	}
}

func testResize(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pod := newPod("resize", "app:v1")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	create(t, client, pod, isReady)
	patch(t, client, "resize", `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"150m"}}}]}}`, "resize")
	after := wait(t, client, "resize", func(p *corev1.Pod) bool {
		return p.Status.ContainerStatuses[0].Resources.Requests.Cpu().String() == "150m"
	})
	if after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Error("the container was restarted")
	}
}

func testBroken(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	create(t, client, newPod("broken", "app:broken"), func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	time.Sleep(2 * time.Second)
	if pod := wait(t, client, "broken", func(*corev1.Pod) bool { return true }); isReady(pod) {
		t.Error("the pod is ready")
	}
}

func testGate(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pod := newPod("gated", "app:v1")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	create(t, client, pod, func(p *corev1.Pod) bool {
		return condition(p, corev1.PodReady).Reason == "ReadinessGatesNotReady"
	})
	patch(t, client, "gated", `{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`, "status")
	if ready := wait(t, client, "gated", isReady); condition(ready, gate).Status != corev1.ConditionTrue {
		t.Error("the gate's condition is gone")
	}
}

func testDelete(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	create(t, client, newPod("deleted", "app:v1"), isReady)
	watch, err := client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: "deleted"}))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := client.CoreV1().Pods(namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("watch sent %v", event)
		}
		if step := fmt.Sprintf("%s ready=%v deleting=%v", pod.Status.Phase, isReady(pod), pod.DeletionTimestamp != nil); len(seen) == 0 || seen[len(seen)-1] != step {
			seen = append(seen, step)
		}
		if event.Type == "DELETED" {
			break
		}
	}
	want := "Running ready=true deleting=false, Running ready=true deleting=true, Succeeded ready=false deleting=true"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("the pod went through %q, want %q", got, want)
	}
}

// updatedImage is how nodes report app:v2: by its name in full.
const updatedImage = "docker.io/library/app:v2"

func testSilence(t *testing.T, cluster *testbed.Cluster, client kubernetes.Interface) {
	t.Helper()
	pod := create(t, client, newPod("silent", "app:v1"), isReady)
	cluster.Nodes.Silence(pod.Spec.NodeName)
	patch(t, client, "silent", `{"spec":{"containers":[{"name":"app","image":"app:v2"}]}}`)
	time.Sleep(time.Second)
	pod = wait(t, client, "silent", func(*corev1.Pod) bool { return true })
	if pod.Status.ObservedGeneration != 1 {
		t.Errorf("the silent node observed generation %d", pod.Status.ObservedGeneration)
	}
	cluster.Nodes.Wake(pod.Spec.NodeName)
	wait(t, client, "silent", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].Image == updatedImage })
}

func testClaims(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	createClaim(t, client, "growing", nodes.ClaimClass)
	createClaim(t, client, "fixed", nodes.FixedClaimClass)
	claims := client.CoreV1().PersistentVolumeClaims(namespace)
	bigger := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	if _, err := claims.Patch(t.Context(), "fixed", types.MergePatchType, bigger, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("growing a claim of a class without expansion: %v, want it forbidden", err)
	}
	if _, err := claims.Patch(t.Context(), "growing", types.MergePatchType, bigger, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		claim, err := claims.Get(t.Context(), "growing", metav1.GetOptions{})
		if err == nil && claim.Status.Capacity.Storage().String() != "2Gi" {
			err = fmt.Errorf("capacity is %v", claim.Status.Capacity.Storage())
		}
		return err
	})
	for _, name := range []string{"growing", "fixed"} {
		if err := claims.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() error {
		volumes, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
		if err == nil && len(volumes.Items) > 0 {
			err = fmt.Errorf("%d volumes are left of deleted claims", len(volumes.Items))
		}
		return err
	})
}

func testUser(t *testing.T, cluster *testbed.Cluster, admin kubernetes.Interface) {
	t.Helper()
	config, err := cluster.RESTConfigFor("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	jane := clientFor(t, config)
	list := func() error {
		_, err := jane.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights lists pods: %v, want it forbidden", err)
	}
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, list)
}

func testAudit(t *testing.T, cluster *testbed.Cluster) {
	t.Helper()
	log, err := os.ReadFile(cluster.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"jane", "admin", "system:kube-scheduler"} {
		if !strings.Contains(string(log), fmt.Sprintf("%q:%q", "username", user)) {
			t.Errorf("no request of %s in the audit log", user)
		}
	}
}

func testStop(t *testing.T, cluster *testbed.Cluster) {
	t.Helper()
	running := processesUnder(t, cluster.Dir())
	if len(running) != 4 {
		t.Errorf("processes of the cluster: %v, want four", running)
	}
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range running {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is left: %v", pid, err)
		}
	}
	if _, err := os.Stat(cluster.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", cluster.Dir(), err)
	}
}

// processesUnder returns the processes whose arguments name the folder.
func processesUnder(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		var pid int
		if err != nil || !strings.Contains(string(line), dir) {
			continue // it has ended meanwhile, or is none of ours
		}
		if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newPod(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "app", Image: image}},
			TerminationGracePeriodSeconds: new(int64(5)),
		},
	}
}

func create(t *testing.T, client kubernetes.Interface, pod *corev1.Pod, done func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return wait(t, client, pod.Name, done)
}

func createClaim(t *testing.T, client kubernetes.Interface, name, class string) {
	t.Helper()
	claims := client.CoreV1().PersistentVolumeClaims(namespace)
	_, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && claim.Status.Phase != corev1.ClaimBound {
			err = fmt.Errorf("claim %s is %s", name, claim.Status.Phase)
		}
		return err
	})
}

func patch(t *testing.T, client kubernetes.Interface, name, body string, subresources ...string) {
	t.Helper()
	_, err := client.CoreV1().Pods(namespace).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// wait returns the pod as soon as it is as wanted.
func wait(t *testing.T, client kubernetes.Interface, name string, done func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, func() (err error) {
		pod, err = client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !done(pod) {
			err = fmt.Errorf("pod %s is not as wanted: %+v", name, pod.Status)
		}
		return err
	})
	return pod
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Long())
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func isReady(p *corev1.Pod) bool { return condition(p, corev1.PodReady).Status == corev1.ConditionTrue }

func scheduling(p *corev1.Pod) string { return condition(p, corev1.PodScheduled).Reason }

func condition(p *corev1.Pod, t corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return corev1.PodCondition{}
}
