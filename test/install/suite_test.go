// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package install tests what is shipped to run the manager: every kustomization, the one-file installer and the OLM bundle,
// with the tools that users have, on a local cluster. The manager runs as a process with the token of its service account,
// so it has only the rights that the manifests give it.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// shared is the cluster of all tests. Each test applies what it needs, and assumes nothing.
var shared *cluster

// cluster is a local cluster, and the manager's program.
type cluster struct {
	*testbed.Cluster
	client.Client

	dir, root, binary string
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) (code int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := errors.Join(c.Stop(), os.RemoveAll(c.dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	shared = c
	return m.Run()
}

func start(ctx context.Context) (*cluster, error) {
	c := &cluster{}
	var err error
	if c.root, err = assets.ModuleRoot(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "rollset-install-"); err != nil {
		return nil, err
	}
	if c.binary, err = manager.Build(ctx, c.dir); err != nil {
		return nil, err
	}
	if c.Cluster, err = testbed.Start(ctx, testbed.Options{}); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if c.Client, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// command runs a program in the project's folder, and returns its output.
func command(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = shared.root
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String()
}

// tools are the paths of pinned programs that were run before, by the arguments of tool.
var tools = map[string]string{}

// tool returns the path of a pinned program.
func tool(folder string, args ...string) (path string, err error) {
	key := fmt.Sprint(folder, args)
	if tools[key] == "" {
		tools[key], err = assets.Tool(folder, args...)
	}
	return tools[key], err
}

// built are the kustomizations that were built before, by folder.
var built = map[string]string{}

// kustomize builds a folder with the pinned kustomize.
func kustomize(t *testing.T, folder string) string {
	t.Helper()
	if _, ok := built[folder]; !ok {
		program, err := tool(".", "-modfile=go.tools.mod", "kustomize")
		if err != nil {
			t.Fatal(err)
		}
		built[folder] = command(t, "", program, "build", folder)
	}
	return built[folder]
}

// kubectl runs the real kubectl, with all rights.
func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return command(t, stdin, filepath.Join(shared.BinDir, "kubectl"), append([]string{"--kubeconfig=" + shared.Kubeconfig}, args...)...)
}

// apply applies a manifest without kubectl, which costs more than the rest. A CRD that is there stays, because all are the same.
func apply(t *testing.T, manifest string) {
	t.Helper()
	for _, u := range objects(t, manifest) {
		if u.GetKind() != "CustomResourceDefinition" || shared.Get(t.Context(), client.ObjectKeyFromObject(u), u) != nil {
			put(t, u)
		}
	}
	established(t, "rollsets.apps.rollset.dev")
}

// put creates or changes an object.
func put(t *testing.T, o client.Object) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	gvk, err := shared.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(gvk)
	if err := shared.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner("test")); err != nil {
		t.Fatalf("%s %s: %v", gvk.Kind, o.GetName(), err)
	}
}

// established waits until the API server serves the kind that a CRD defines. kubectl wait gives up on a CRD that has no
// conditions yet.
func established(t *testing.T, name string) {
	t.Helper()
	if err := manager.AwaitServed(t.Context(), shared, name); err != nil {
		t.Fatal(err)
	}
}

// parsed are the objects of the manifests that were parsed before.
var parsed = map[string][]*unstructured.Unstructured{}

// objects returns those of a manifest, as copies that may be changed.
func objects(t *testing.T, manifest string) (list []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for _, done := parsed[manifest]; !done; {
		u := &unstructured.Unstructured{}
		switch err := documents.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			done = true
		case err != nil:
			t.Fatal(err)
		case len(u.Object) > 0:
			parsed[manifest] = append(parsed[manifest], u)
		}
	}
	for _, u := range parsed[manifest] {
		list = append(list, u.DeepCopy())
	}
	return list
}

// ofKind returns the objects of a kind, decoded.
func ofKind[T any](t *testing.T, list []*unstructured.Unstructured, kind string) []*T {
	t.Helper()
	var found []*T
	for _, u := range list {
		if u.GetKind() != kind {
			continue
		}
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, o, true); err != nil {
			t.Fatalf("%s %s: %v", kind, u.GetName(), err)
		}
		found = append(found, o)
	}
	return found
}

