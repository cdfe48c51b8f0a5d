// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests RollSets from outside: the manager runs as a process of its own, as a user with the rights of its
// generated role, against a whole cluster.
//
// The cluster is that of KUBECONFIG, or else a local one: a real control plane with simulated nodes, started for the
// suite. On a cluster of KUBECONFIG the suite acts with the rights of that kubeconfig, which must be all; it installs the
// CRD and the role, and lets its manager impersonate a user of its own. No other manager may run there. Its nodes may need
// other images than the default ones, and specs that count requests need its audit log; there are flags for both:
//
//	make test-e2e KUBECONFIG=… E2E_FLAGS='-image=… -next-image=… -crashing-image=… -audit-log=…'
//
// The specs with the label core run on each supported version of Kubernetes:
//
//	make test-versions VERSIONS=1.34
//
// As one binary, they test the manager that a cluster has, however it was installed, and leave nothing behind:
//
//	make conformance-binary && KUBECONFIG=… bin/conformance -installed
//
// # How to write a spec
//
//	var _ = Describe("Scaling", func() {
//		f := newFixture() // a namespace, and a record of all that happens in it
//
//		It("takes pods away", func(ctx SpecContext) {
//			set := f.create(ctx, newSet("web", 5))
//			f.awaitReady(ctx, set)
//			from := f.mark()
//			set = f.change(ctx, set, scaledTo(3))
//			f.awaitReady(ctx, set)
//			f.expectLiveAtMost(set, from, 5)
//		})
//	})
//
// A spec waits for what the record shows (await, awaitReady, awaitCondition), never for time to pass. What must hold all
// the while is not sampled: it is checked afterwards over every change that the record has (expectLiveAtMost,
// expectAvailableAtLeast). That nothing happens is checked by waiting until nothing has happened for a while (quiet).
//
// A spec may stop, kill and restart the manager by cluster.manager; every spec begins with one that runs.
package e2e

import (
	"context"
	"flag"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/internal/testing/patience"
)

// The images of the specs have full names, because kubelets report full names. The words crash and missing in a tag are for
// simulated nodes.
var (
	imageFlag         = flag.String("image", "registry.k8s.io/pause:3.10", "image that every node of the cluster can run")
	nextImageFlag     = flag.String("next-image", "registry.k8s.io/pause:3.9", "another such image, with other content")
	crashingImageFlag = flag.String("crashing-image", "", "image that exits with an error at once; simulated nodes need none")
)

// installedFlag makes the suite a test of conformance: it installs nothing, and runs the core unless it is given another filter.
var installedFlag = flag.Bool("installed", false, "test the manager that the cluster of KUBECONFIG has, and report what was seen")

// auditLogFlag is for a cluster whose API server runs on this machine.
var auditLogFlag = flag.String("audit-log", "", "audit log of the API server of KUBECONFIG, in JSON, at level Metadata at least")

// core marks the specs that are run on each supported version of Kubernetes: create, roll out, break and repair, change in
// place, claims, scale, adopt, and kubectl.
var core = Label("core")

// long marks the specs that the short form leaves out: golden rollouts, or other specs, show the same.
var long = Label("long")

// short is the filter of the short form.
const short = "!long"

// All specs share the cluster.
var cluster *environment

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience.Long())
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	log.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	switch {
	case suite.LabelFilter != "":
	case *installedFlag:
		suite.LabelFilter = core[0]
	case testing.Short():
		suite.LabelFilter = short
	}
	RunSpecs(t, "RollSet end to end", suite, reporter)
}

var _ = BeforeSuite(func() {
	// What is started here lives until the suite ends, not until this node ends.
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	var err error
	cluster, err = join(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.stop)
})

var _ = AfterSuite(func(ctx SpecContext) {
	if cluster == nil { // it did not start
		return
	}
	expectRights()
	expectNothingLeft(ctx)
}, NodeTimeout(10*time.Minute))
