// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

// The tests of this file imitate the Operator Lifecycle Manager (OLM). Version 0 takes a namespace that it installs into, and those
// that an OperatorGroup names; version 1 installs for all namespaces, by the rules of Helm.

// clusterServiceVersion is the part of one that OLM needs to run the manager.
type clusterServiceVersion struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Install struct {
			Spec struct {
				Deployments []struct {
					Name string                `json:"name"`
					Spec appsv1.DeploymentSpec `json:"spec"`
				} `json:"deployments"`
				Permissions        []permissions `json:"permissions"`
				ClusterPermissions []permissions `json:"clusterPermissions"`
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

type permissions struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// bundle is a bundle: what runs the manager, and the other manifests.
type bundle struct {
	csv    clusterServiceVersion
	others []*unstructured.Unstructured
}

// bundleOf returns the bundle of a version.
func bundleOf(t *testing.T, version int) *bundle {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	image := fmt.Sprintf("localhost:5000/rollset@sha256:%064d", version)
	command(t, kustomize(t, "config/manifests"), "go", "-C", "hack/bundle", "run", ".", "bundle",
		fmt.Sprintf("-version=0.%d.0", version), "-image="+image, "-created=2026-01-02T15:04:05Z", "-o="+dir)
	paths, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, ".clusterserviceversion.yaml") {
			b.others = append(b.others, objects(t, string(text))...)
		} else if err := yaml.Unmarshal(text, &b.csv); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.others) < 8 || len(b.csv.Spec.Install.Spec.Deployments) != 1 {
		t.Fatalf("the bundle holds too little: %v", paths)
	}
	return b
}

// operator is an operator that OLM has installed.
type operator struct {
	*appsv1.Deployment

	// owned goes with the ClusterServiceVersion: account and rights. content is the rest of the bundle.
	owned, content []client.Object
}

// install creates what OLM creates from a bundle in a namespace for target namespaces, and returns the Deployment as a kubelet
// gets it. The target "" means all namespaces. A Subscription may set variables.
func (b *bundle) install(t *testing.T, own string, targets []string, config ...corev1.EnvVar) *operator {
	t.Helper()
	spec := b.csv.Spec.Install.Spec
	op := &operator{}
	for _, u := range b.others {
		u = u.DeepCopy()
		if kind := u.GetKind(); kind != "CustomResourceDefinition" && kind != "ClusterRole" {
			u.SetNamespace(own)
		}
		op.content = append(op.content, u)
		put(t, u)
	}
	established(t, "rollsets.apps.rollset.dev")

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: spec.Permissions[0].ServiceAccountName}}
	op.owned = append(op.owned, account)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: own, Name: account.Name}}
	inCluster := slices.Clone(spec.ClusterPermissions[0].Rules)
	if targets[0] == "" { // OLM grants the rights of all namespaces for the cluster
		inCluster = append(inCluster, spec.Permissions[0].Rules...)
	} else {
		for _, namespace := range slices.Compact(append([]string{own}, targets...)) {
			meta := metav1.ObjectMeta{Namespace: namespace, Name: b.csv.Metadata.Name + "-" + own}
			op.owned = append(op.owned, &rbacv1.Role{ObjectMeta: meta, Rules: spec.Permissions[0].Rules}, &rbacv1.RoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: subjects,
			})
		}
	}
	meta := metav1.ObjectMeta{Name: b.csv.Metadata.Name + "-" + own}
	op.owned = append(op.owned, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: inCluster}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: subjects,
	})
	for _, o := range op.owned {
		put(t, o)
	}
	t.Cleanup(func() { op.remove(t, op.owned) })

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: spec.Deployments[0].Name}, Spec: *spec.Deployments[0].Spec.DeepCopy()}
	template := &d.Spec.Template
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	maps.Copy(template.Annotations, b.csv.Metadata.Annotations)
	template.Annotations["olm.targetNamespaces"] = strings.Join(targets, ",")
	template.Annotations["olm.operatorNamespace"], template.Annotations["olm.operatorGroup"] = own, "group"
	container := &template.Spec.Containers[0]
	config = append(config, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: b.csv.Metadata.Name})
	container.Env = slices.DeleteFunc(container.Env, func(env corev1.EnvVar) bool {
		return slices.ContainsFunc(config, func(c corev1.EnvVar) bool { return c.Name == env.Name })
	})
	container.Env = append(container.Env, config...)
	op.Deployment = d
	if err := shared.Create(t.Context(), d.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("the Deployment of OLM is refused: %v", err)
	}
	return op
}

// put creates or changes an object as OLM does.
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
	if err := shared.Create(t.Context(), u.DeepCopy()); err == nil {
		return
	} else if !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	old := u.DeepCopy()
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(o), old); err != nil {
		t.Fatal(err)
	}
	u.SetResourceVersion(old.GetResourceVersion())
	if err := shared.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// remove deletes objects. One that does not exist is no error.
