// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

var _ = Describe("Claim templates that change", func() {
	f := newFixture()

	BeforeEach(onLocalCluster) // for its storage classes: one whose claims can grow, one whose claims cannot

	matching := func(template string, n int32) func(*v1beta1.RollSetStatus) bool {
		return func(s *v1beta1.RollSetStatus) bool {
			return slices.ContainsFunc(s.VolumeClaims, func(c v1beta1.VolumeClaimStatus) bool {
				return c.Name == template && c.Claims == n && c.MatchingClaims == n && c.Message == ""
			})
		}
	}

	saying := func(words string) func(*v1beta1.RollSetStatus) bool {
		return func(s *v1beta1.RollSetStatus) bool {
			return len(s.VolumeClaims) == 1 && strings.Contains(s.VolumeClaims[0].Message, words)
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
		f.awaitStatus(ctx, set, "the pause", func(*v1beta1.RollSetStatus) bool { return true })
		f.quiet(ctx, 500*time.Millisecond)
		Expect(f.claimNamed("data-ss-1").Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
		f.awaitStatus(ctx, f.change(ctx, set, resumed()), "all claims to match", matching("data", 3))
	})

	It("say what cannot be done, without trying again and again: a class without expansion, and a shrink", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 2, ordinal(),
			claiming("data"), storageClass("data", nodes.FixedClaimClass), claiming("logs"), storage("logs", "2Gi"))))
		begun := auditFrom()
		set = f.change(ctx, set, storage("data", "2Gi"), storage("logs", "1Gi"))
		set = f.awaitStatus(ctx, set, "both messages", func(s *v1beta1.RollSetStatus) bool {
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

	It("take back a growth that failed, for as long as a claim has less than it asks for", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 2, ordinal(), claiming("data"), storageClass("data", nodes.FullClaimClass))))
		pods := f.pods(set)
		asks := func(claim string) string { return f.claimNamed(claim).Spec.Resources.Requests.Storage().String() }
		set = f.awaitStatus(ctx, f.change(ctx, set, storage("data", "4Gi")), "the driver's words",
			saying("data-ss-1: it does not grow from 1Gi to 4Gi: the pool is full; a smaller size of more than 1Gi takes the growth back"))
		Expect(asks("data-ss-0")).To(Equal("1Gi"), "no other claim asks for what one does not get")

		By("a smaller size that is more than the claim has")
		set = f.awaitStatus(ctx, f.change(ctx, set, storage("data", "2Gi")), "the smaller size", saying("data-ss-1: it does not grow from 1Gi to 2Gi"))
		Expect(asks("data-ss-1")).To(Equal("2Gi"))

		By("the size that the claim has, which the API server does not take")
		begun := auditFrom()
		set = f.awaitStatus(ctx, f.change(ctx, set, storage("data", "1Gi")), "what the API server takes", saying("set the template to more than 1Gi"))
		f.awaitStatus(ctx, f.change(ctx, set, storage("data", "512Mi")), "the shrink", saying("a claim cannot shrink"))
		f.quiet(ctx, 2*time.Second)
		Expect(begun.requests(func(r request) bool {
			return r.Namespace == f.namespace && r.Resource == "persistentvolumeclaims" && r.Verb == "patch"
		})).To(BeEmpty(), "patches of claims")
		back := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`))
		Expect(cluster.client.Patch(ctx, f.claimNamed("data-ss-1").DeepCopy(), back)).To(MatchError(ContainSubstring("field can not be less than status.capacity")))
		f.expectNoPodLost(pods)
	})

	It("give claims a volume attributes class one pod at a time, and take one off that the driver refuses", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("data"), storageClass("data", nodes.ClaimClass), partition("1"))))
		pods, revision := f.pods(set), set.Status.UpdateRevision
		class := func(claim string) string { return className(f.claimNamed(claim)) }
		set = f.awaitStatus(ctx, f.change(ctx, set, attributes("data", new("gold"))), "two claims to have the class", func(s *v1beta1.RollSetStatus) bool {
			return len(s.VolumeClaims) == 1 && s.VolumeClaims[0].MatchingClaims == 2
		})
		Expect([]string{class("data-ss-2"), class("data-ss-1"), class("data-ss-0")}).To(Equal([]string{"gold", "gold", ""}), "the partition keeps one back")
		set = f.awaitStatus(ctx, f.change(ctx, set, partition("0")), "all claims to match", matching("data", 3))

		By("a class that the driver refuses")
		set = f.awaitStatus(ctx, f.change(ctx, set, attributes("data", new(nodes.InfeasibleAttributes))), "the driver's words",
			saying("data-ss-2: the volume attributes class infeasible is infeasible: no such volume type; name the class before (gold), or another"))
		f.quiet(ctx, 500*time.Millisecond)
		Expect(class("data-ss-1")).To(Equal("gold"))
		set = f.awaitStatus(ctx, f.change(ctx, set, attributes("data", new("gold"))), "all claims to have the class before", matching("data", 3))

		By("a class that the driver does not know, and no class")
		begun := auditFrom()
		set = f.awaitStatus(ctx, f.change(ctx, set, attributes("data", new(nodes.UnknownAttributes))), "the silence", saying("has not answered to the volume attributes class unknown"))
		f.quiet(ctx, 2*time.Second)
		Expect(begun.requests(func(r request) bool {
			return r.Namespace == f.namespace && r.Resource == "persistentvolumeclaims" && r.Verb == "patch"
		})).To(HaveLen(1), "patches of claims by the manager")
		set = f.awaitStatus(ctx, f.change(ctx, set, attributes("data", nil)), "the class that stays", saying("a class that was applied cannot be taken off"))
		set = f.awaitStatus(ctx, f.change(ctx, set, attributes("data", new("silver"))), "another class", matching("data", 3))

		By("a set whose claims had no class before: it is taken off")
		f.expectNoPodLost(pods)
		Expect(set.Status.UpdateRevision).To(Equal(revision), "a class is no part of a revision")
		plain := f.awaitReady(ctx, f.create(ctx, newSet("plain", 1, ordinal(), claiming("data"), storageClass("data", nodes.ClaimClass))))
		plain = f.awaitStatus(ctx, f.change(ctx, plain, attributes("data", new(nodes.InfeasibleAttributes))), "the driver's words", saying("name the class before (none)"))
		f.awaitStatus(ctx, f.change(ctx, plain, attributes("data", nil)), "all claims to match", matching("data", 1))
		Expect(f.claimNamed("data-plain-0").Spec.VolumeAttributesClassName).To(BeNil())
	})

	It("recreate pods for a template that is new, with the new claim beside the old", long, func(ctx SpecContext) {
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

// className returns the volume attributes class that a claim asks for; empty if none.
func className(claim *corev1.PersistentVolumeClaim) string {
	if claim == nil || claim.Spec.VolumeAttributesClassName == nil {
		return ""
	}
	return *claim.Spec.VolumeAttributesClassName
}

// has reports whether a claim has storage of a size.
func has(claim *corev1.PersistentVolumeClaim, size string) bool {
	return claim != nil && claim.Status.Capacity.Storage().Cmp(resource.MustParse(size)) == 0
}
