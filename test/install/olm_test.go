// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1alpha1"
)

// clusterServiceVersion is the part of one that OLM needs to run the manager.
type clusterServiceVersion struct {
	Spec struct {
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

// TestInstallModes runs the manager of the bundle in each install mode, with the rights that OLM would give it.
func TestInstallModes(t *testing.T) {
	apply(t, kustomize(t, "config/default"))
	text, err := os.ReadFile(filepath.Join(shared.root, "bundle", "manifests", "rollset.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	csv := &clusterServiceVersion{}
	if err := yaml.Unmarshal(text, csv); err != nil {
		t.Fatal(err)
	}
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
			d := csv.installed(t, strings.ToLower(mode), tt.targets)
			var args []string
			if len(tt.targets) > 1 {
				args = append(args, "--leader-election-namespace="+d.Namespace) // which only a pod knows by itself
			}
			run(t, d, args...)
			var outside []*v1alpha1.RollSet
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

// installed creates what OLM creates from the bundle, and returns the Deployment as a kubelet runs it.
func (v *clusterServiceVersion) installed(t *testing.T, name string, targets []string) *appsv1.Deployment {
	t.Helper()
	const own = "olm-own"
	install := v.Spec.Install.Spec
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: name}}
	create := func(o client.Object) {
		t.Helper()
		if err := shared.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shared.Delete(context.WithoutCancel(t.Context()), o) })
	}
	create(account)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: own, Name: name}}
	inCluster := install.ClusterPermissions[0].Rules
	if targets[0] == "" { // OLM grants the rights of all namespaces for the cluster
		inCluster = append(inCluster, install.Permissions[0].Rules...)
	} else {
		for _, namespace := range append([]string{own}, targets...) {
			meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "-"}
			role := &rbacv1.Role{ObjectMeta: meta, Rules: install.Permissions[0].Rules}
			create(role)
			create(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, Subjects: subjects})
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Rules: inCluster}
	create(role)
	create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: subjects})

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own}, Spec: *install.Deployments[0].Spec.DeepCopy()}
	d.Spec.Template.Spec.ServiceAccountName = name
	container := &d.Spec.Template.Spec.Containers[0]
	for _, env := range container.Env {
		if env.ValueFrom == nil {
			continue
		}
		if path := env.ValueFrom.FieldRef.FieldPath; path != "metadata.annotations['olm.targetNamespaces']" {
			t.Fatalf("OLM gives the pod no %s", path)
		}
		for i := range container.Args {
			container.Args[i] = strings.ReplaceAll(container.Args[i], "$("+env.Name+")", strings.Join(targets, ","))
		}
	}
	return d
}
