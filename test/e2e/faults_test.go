// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("Faults", func() {
	f := newFixture()

	// until waits until the given number of pods of the set has been created since the mark.
	until := func(ctx SpecContext, set *v1beta1.RollSet, from mark, created int) {
		GinkgoHelper()
		f.await(ctx, fmt.Sprintf("%d pods to be created", created), func() error {
			if n := f.created(set, from); n < created {
				return fmt.Errorf("%d have been created", n)
			}
			return nil
		})
	}
	killAndRestart := func() {
		GinkgoHelper()
		Expect(cluster.manager.kill()).To(Succeed())
		Expect(cluster.manager.start()).To(Succeed())
	}

	It("survives that the manager is killed at several points of a rolling update", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 12, maxUnavailable("3"))))
		from := f.mark()
		set = f.change(ctx, set, release("2"))
		for _, created := range []int{1, 4, 7, 11} {
			until(ctx, set, from, created)
			killAndRestart()
		}
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectLiveAtMost(set, from, 12)
		f.expectAvailableAtLeast(set, from, 9)
		Expect(f.deleted(set, from)).To(Equal(12), "pods deleted: none is updated twice")
		Expect(f.created(set, from)).To(Equal(12), "pods created")
	})

	It("survives that the manager is killed while pods are created, with surge and while scaling down", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 40, maxUnavailable("0"), maxSurge("8")))
		until(ctx, set, 0, 5)
		killAndRestart()
		set = f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, 0, 40)
		Expect(f.created(set, 0)).To(Equal(40), "pods created")

		from := f.mark()
		set = f.change(ctx, set, release("2"))
		until(ctx, set, from, 3)
		killAndRestart()
		until(ctx, set, from, 20)
		killAndRestart()
		set = f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, from, 48)
		f.expectAvailableAtLeast(set, from, 40)

		from = f.mark()
		set = f.change(ctx, set, scaledTo(10))
		f.await(ctx, "the first pods to go", func() error {
			if f.deleted(set, from) == 0 {
				return errors.New("none has gone")
			}
			return nil
		})
		killAndRestart()
		set = f.awaitReady(ctx, set)
		f.awaitPods(ctx, set, "ten pods", func(pods []*corev1.Pod) bool { return len(pods) == 10 })
		f.expectAvailableAtLeast(set, from, 10)
		Expect(f.created(set, from)).To(BeZero(), "pods created while scaling down")
	})

	It("survives an outage of the API server in the middle of a rolling update", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 10, maxUnavailable("2"))))
		pid, from := cluster.manager.process.PID(), f.mark()
		set = f.change(ctx, set, release("2"))
		until(ctx, set, from, 3)

		Expect(cluster.local.KillAPIServer()).To(Succeed())
		time.Sleep(time.Second) // long enough for every running request to fail; longer changes nothing
		Expect(cluster.local.StartAPIServer(ctx)).To(Succeed())

		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectLiveAtMost(set, from, 10)
		f.expectAvailableAtLeast(set, from, 8)
		Expect(f.deleted(set, from)).To(Equal(10), "pods deleted: none is updated twice")
		Expect(cluster.manager.running()).To(BeTrue(), "the manager has ended")
		Expect(cluster.manager.process.PID()).To(Equal(pid))
	})

	It("writes nothing once all is done, not even after a restart", func(ctx SpecContext) {
		withAudit()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 5)))
		f.awaitReady(ctx, f.change(ctx, set, release("2")))
		f.quiet(ctx, still)
		log := auditFrom()
		killAndRestart()
		f.quiet(ctx, 2*still)
		Expect(log.requests(f.inNamespace())).To(BeEmpty())
	})
})
