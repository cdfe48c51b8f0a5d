// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// installer returns the output of make build-installer.
func installer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	command(t, "", "make", "-s", "build-installer", "IMG=registry.example/rollset:test", "DIST="+dir)
	text, err := os.ReadFile(filepath.Join(dir, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInstaller goes from a cluster without RollSets to the first pod of one, with one kubectl apply.
func TestInstaller(t *testing.T) {
	manifest := installer(t)
	d := deployment(t, objects(t, manifest))
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example/rollset:test" {
		t.Errorf("the image is %s", image)
	}
	begin := time.Now()
	kubectl(t, manifest, "apply", "-f", "-")
	eventually(t, "the manager", func() error { // as in a cluster, it is restarted until the CRD is served
		p, err := tryRun(t, d)
		if err == nil {
			t.Cleanup(func() { _ = p.Stop() })
		}
		return err
	})
	ensureNamespace(t, "first")
	awaitPods(t, newSet(t, "first", "first"), 1)
	t.Logf("from kubectl apply to the first pod: %v", time.Since(begin).Round(time.Millisecond))
}

// TestMakeUninstall removes the CRD by make, which refuses while a set is left. Without the CRD a manager does not start.
func TestMakeUninstall(t *testing.T) {
	apply(t, kustomize(t, "config/default"))
	ensureNamespace(t, "uninstalled")
	newSet(t, "uninstalled", "left")
	uninstall := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "make", "-s", "uninstall", "KUBECTL="+filepath.Join(shared.BinDir, "kubectl"))
		cmd.Dir, cmd.Env = shared.root, append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := uninstall()
	for _, want := range []string{"rollset.apps.rollset.dev/left", "error: RollSets are left, and would be deleted with their pods"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("with a set: %v, want %q in:\n%s", err, want, out)
		}
	}
	established(t, "rollsets.apps.rollset.dev")
	kubectl(t, "", "delete", "rollsets", "--all", "--all-namespaces")
	for range 2 { // what is gone already is no error
		if out, err := uninstall(); err != nil {
			t.Errorf("without a set: %v\n%s", err, out)
		}
	}
	_, err = asAdmin(t)
	wantRefusal(t, err, "the API server does not know RollSet.apps.rollset.dev in version v1beta1: install the CustomResourceDefinition first")
}

// TestPodSecurity enforces the strictest standard in the namespace of the installation, and lets Kubernetes create the pods.
func TestPodSecurity(t *testing.T) {
	apply(t, kustomize(t, "config/default"))
	d := deployment(t, objects(t, kustomize(t, "config/default")))
	eventually(t, "the manager's pods", func() error {
		now := &appsv1.Deployment{}
		if err := shared.Get(t.Context(), client.ObjectKeyFromObject(d), now); err != nil {
			return err
		}
		if now.Status.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("there are %d: %v", now.Status.Replicas, now.Status.Conditions)
		}
		return nil
	})

	// The standard is enforced: those pods are not admitted by accident.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "pod"}, Spec: *d.Spec.Template.Spec.DeepCopy()}
	if err := shared.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("the manager's pod is refused: %v", err)
	}
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	if err := shared.Create(t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		t.Errorf("a pod that may run as root is let in: %v", err)
	}
	c := d.Spec.Template.Spec.Containers[0].SecurityContext
	if c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem {
		t.Error("the manager's root file system can be written")
	}
}

// TestMetrics requests metrics without a token, as a user without the right, and as one with it.
func TestMetrics(t *testing.T) {
	apply(t, kustomize(t, "config/default"))
	d := deployment(t, objects(t, kustomize(t, "config/default")))
	p := run(t, d, "--metrics-secure=true")
	url := strings.Replace(p.Metrics, "http://", "https://", 1)
	ensureNamespace(t, "monitoring")
	prometheus := client.ObjectKey{Namespace: "monitoring", Name: "default"}
	if code, _ := get(t, url, ""); code != http.StatusUnauthorized {
		t.Errorf("status %d without a token", code)
	}
	if code, _ := get(t, url, token(t, prometheus)); code != http.StatusForbidden {
		t.Errorf("status %d without the right", code)
	}
	put(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "rollset-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: prometheus.Namespace, Name: prometheus.Name}},
	})
	bearer := token(t, prometheus)
	eventually(t, "the right to read metrics", func() error { // the manager remembers a refusal for a while
		code, protocol := get(t, url, bearer)
		if code != http.StatusOK {
			return fmt.Errorf("a scraper gets %d", code)
		}
		if protocol != "http/1.1" {
			t.Errorf("the server speaks %s", protocol)
		}
		return nil
	})
}

// get asks for a URL, and returns status and protocol.
func get(t *testing.T, url, bearer string) (code int, protocol string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, // so that it shows if the server would accept it
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}},
	}
	defer transport.CloseIdleConnections()
	var response *http.Response
	eventually(t, "an answer", func() error { // metrics are served some time after the manager is ready
		response, err = (&http.Client{Transport: transport}).Do(request)
		return err
	})
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, strings.ToLower(response.Proto)
}

// TestSecondInstallation installs twice, in two namespaces. The second manager waits until the first has exited.
func TestSecondInstallation(t *testing.T) {
	manifest := kustomize(t, "config/default")
	apply(t, manifest)
	acting := run(t, deployment(t, objects(t, manifest)))
	holder := awaitHolder(t, "")

	manifest = kustomize(t, elsewhere(t))
	apply(t, manifest)
	second := deployment(t, objects(t, manifest))
	if second.Namespace != "rollset-two" {
		t.Fatalf("the second is in %s too", second.Namespace)
	}
	run(t, second)
	ensureNamespace(t, "twice")
	awaitPods(t, newSet(t, "twice", "before"), 1)
	if now := heldBy(t); now != holder {
		t.Errorf("the lease of %s is now held by %q", holder, now)
	}

	// When stopped, the first manager releases the lease, so that the next one does not wait for it to expire.
	if err := acting.Stop(); err != nil {
		t.Fatal(err)
	}
	if heldBy(t) == holder {
		t.Error("the lease is still held by a manager that has ended")
	}
	awaitHolder(t, holder)
	awaitPods(t, newSet(t, "twice", "after"), 1)
}

// elsewhere returns the default installation in another namespace, with other names.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Rel(dir, shared.root)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("namespace: rollset-two\nnamePrefix: two-\nresources: [%s/config/default]\n", root)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// heldBy returns the holder of the lease of managers that watch all namespaces.
func heldBy(t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	err := shared.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "manager.rollset.dev"}, lease)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// awaitHolder waits until the lease has another holder than the given one.
func awaitHolder(t *testing.T, other string) (holder string) {
	t.Helper()
	eventually(t, "the lease to be taken", func() error {
		if holder = heldBy(t); holder == "" || holder == other {
			return errors.New("it is not")
		}
		return nil
	})
	return holder
}
