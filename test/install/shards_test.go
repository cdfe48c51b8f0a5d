// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// shard is a release whose manager has some of the namespaces.
type shard struct {
	name       string
	namespaces []string
	// lease is the namespace of the lease.
	lease string
}

// TestShards installs two managers as docs/how-to/shard.md says. Each has its own lease, acts in its own namespaces, and may do
// nothing in those of the other, also while the other is gone.
func TestShards(t *testing.T) {
	apply(t, kustomize(t, "config/crd"))
	a := shard{name: "rollset-a", namespaces: []string{"shop", "search"}, lease: "rollset-a"}
	b := shard{name: "rollset-b", namespaces: []string{"billing"}, lease: "billing"}
	deployed := map[string]*appsv1.Deployment{}
	for _, s := range []shard{a, b} {
		deployed[s.name] = s.install(t)
	}
	defer func() {
		helm4.must(t, "uninstall", a.name, "--namespace="+a.name)
		helm4.must(t, "uninstall", b.name, "--namespace="+b.name)
	}()
	first := run(t, deployed[a.name], "--leader-election-namespace="+a.name) // which only a pod knows by itself
	second := run(t, deployed[b.name])
	defer stop(t, second) // its rights go with the release
	for _, namespace := range append(a.namespaces, b.namespaces...) {
		awaitPods(t, newSet(t, namespace, "first"), 1)
	}
	for _, s := range []shard{a, b} {
		lease := &coordinationv1.Lease{}
		if err := shared.Get(t.Context(), client.ObjectKey{Namespace: s.lease, Name: "manager.rollset.dev"}, lease); err != nil {
			t.Errorf("the lease of %s: %v", s.name, err)
		}
	}
	a.mayOnly(t, deployed[a.name], b)
	b.mayOnly(t, deployed[b.name], a)

	stop(t, first)
	alone := newSet(t, a.namespaces[0], "second")
	awaitPods(t, newSet(t, b.namespaces[0], "second"), 1)
	unseen(t, alone)
}

// install installs the release and returns its Deployment.
func (s shard) install(t *testing.T) *appsv1.Deployment {
	t.Helper()
	for _, namespace := range s.namespaces {
		ensureNamespace(t, namespace)
	}
	helm4.must(t, "install", "--create-namespace", s.name, filepath.Join(shared.root, "charts", "rollset"), "--namespace="+s.name,
		"--set=crds.install=false,image.repository=registry.example/rollset,image.tag=v1",
		"--set=namespaces={"+strings.Join(s.namespaces, ",")+"}")
	return installed(t, s.name)
}

// mayOnly fails unless the manager of a shard may create pods in its namespaces, and not in those of another.
func (s shard) mayOnly(t *testing.T, d *appsv1.Deployment, other shard) {
	t.Helper()
	for _, namespace := range append(s.namespaces, other.namespaces...) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               fmt.Sprintf("system:serviceaccount:%s:%s", d.Namespace, d.Spec.Template.Spec.ServiceAccountName),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Resource: "pods", Verb: "create"},
		}}
		if err := shared.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if own := slices.Contains(s.namespaces, namespace); review.Status.Allowed != own {
			t.Errorf("whether the manager of %s may create pods in %s: %v, want %v", s.name, namespace, review.Status.Allowed, own)
		}
	}
}

// stop stops a manager.
func stop(t *testing.T, p *manager.Process) {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}
