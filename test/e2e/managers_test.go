// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// acting is the log message of a manager that writes pods.
const acting = `"msg":"created pods"`

var _ = Describe("Two managers", func() {
	f := newFixture()
	var leader, standby *operator

	// The suite's own manager takes no part in elections, so it must be stopped.
	BeforeEach(onOwnManager)
	BeforeEach(func(ctx SpecContext) {
		Expect(cluster.manager.stop()).To(Succeed())
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(stop)
		elect := []string{"--leader-elect", "--leader-election-namespace=" + f.namespace}
		leader = cluster.newOperator(running, "leader-"+f.namespace, elect...)
		standby = cluster.newOperator(running, "standby-"+f.namespace, elect...)
		Expect(leader.start()).To(Succeed())
		f.awaitLease(ctx, func(*coordinationv1.Lease) bool { return true })
		Expect(standby.start()).To(Succeed(), "one that waits for the lease says that it is ready")
		DeferCleanup(func() {
			Expect(leader.kill()).To(Succeed())
			Expect(standby.kill()).To(Succeed())
		})
	})
	acts := func(o *operator) bool {
		text, _ := o.logged(0)
		return strings.Contains(text, acting)
	}
	begin := func(ctx SpecContext) (set *v1beta1.RollSet, from mark) {
		GinkgoHelper()
		set = f.awaitReady(ctx, f.create(ctx, newSet("web", 10, maxUnavailable("2"))))
		Expect(acts(standby)).To(BeFalse(), "the one that waits writes")
		from = f.mark()
		set = f.change(ctx, set, release("2"))
		f.await(ctx, "three pods to be created", func() error {
			if n := f.created(set, from); n < 3 {
				return fmt.Errorf("%d have been created", n)
			}
			return nil
		})
		return set, from
	}
	finish := func(ctx SpecContext, set *v1beta1.RollSet, from mark) {
		GinkgoHelper()
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectLiveAtMost(set, from, 10)
		f.expectAvailableAtLeast(set, from, 8)
		Expect(f.deleted(set, from)).To(Equal(10), "pods deleted: none is updated twice")
	}

	It("are one that acts and one that waits, and takes over when the first is killed", func(ctx SpecContext) {
		set, from := begin(ctx)
		Expect(leader.kill()).To(Succeed())
		finish(ctx, set, from)
		Expect(acts(standby)).To(BeTrue())
	})

	It("never act both: one that was frozen for longer than its lease ends when it wakes", func(ctx SpecContext) {
		set, from := begin(ctx)
		pid := leader.process.PID()
		Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // otherwise it could not even be killed
		finish(ctx, set, from)

		Expect(syscall.Kill(pid, syscall.SIGCONT)).To(Succeed())
		Eventually(leader.running).WithContext(ctx).Should(BeFalse())
		f.quiet(ctx, still)
		finish(ctx, set, from)
	})

	It("hand over at once when the first is asked to end", core, func(ctx SpecContext) {
		set, from := begin(ctx)
		var holder string
		f.awaitLease(ctx, func(l *coordinationv1.Lease) bool { holder = *l.Spec.HolderIdentity; return true })
		Expect(leader.stop()).To(Succeed())
		f.awaitLease(ctx, func(l *coordinationv1.Lease) bool { return *l.Spec.HolderIdentity != holder })
		finish(ctx, set, from)
	})
})

var _ = Describe("A manager", func() {
	f := newFixture()

	It("ends at its start if it may not watch what it has to", func(ctx SpecContext) {
		kubeconfig, err := cluster.kubeconfigFor("e2e-unknown")
		Expect(err).NotTo(HaveOccurred())
		_, err = manager.Start(ctx, manager.Options{
			Binary: cluster.binary, Kubeconfig: kubeconfig, Log: filepath.Join(cluster.dir, "unknown-"+f.namespace+".log"),
		})
		Expect(err).To(MatchError(ContainSubstring("exit status 1")))
		Expect(err).To(MatchError(ContainSubstring("the manager may not watch RollSet in the whole cluster")))
	})

	It("ends well, and in time, when it is asked to in the middle of its work", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 20))
		Expect(cluster.manager.stop()).To(Succeed())
		Expect(cluster.manager.start()).To(Succeed())
		set = f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, 0, 20)
	})

	It("has nothing to do with the namespaces that it was not given", func(ctx SpecContext) {
		Expect(cluster.manager.stop()).To(Succeed())
		elsewhere := makeNamespace(ctx)
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(stop)
		confined := cluster.newOperator(running, "confined-"+f.namespace, "--namespaces="+f.namespace)
		Expect(confined.start()).To(Succeed())
		DeferCleanup(confined.kill)

		other := newSet("web", 2)
		other.Namespace = elsewhere
		Expect(cluster.client.Create(ctx, other)).To(Succeed())
		f.awaitReady(ctx, f.create(ctx, newSet("web", 2)))
		f.quiet(ctx, still)
		Expect(cluster.client.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
		Expect(other.Status.ObservedGeneration).To(Equal(int64(-1)), "no manager has looked at it")
	})
})

// awaitLease waits until the managers' lease is held, and as wanted.
func (f *fixture) awaitLease(ctx context.Context, wanted func(*coordinationv1.Lease) bool) {
	GinkgoHelper()
	Eventually(func() bool {
		leases := &coordinationv1.LeaseList{}
		Expect(cluster.client.List(ctx, leases, client.InNamespace(f.namespace))).To(Succeed())
		for i := range leases.Items {
			if holder := leases.Items[i].Spec.HolderIdentity; holder != nil && *holder != "" {
				return wanted(&leases.Items[i])
			}
		}
		return false
	}).WithContext(ctx).Should(BeTrue(), "the lease is not as wanted")
}