// deployment returns the manager's, the only one of a manifest.
func deployment(t *testing.T, list []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	found := ofKind[appsv1.Deployment](t, list, "Deployment")
	if len(found) != 1 || len(found[0].Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("want one Deployment with one container, got %v", found)
	}
	return found[0]
}

// run starts the manager of a Deployment, with its arguments and as its service account.
func run(t *testing.T, d *appsv1.Deployment, args ...string) *manager.Process {
	t.Helper()
	p, err := tryRun(t, d, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // when stopped, it releases its lease
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// tryRun is run for a manager that may not start. Addresses and lease are the test's, because only a pod has its own network
// and knows its namespace.
func tryRun(t *testing.T, d *appsv1.Deployment, args ...string) (*manager.Process, error) {
	t.Helper()
	var given []string
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if !strings.Contains(arg, "bind-address") {
			given = append(given, arg)
		}
	}
	return manager.Start(context.WithoutCancel(t.Context()), manager.Options{
		Binary: shared.binary, Log: filepath.Join(t.TempDir(), "manager.log"), Args: append(given, args...), Env: environment(t, d),
		Kubeconfig: kubeconfig(t, client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Template.Spec.ServiceAccountName}),
	})
}

// environment returns the variables that a kubelet would give to the manager of a Deployment.
func environment(t *testing.T, d *appsv1.Deployment) []string {
	t.Helper()
	container := d.Spec.Template.Spec.Containers[0]
	var all []string
	for _, env := range container.Env {
		value := env.Value
		switch from := env.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil:
			key := strings.TrimSuffix(strings.TrimPrefix(from.FieldRef.FieldPath, "metadata.annotations['"), "']")
			value = d.Spec.Template.Annotations[key]
		case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
			value = strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		default:
			t.Fatalf("no kubelet gives the manager %v", env)
		}
		all = append(all, env.Name+"="+value)
	}
	return all
}

// token returns a token of a service account.
func token(t *testing.T, account client.ObjectKey) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := shared.SubResource("token").Create(t.Context(), sa, request); err != nil {
		t.Fatalf("get a token of %s: %v", account, err)
	}
	return request.Status.Token
}

// kubeconfig returns a file with which a service account reaches the cluster.
func kubeconfig(t *testing.T, account client.ObjectKey) string {
	t.Helper()
	config := shared.RESTConfig()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"local": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"manager": {Token: token(t, account)}},
		Contexts:       map[string]*clientcmdapi.Context{"local": {Cluster: "local", AuthInfo: "manager"}},
		CurrentContext: "local",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits until holds returns no error.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(patience.Long())
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ensureNamespace creates a namespace with a default service account, which pods need.
func ensureNamespace(t *testing.T, name string) {
	t.Helper()
	err := shared.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	eventually(t, "the default service account", func() error {
		return shared.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// newSet creates a set of one pod, with changes, which is deleted with the test.
func newSet(t *testing.T, namespace, name string, changes ...func(*v1beta1.RollSetSpec)) *v1beta1.RollSet {
	t.Helper()
	labels := map[string]string{"app": name}
	set := &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.RollSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10"}}},
			},
		},
	}
	for _, change := range changes {
		change(&set.Spec)
	}
	if err := shared.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Delete(context.WithoutCancel(t.Context()), set) })
	return set
}

// awaitPods waits until a set has as many pods as given.
func awaitPods(t *testing.T, set *v1beta1.RollSet, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d pods of %s/%s", n, set.Namespace, set.Name), func() error {
		pods := &corev1.PodList{}
		err := shared.List(t.Context(), pods, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels))
		if err == nil && len(pods.Items) != n {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
}

// unseen fails if a manager has looked at a set since it was created or changed.
func unseen(t *testing.T, set *v1beta1.RollSet) {
	t.Helper()
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	if set.Status.ObservedGeneration == set.Generation {
		t.Errorf("a manager has looked at %s/%s", set.Namespace, set.Name)
	}
}
