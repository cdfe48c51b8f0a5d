// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// monitoring is the part of the Prometheus Operator that the manifests need: a plural and a kind.
const monitoring = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: %[1]s, kind: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestMonitoredWithoutItsKinds applies the overlay to a cluster without the Prometheus Operator: what is missing is named, and the rest is
// there. TestKustomizations comes after it, so that there is mostly nothing to delete.
func TestMonitoredWithoutItsKinds(t *testing.T) {
	manifest := kustomize(t, "config/overlays/monitored")
	kubectl(t, "", "delete", "crd", "--ignore-not-found", "servicemonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com")
	cmd := exec.CommandContext(t.Context(), filepath.Join(shared.BinDir, "kubectl"), "--kubeconfig="+shared.Kubeconfig, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{`no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"`, "ensure CRDs are installed first"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q in:\n%s", err, want, out)
		}
	}
	d := deployment(t, objects(t, manifest))
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Error(err)
	}
}

// TestKustomizations builds every kustomization, a component as part of the default installation, and asks the API server
// whether it would accept the objects.
func TestKustomizations(t *testing.T) {
	apply(t, kustomize(t, "config/default"))
	for plural, kind := range map[string]string{"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"} {
		apply(t, fmt.Sprintf(monitoring, plural, kind))
		established(t, plural+".monitoring.coreos.com")
	}
	for _, name := range []string{"system", "team-a", "team-b"} {
		ensureNamespace(t, name)
	}
	folders := kustomizations(t)
	if len(folders) < 15 {
		t.Fatalf("found only %v", folders)
	}
	options := []client.ApplyOption{client.DryRunAll, client.ForceOwnership, client.FieldOwner("test")}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			for _, o := range objects(t, kustomize(t, composed(t, folder))) {
				if kind := o.GetKind(); kind == "ClusterServiceVersion" || kind == "Configuration" {
					continue // part of a bundle, where hack/bundle has them validated
				}
				if o.GetNamespace() == "" {
					o.SetNamespace("default") // where it applies
				}
				if err := shared.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), options...); err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
		})
	}
}

