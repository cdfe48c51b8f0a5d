// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

var _ = Describe("Claim templates that change", func() {
	f := newFixture()

	BeforeEach(onLocalCluster) // for its storage classes: one whose claims can grow, one whose claims cannot

	matching := func(template string, n int32) func(*v1alpha1.RollSetStatus) bool {
		return func(s *v1alpha1.RollSetStatus) bool {
			return slices.ContainsFunc(s.VolumeClaims, func(c v1alpha1.VolumeClaimStatus) bool {
				return c.Name == template && c.Claims == n && c.MatchingClaims == n && c.Message == ""
			})
		}
	}

	It("grow claims in the order of an update, one at a time, without a restart", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("data"), storageClass("data", nodes.ClaimClass))))
		pods, claims, revision := f.pods(set), f.claims(), set.Status.UpdateRevision
		from := f.claimMark()
		set = f.change(ctx, set, storage("data", "2Gi"))
		set = f.awaitStatus(ctx, set, "all claims to match", matching("data", 3))
		f.awaitReady(ctx, set)
		Expect(f.growth(from)).To(Equal([]string{
			"data-ss-2 asks for 2Gi", "data-ss-2 has 2Gi", "data-ss-1 asks for 2Gi", "data-ss-1 has 2Gi", "data-ss-0 asks for 2Gi", "data-ss-0 has 2Gi",
		}))
		f.expectNoPodLost(pods)
		Expect(uids(f.claims())).To(Equal(uids(claims)))
		Expect(set.Status.UpdateRevision).To(Equal(revision), "size is no part of a revision")
	})

	It("grow as many claims at a time as maxUnavailable allows, and those of pods with random names too", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4, claiming("data"), maxUnavailable("2"))))
		pods := f.pods(set)
		set = f.change(ctx, set, storage("data", "2Gi"))
		f.awaitStatus(ctx, set, "all claims to match", matching("data", 4))
		f.expectNoPodLost(pods)
	})

	It("grow no claim that the partition keeps back, nor any while paused", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("data"), partition("2"))))
		set = f.change(ctx, set, storage("data", "2Gi"))
		f.awaitClaims(ctx, "data-ss-2 to grow", func([]*corev1.PersistentVolumeClaim) bool { return has(f.claimNamed("data-ss-2"), "2Gi") })
		f.quiet(ctx, 500*time.Millisecond)
		Expect(f.claimNamed("data-ss-1").Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
		set = f.change(ctx, set, partition("0"), paused())
		f.awaitStatus(ctx, set, "the pause", func(*v1alpha1.RollSetStatus) bool { return true })
		f.quiet(ctx, 500*time.Millisecond)
		Expect(f.claimNamed("data-ss-1").Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
		f.awaitStatus(ctx, f.change(ctx, set, resumed()), "all claims to match", matching("data", 3))
	})

	It("say what cannot be done, without trying again and again: a class without expansion, and a shrink", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 2, ordinal(),
			claiming("data"), storageClass("data", nodes.FixedClaimClass), claiming("logs"), storage("logs", "2Gi"))))
		begun := auditFrom()
		set = f.change(ctx, set, storage("data", "2Gi"), storage("logs", "1Gi"))
		set = f.awaitStatus(ctx, set, "both messages", func(s *v1alpha1.RollSetStatus) bool {
			return len(s.VolumeClaims) == 2 && s.VolumeClaims[0].Message != "" && s.VolumeClaims[1].Message != ""
		})
		Expect(set.Status.VolumeClaims[0].Message).To(ContainSubstring("storage class sim-fixed does not allow volume expansion"))
		Expect(set.Status.VolumeClaims[1].Message).To(ContainSubstring("a claim cannot shrink"))
		f.awaitMessage(ctx, set, "Ready", "does not allow volume expansion")
		f.quiet(ctx, 2*time.Second)
		Expect(begun.requests(func(r request) bool {
			return r.Namespace == f.namespace && r.Resource == "persistentvolumeclaims"
		})).To(BeEmpty(), "writes of claims")

		By("scaling up: new claims are as the template says")
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(3)))
		Expect(has(f.claimNamed("data-ss-2"), "2Gi")).To(BeTrue())
		Expect(has(f.claimNamed("logs-ss-2"), "1Gi")).To(BeTrue())
		Expect(set.Status.VolumeClaims[0].MatchingClaims).To(Equal(int32(1)))
	})

	It("recreate pods for a template that is new, with the new claim beside the old", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 2, ordinal(), claiming("data"))))
		old := uids(f.claims())
		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, claiming("logs")))
		f.awaitClaimNames(ctx, "data-ss-0", "data-ss-1", "logs-ss-0", "logs-ss-1")
		Expect(uids(f.claims())).To(And(HaveKeyWithValue("data-ss-0", old["data-ss-0"]), HaveKeyWithValue("data-ss-1", old["data-ss-1"])))
		Expect(f.goings(set, from)).To(Equal(numbered(set, 1, 0)))
		for _, pod := range f.pods(set) {
			Expect(claimsOf(pod)).To(HaveKeyWithValue("logs", "logs-"+pod.Name))
		}
	})
})

// claimMark returns the place of the last change of a claim in the record.
func (f *fixture) claimMark() int {
	return read(f.record, func() int { return len(f.record.claims.changes) })
}

// growth returns the order in which claims asked for more storage, and got it, since the mark.
func (f *fixture) growth(from int) (steps []string) {
	changes := read(f.record, func() []change[*corev1.PersistentVolumeClaim] { return slices.Clone(f.record.claims.changes) })
	asked, had := map[types.UID]string{}, map[types.UID]string{}
	for i, c := range changes {
		asks, has := c.object.Spec.Resources.Requests.Storage().String(), c.object.Status.Capacity.Storage().String()
		if i >= from && asks != asked[c.object.UID] {
			steps = append(steps, c.object.Name+" asks for "+asks)
		}
		if i >= from && has != had[c.object.UID] {
			steps = append(steps, c.object.Name+" has "+has)
		}
		asked[c.object.UID], had[c.object.UID] = asks, has
	}
	return steps
}

// has reports whether a claim has storage of a size.
func has(claim *corev1.PersistentVolumeClaim, size string) bool {
	return claim != nil && claim.Status.Capacity.Storage().Cmp(resource.MustParse(size)) == 0
}
