// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

const (
	// nodeCount is the number of simulated nodes.
	nodeCount = 10
	// ownControllers leaves everything but what is measured to the cluster's own controller manager.
	ownControllers = "*,-deployment-controller,-replicaset-controller,-statefulset-controller"
	// minimalUser is the user of the minimal client.
	minimalUser = "bench-minimal"
	// groupServiceAccounts gives a user the priority that the API server gives to operators. Administrators have none, and
	// never wait.
	groupServiceAccounts = "system:serviceaccounts"
)

// bed is the cluster that everything runs on.
type bed struct {
	*testbed.Cluster

	// api and objects have all rights.
	api     kubernetes.Interface
	objects client.Client
	// manager is the path of the manager's binary.
	manager string
	serial  int
}

// newBed starts a cluster whose nodes take no time, and creates the users of the measured programs.
func newBed(ctx context.Context) (b *bed, err error) {
	say("etcd does without fsync, and no client has a limit of requests")
	b = &bed{}
	b.Cluster, err = testbed.Start(ctx, testbed.Options{
		Nodes: nodeCount, Model: &kubelet.Model{}, Audit: true, Controllers: ownControllers, Progress: say,
	})
	if err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	if err := b.prepare(ctx); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

func (b *bed) prepare(ctx context.Context) (err error) {
	config := b.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	if b.api, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return err
	}
	if b.objects, err = client.New(b.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	say("building the manager")
	if b.manager, err = manager.Build(ctx, b.Dir()); err != nil {
		return err
	}
	if err := manager.Install(ctx, b.RESTConfig()); err != nil {
		return err
	}
	return b.objects.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: minimalUser},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: minimalUser}},
	})
}

// kubeconfig returns the path of a kubeconfig for a user.
func (b *bed) kubeconfig(user string) (string, error) {
	return b.KubeconfigFor(user, groupServiceAccounts)
}

// namespace creates a namespace in which pods can be created, and returns its name.
func (b *bed) namespace(ctx context.Context) (string, error) {
	b.serial++
	name := fmt.Sprintf("bench-%d", b.serial)
	if err := b.objects.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return "", err
	}
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		_, err := b.api.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return "", fmt.Errorf("wait for the service account of namespace %s: %w", name, err)
	}
	return name, nil
}