// kustomizations returns the folders of config that have one.
func kustomizations(t *testing.T) []string {
	t.Helper()
	var folders []string
	err := fs.WalkDir(os.DirFS(shared.root), "config", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "kustomization.yaml" {
			folders = append(folders, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// argoCD is the part of an installation of Argo CD that its component needs.
const argoCD = `
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm}
data: {url: "https://example.org"}
`

// composed returns the folder itself. For a component it returns a folder that adds it to what it changes.
func composed(t *testing.T, folder string) string {
	t.Helper()
	dir := filepath.Join(shared.dir, folder) // the same each time, so that it is built once
	root, err := filepath.Rel(dir, shared.root)
	if err = errors.Join(err, os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	base := root + "/config/default"
	switch {
	case folder == "config/components/high-availability":
		return "config/default" // which contains it
	case folder == "config/argocd":
		base = "argocd.yaml"
	case !strings.HasPrefix(folder, "config/components/"):
		return folder
	}
	files := map[string]string{
		"argocd.yaml":        argoCD,
		"kustomization.yaml": fmt.Sprintf("resources: [%s]\ncomponents: [%s/%s]\n", base, root, folder),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHighAvailability(t *testing.T) {
	list := objects(t, kustomize(t, "config/default"))
	d := deployment(t, list)
	if *d.Spec.Replicas != 2 || len(d.Spec.Template.Spec.TopologySpreadConstraints) != 1 {
		t.Errorf("%d replicas, spread %v", *d.Spec.Replicas, d.Spec.Template.Spec.TopologySpreadConstraints)
	}
	budgets := ofKind[policyv1.PodDisruptionBudget](t, list, "PodDisruptionBudget")
	if len(budgets) != 1 || budgets[0].Namespace != d.Namespace || cmp.Diff(budgets[0].Spec.Selector, d.Spec.Selector) != "" {
		t.Errorf("no budget for the manager's pods: %v", budgets)
	}
	if !slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "--leader-elect") {
		t.Error("two managers act at a time")
	}
}

func TestVerbose(t *testing.T) {
	args := deployment(t, objects(t, kustomize(t, "config/overlays/debug"))).Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--zap-log-level=1") {
		t.Errorf("args are %q", args)
	}
}

func TestMonitored(t *testing.T) {
	list := objects(t, kustomize(t, "config/overlays/monitored"))
	d := deployment(t, list)
	policies := ofKind[networkingv1.NetworkPolicy](t, list, "NetworkPolicy")
	monitors := slices.DeleteFunc(slices.Clone(list), func(u *unstructured.Unstructured) bool { return u.GetKind() != "ServiceMonitor" })
	if len(policies) != 1 || policies[0].Namespace != d.Namespace || len(monitors) != 1 || monitors[0].GetNamespace() != d.Namespace {
		t.Fatalf("not in the manager's namespace: %v, %v", policies, monitors)
	}
	p := policies[0].Spec
	if cmp.Diff(p.PodSelector.MatchLabels, d.Spec.Selector.MatchLabels) != "" || len(p.PolicyTypes) != 2 || len(p.Ingress) != 1 {
		t.Errorf("the policy lets through more than metrics: %v", p)
	}
}

// TestRoles lists every right of the manager. A new right must be added here.
func TestRoles(t *testing.T) {
	list := objects(t, kustomize(t, "config/default"))
	want := []string{
		"/events: create",
		"/persistentvolumeclaims: create delete get list patch watch",
		"/pods/finalizers: update",
		"/pods/resize: patch",
		"/pods/status: patch",
		"/pods: create delete get list patch watch",
		"apps.rollset.dev/rollsets/finalizers: update",
		"apps.rollset.dev/rollsets/status: patch",
		"apps.rollset.dev/rollsets: get list watch",
		"apps/controllerrevisions: create delete get list patch watch",
		"authentication.k8s.io/tokenreviews: create",
		"authorization.k8s.io/subjectaccessreviews: create",
		"coordination.k8s.io/leases manager.rollset.dev: get update",
		"coordination.k8s.io/leases: create",
		"events.k8s.io/events: create patch",
		"storage.k8s.io/storageclasses: list watch",
	}
	if diff := cmp.Diff(want, granted(t, list, "")); diff != "" {
		t.Errorf("the manager's rights (-want +got):\n%s", diff)
	}
}

func TestNamespacedRoles(t *testing.T) {
	all := granted(t, objects(t, kustomize(t, "config/default")), "")
	list := objects(t, kustomize(t, "config/overlays/namespaced"))
	inCluster := []string{
		"authentication.k8s.io/tokenreviews: create",
		"authorization.k8s.io/subjectaccessreviews: create",
		"storage.k8s.io/storageclasses: list watch",
	}
	if diff := cmp.Diff(inCluster, granted(t, list, "")); diff != "" {
		t.Errorf("rights in the whole cluster (-want +got):\n%s", diff)
	}
	inNamespace := slices.DeleteFunc(slices.Clone(all), func(right string) bool { return slices.Contains(inCluster, right) })
	for _, namespace := range []string{"team-a", "team-b"} {
		if diff := cmp.Diff(inNamespace, granted(t, list, namespace)); diff != "" {
			t.Errorf("rights in %s (-want +got):\n%s", namespace, diff)
		}
	}
}

// TestDisruptionRoles lists what the component disruption adds to the manager's rights, as the chart does with the value of that
// name.
func TestDisruptionRoles(t *testing.T) {
	const nodes, budgets = "/nodes: list watch", "policy/poddisruptionbudgets: create delete list patch watch"
	everywhere := append(granted(t, objects(t, kustomize(t, "config/default")), ""), nodes, budgets)
	slices.Sort(everywhere)
	rendered := func(values string) []*unstructured.Unstructured {
		return objects(t, helm4.must(t, "template", "rollset", filepath.Join(shared.root, "charts", "rollset"), "--namespace=rollset-system", "--set=crds.install=false,"+values))
	}
	for from, list := range map[string][]*unstructured.Unstructured{
		"kustomize": objects(t, kustomize(t, composed(t, "config/components/disruption"))),
		"helm":      rendered("disruption=true"),
	} {
		if diff := cmp.Diff(everywhere, granted(t, list, "")); diff != "" {
			t.Errorf("%s: the manager's rights (-want +got):\n%s", from, diff)
		}
	}
	list := rendered("disruption=true,namespaces={team-a,team-b}")
	if inCluster := granted(t, list, ""); !slices.Contains(inCluster, nodes) || slices.Contains(inCluster, budgets) {
		t.Errorf("rights in the whole cluster: %q", inCluster)
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		if rights := granted(t, list, namespace); !slices.Contains(rights, budgets) {
			t.Errorf("rights in %s: %q", namespace, rights)
		}
	}
}

// granted returns the rights that the manager's service account has in a namespace, or without one in the whole cluster.
func granted(t *testing.T, list []*unstructured.Unstructured, namespace string) []string {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range ofKind[rbacv1.ClusterRole](t, list, "ClusterRole") {
		rules["ClusterRole "+role.Name] = role.Rules
	}
	for _, role := range ofKind[rbacv1.Role](t, list, "Role") {
		rules["Role "+role.Name+" "+role.Namespace] = role.Rules
	}
	var bound []rbacv1.PolicyRule
	account := deployment(t, list)
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Spec.Template.Spec.ServiceAccountName, Namespace: account.Namespace}
	for _, b := range ofKind[rbacv1.ClusterRoleBinding](t, list, "ClusterRoleBinding") {
		if namespace == "" && slices.Contains(b.Subjects, subject) {
			bound = append(bound, rules["ClusterRole "+b.RoleRef.Name]...)
		}
	}
	for _, b := range ofKind[rbacv1.RoleBinding](t, list, "RoleBinding") {
		if namespace == b.Namespace && slices.Contains(b.Subjects, subject) {
			bound = append(bound, rules["Role "+b.RoleRef.Name+" "+b.Namespace]...)
		}
	}
	var rights []string
	for _, rule := range bound {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				names := strings.Join(append([]string{""}, rule.ResourceNames...), " ")
				rights = append(rights, group+"/"+resource+names+": "+strings.Join(rule.Verbs, " "))
			}
		}
	}
	slices.Sort(rights)
	return rights
}

// TestAggregatedRoles binds Kubernetes' own roles in a namespace, and checks what they allow there.
func TestAggregatedRoles(t *testing.T) {
	apply(t, kustomize(t, composed(t, "config/components/aggregated-roles")))
	ensureNamespace(t, "aggregated")
	for _, c := range []struct{ role, verb, want string }{
		{"view", "get", "yes"},
		{"view", "patch", "no"},
		{"edit", "patch", "yes"},
		{"edit", "deletecollection", "no"},
		{"admin", "deletecollection", "yes"},
	} {
		put(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "aggregated", Name: c.role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: c.role + "-user"}},
		})
		eventually(t, c.role+" to "+c.verb, func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: c.role + "-user",
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: "aggregated", Group: "apps.rollset.dev", Resource: "rollsets", Verb: c.verb,
				},
			}}
			if err := shared.Create(t.Context(), review); err != nil {
				return err
			}
			if review.Status.Allowed != (c.want == "yes") {
				return fmt.Errorf("allowed: %v", review.Status.Allowed)
			}
			return nil
		})
	}
}