func (*operator) remove(t *testing.T, list []client.Object) {
	t.Helper()
	for _, o := range list {
		if err := client.IgnoreNotFound(shared.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
			t.Error(err)
		}
	}
}

// uninstallV0 deletes what the ClusterServiceVersion owns, and leaves everything else.
func (op *operator) uninstallV0(t *testing.T) {
	t.Helper()
	op.remove(t, op.owned)
}

// uninstallV1 deletes everything that came with the bundle, but what Helm keeps.
func (op *operator) uninstallV1(t *testing.T) {
	t.Helper()
	op.remove(t, op.owned)
	op.remove(t, slices.DeleteFunc(slices.Clone(op.content), func(o client.Object) bool {
		return o.GetAnnotations()["helm.sh/resource-policy"] == "keep"
	}))
}

// TestInstallModes runs the manager of the bundle in each install mode, with the rights that OLM would give it.
func TestInstallModes(t *testing.T) {
	apply(t, kustomize(t, "config/crd"))
	b := bundleOf(t, 1)
	for _, name := range []string{"olm-own", "olm-a", "olm-b", "olm-c"} {
		ensureNamespace(t, name)
	}
	for mode, tt := range map[string]struct{ targets, others []string }{
		"OwnNamespace":    {targets: []string{"olm-own"}, others: []string{"olm-a"}},
		"SingleNamespace": {targets: []string{"olm-a"}, others: []string{"olm-own", "olm-b"}},
		"MultiNamespace":  {targets: []string{"olm-a", "olm-b"}, others: []string{"olm-own", "olm-c"}},
		"AllNamespaces":   {targets: []string{""}},
	} {
		t.Run(mode, func(t *testing.T) {
			run(t, b.install(t, "olm-own", tt.targets, leases(tt.targets)...).Deployment)
			var outside []*v1beta1.RollSet
			for _, namespace := range tt.others {
				outside = append(outside, newSet(t, namespace, "olm"))
			}
			for _, namespace := range tt.targets {
				if namespace == "" {
					namespace = "olm-c"
				}
				awaitPods(t, newSet(t, namespace, "olm"), 1)
			}
			for _, set := range outside {
				unseen(t, set)
			}
		})
	}
}

// leases is the setting of a Subscription for several namespaces: where the lease is only a pod knows by itself.
func leases(targets []string) []corev1.EnvVar {
	if len(targets) < 2 {
		return nil
	}
	return []corev1.EnvVar{{Name: "ROLLSET_LEADER_ELECTION_NAMESPACE", Value: "olm-own"}}
}

// TestOperatorGroup widens the OperatorGroup of a running operator, and narrows it again. What is outside keeps its pods.
func TestOperatorGroup(t *testing.T) {
	b := bundleOf(t, 1)
	for _, name := range []string{"olm-own", "olm-a", "olm-b"} {
		ensureNamespace(t, name)
	}
	apply(t, kustomize(t, "config/crd"))
	inA, inB := newSet(t, "olm-a", "widened"), newSet(t, "olm-b", "widened")
	serve := func(before *operator, targets ...string) (*operator, func()) {
		t.Helper()
		op := b.install(t, "olm-own", targets, leases(targets)...)
		if before != nil {
			before.remove(t, slices.DeleteFunc(slices.Clone(before.owned), func(o client.Object) bool {
				return slices.ContainsFunc(op.owned, func(n client.Object) bool {
					return fmt.Sprintf("%T", n) == fmt.Sprintf("%T", o) && client.ObjectKeyFromObject(n) == client.ObjectKeyFromObject(o)
				})
			}))
		}
		p, err := tryRun(t, op.Deployment)
		if err != nil {
			t.Fatal(err)
		}
		return op, func() {
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
		}
	}
	op, stop := serve(nil, "olm-a")
	awaitPods(t, inA, 1)
	unseen(t, inB)
	stop()
	op, stop = serve(op, "olm-a", "olm-b")
	awaitPods(t, inB, 1)
	before := ownedBy(t, inA)
	stop()
	_, stop = serve(op, "olm-b")
	edit(t, inA, func(spec *v1beta1.RollSetSpec) { spec.Replicas = new(int32(2)) })
	edit(t, inB, func(spec *v1beta1.RollSetSpec) { spec.Replicas = new(int32(2)) })
	awaitPods(t, inB, 2)
	sameAs(t, "the OperatorGroup left its namespace out", inA, before)
	stop()
}

// byOLM installs into a namespace for all namespaces.
func byOLM(t *testing.T, own string, uninstall func(*operator, *testing.T)) means {
	t.Helper()
	ensureNamespace(t, own)
	var now *operator
	return means{
		install: func(version int) *appsv1.Deployment {
			before := now
			now = bundleOf(t, version).install(t, own, []string{""})
			if before != nil && before.owned[1].GetName() != now.owned[1].GetName() {
				before.remove(t, before.owned[1:]) // the account is the same
			}
			return now.Deployment
		},
		uninstall: func() { uninstall(now, t) },
	}
}
