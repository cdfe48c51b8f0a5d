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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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

// bundles are those that were made before, by version.
var bundles = map[int]*bundle{}

// bundleOf returns the bundle of a version.
func bundleOf(t *testing.T, version int) *bundle {
	t.Helper()
	if b, ok := bundles[version]; ok {
		return b
	}
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
	bundles[version] = b
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

// TestOperatorGroup runs the manager of the bundle with the rights that OLM would give it, and lets its OperatorGroup go through the install
// modes. What is outside keeps its pods. TestLife has the mode that is left, AllNamespaces.
func TestOperatorGroup(t *testing.T) {
	apply(t, kustomize(t, "config/crd"))
	sets := map[string]*v1beta1.RollSet{}
	for _, name := range []string{"olm-own", "olm-a", "olm-b", "olm-c"} {
		ensureNamespace(t, name)
		sets[name] = newSet(t, name, "olm")
	}
	for i, targets := range [][]string{{"olm-own"}, {"olm-a"}, {"olm-a", "olm-b"}, {"olm-b"}} {
		t.Run(strings.Join(targets, ","), func(t *testing.T) {
			run(t, bundleOf(t, 1).install(t, "olm-own", targets, leases(targets)...).Deployment)
			pods := 1 + i%2
			scale := func(spec *v1beta1.RollSetSpec) { spec.Replicas = new(int32(pods)) }
			outside := map[string]map[string]types.UID{}
			for name, set := range sets {
				if !slices.Contains(targets, name) {
					outside[name] = ownedBy(t, set)
					edit(t, set, scale)
				}
			}
			for _, name := range targets {
				edit(t, sets[name], scale)
				awaitPods(t, sets[name], pods)
			}
			for name, before := range outside {
				unseen(t, sets[name])
				sameAs(t, "an OperatorGroup without its namespace", sets[name], before)
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

// byOLM installs into a namespace for all namespaces. Version 1 uninstalls first, because it leaves less to the installation after it.
func byOLM(t *testing.T, own string) means {
	t.Helper()
	ensureNamespace(t, own)
	uninstalls := []func(*operator, *testing.T){(*operator).uninstallV1, (*operator).uninstallV0}
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
		uninstall: func() {
			uninstalls[0](now, t)
			uninstalls = uninstalls[1:]
		},
	}
}
