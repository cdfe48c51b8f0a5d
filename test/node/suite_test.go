// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package node tests RollSets on a real node: the manager runs as its own process, and the pods run under a real kubelet and
// containerd, which package realnode starts. It proves what no model of a kubelet can: that a runtime writes to a pod's status
// what the controller reads there.
//
// Specs wait for what the API server shows, never for time to pass. Interesting times are reported at the end, and decide nothing.
package node

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
	"rollset.dev/rollset/internal/testing/testbed/realnode"
)

// long marks the specs that the short form leaves out.
var long = Label("long")

// All specs share the bed.
var bed struct {
	node   *realnode.Node
	client client.WithWatch
	// http reaches pods by their addresses.
	http *http.Client
	// log is the manager's log.
	log string
}

func TestNode(t *testing.T) {
	if err := realnode.Unavailable(t.Context()); err != nil {
		t.Skip(err)
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience.Long())
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	log.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	if testing.Short() && suite.LabelFilter == "" {
		suite.LabelFilter = "!long"
	}
	RunSpecs(t, "RollSet on a real node", suite, reporter)
}

var _ = BeforeSuite(func() {
	// What is started here lives until the suite ends, not until this node ends.
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	dir := GinkgoT().TempDir()

	cluster, err := testbed.Start(ctx, testbed.Options{Nodes: -1})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	config := cluster.RESTConfig()
	bed.node, err = realnode.Start(ctx, realnode.Options{Name: "node-1", Config: config, Kubeconfig: cluster.Kubeconfig})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(bed.node.Stop)

	Expect(manager.Install(ctx, config)).To(Succeed())
	kubeconfig, err := cluster.KubeconfigFor(manager.User)
	Expect(err).NotTo(HaveOccurred())
	binary, err := manager.Build(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	bed.log = cluster.Dir() + "/logs/manager.log"
	process, err := manager.Start(ctx, manager.Options{Binary: binary, Kubeconfig: kubeconfig, Log: bed.log})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(process.Stop)

	scheme := runtime.NewScheme()
	Expect(errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme))).To(Succeed())
	bed.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	bed.http = &http.Client{
		Transport: &http.Transport{DialContext: bed.node.Dial, DisableKeepAlives: true},
		Timeout:   10 * time.Second,
	}
})
