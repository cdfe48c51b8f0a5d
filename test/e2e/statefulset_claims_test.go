// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

const (
	retain = v1beta1.RetainClaims
	remove = v1beta1.DeleteClaims
)

var _ = Describe("StatefulSet: claims", func() {
	f := newFixture()

	DescribeTable("keeps the owners of claims as the retention policy wants them, also when it changes", func(ctx SpecContext, whenDeleted, whenScaled v1beta1.ClaimRetentionPolicy) {
		opposite := map[v1beta1.ClaimRetentionPolicy]v1beta1.ClaimRetentionPolicy{retain: remove, remove: retain}
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), parallel(), claiming("data"), keeping(opposite[whenDeleted], opposite[whenScaled]))))
		claims := f.awaitClaimNames(ctx, "data-ss-0", "data-ss-1", "data-ss-2")
		f.awaitOwners(ctx, set, opposite[whenDeleted], "data-ss-0", "data-ss-1", "data-ss-2")

		By("changing the policy")
		set = f.change(ctx, set, keeping(whenDeleted, whenScaled))
		f.awaitOwners(ctx, set, whenDeleted, "data-ss-0", "data-ss-1", "data-ss-2")

		By("scaling down")
		set = f.change(ctx, set, scaledTo(1))
		f.awaitNames(ctx, set, "ss-0")
		if whenScaled == remove {
			f.awaitClaimNames(ctx, "data-ss-0")
		} else {
			f.awaitReady(ctx, set)
			f.awaitOwners(ctx, set, whenDeleted, "data-ss-0", "data-ss-1", "data-ss-2")
		}

		By("scaling up again")
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(3)))
		kept := uids(f.awaitClaimNames(ctx, "data-ss-0", "data-ss-1", "data-ss-2"))
		Expect(kept["data-ss-0"]).To(Equal(claims[0].UID))
		if whenScaled == retain {
			Expect(kept["data-ss-2"]).To(Equal(claims[2].UID), "the claim is the same as before")
		} else {
			Expect(kept["data-ss-2"]).NotTo(Equal(claims[2].UID), "the claim is another one")
		}

		By("deleting the set")
		f.delete(ctx, set)
		f.expectGone(ctx, set)
		f.await(ctx, "all pods to go", func() error {
			if pods := f.podsWith(func(*corev1.Pod) bool { return true }); len(pods) > 0 {
				return fmt.Errorf("there are:\n%s", describe(pods))
			}
			return nil
		})
		if whenDeleted == remove {
			f.awaitClaimNames(ctx)
		} else {
			Expect(uids(f.claims())).To(Equal(kept))
		}
	},
		Entry("should delete PVCs with a WhenDeleted policy", long, remove, retain),
		Entry("should delete PVCs with a OnScaledown policy", long, retain, remove),
		Entry("whenDeleted Delete, whenScaled Delete", core, remove, remove),
		Entry("whenDeleted Retain, whenScaled Retain", retain, retain),
	)

	It("deletes PVCs with a OnScaledown policy though another client deleted the pod before it was surplus", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("data"), keeping(retain, remove))))
		pod := f.changePod(ctx, f.pod("ss-2"), func(pod *corev1.Pod) { pod.Finalizers = append(pod.Finalizers, hold) })
		f.delete(ctx, pod)
		f.awaitPods(ctx, set, "ss-2 to terminate", func([]*corev1.Pod) bool { return !isLive(f.pod("ss-2")) })
		set = f.change(ctx, set, scaledTo(2))
		f.awaitClaims(ctx, "the pod to own its claim", func([]*corev1.PersistentVolumeClaim) bool {
			return metav1.IsControlledBy(f.claimNamed("data-ss-2"), pod)
		})
		f.changePod(ctx, pod, func(pod *corev1.Pod) { pod.Finalizers = nil })
		f.awaitClaimNames(ctx, "data-ss-0", "data-ss-1")
		f.awaitReady(ctx, set)
	})

	It("should not delete PVC with OnScaledown policy if another controller owns the PVC", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("data"), keeping(retain, remove))))
		owner := f.someOwner(ctx)
		f.changeClaim(ctx, "data-ss-1", func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = append(c.OwnerReferences, controllerRef(owner))
		})
		claim := f.claimNamed("data-ss-1")
		set = f.change(ctx, set, scaledTo(0))
		f.awaitNames(ctx, set)
		f.awaitClaimNames(ctx, "data-ss-1")
		f.awaitReady(ctx, set)
		Expect(f.claimNamed("data-ss-1").UID).To(Equal(claim.UID))
		Expect(f.claimNamed("data-ss-1").OwnerReferences).To(Equal([]metav1.OwnerReference{controllerRef(owner)}))
	})

	DescribeTable("should delete PVCs after adopting pod", func(ctx SpecContext, whenDeleted, whenScaled v1beta1.ClaimRetentionPolicy) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("data"))))
		f.delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		f.expectGone(ctx, set)
		pods := f.podsWith(isLive)
		Expect(pods).To(HaveLen(3))

		By("making the set anew: it adopts pods and claims")
		set = f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("data"), keeping(whenDeleted, whenScaled))))
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		f.expectNoPodLost(pods)
		f.awaitOwners(ctx, set, whenDeleted, "data-ss-0", "data-ss-1", "data-ss-2")
		if whenScaled == remove {
			f.change(ctx, set, scaledTo(1))
			f.awaitClaimNames(ctx, "data-ss-0")
			return
		}
		f.delete(ctx, set)
		f.awaitClaimNames(ctx)
	},
		Entry("should delete PVCs after adopting pod (WhenDeleted)", remove, retain),
		Entry("should delete PVCs after adopting pod (WhenScaled)", long, retain, remove),
	)

	It("should not delete PVCs when there is another controller", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 4, ordinal(), parallel(), claiming("data"))))
		owner := f.someOwner(ctx)
		external := controllerRef(owner)
		bystander := external
		bystander.Controller, bystander.BlockOwnerDeletion = nil, nil
		stale := metav1.OwnerReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "RollSet", Name: "ss", UID: types.UID("5ca1ab1e-0000-4000-8000-000000000000"), Controller: new(true),
		}
		f.changeClaim(ctx, "data-ss-0", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = []metav1.OwnerReference{external} })
		f.changeClaim(ctx, "data-ss-1", func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences, c.Finalizers = []metav1.OwnerReference{stale}, append(c.Finalizers, hold)
		})
		f.changeClaim(ctx, "data-ss-2", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = []metav1.OwnerReference{bystander} })

		By("wanting claims to go with the set")
		set = f.change(ctx, set, keeping(remove, retain))
		f.awaitOwners(ctx, set, remove, "data-ss-2", "data-ss-3")
		Expect(f.claimNamed("data-ss-2").OwnerReferences).To(ContainElement(bystander), "the reference of one that does not control stays")
		Expect(f.claimNamed("data-ss-0").OwnerReferences).To(Equal([]metav1.OwnerReference{external}))
		Expect(f.claimNamed("data-ss-1").OwnerReferences).To(Equal([]metav1.OwnerReference{stale}))

		By("taking the flag from its own reference: it is put right")
		f.changeClaim(ctx, "data-ss-3", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences[0].Controller = nil })
		f.awaitOwners(ctx, set, remove, "data-ss-3")

		By("scaling down with a policy that keeps claims: none goes")
		f.awaitReady(ctx, f.change(ctx, set, scaledTo(0)))
		Expect(f.claimNamed("data-ss-0")).NotTo(BeNil())
		Expect(f.claimNamed("data-ss-2").DeletionTimestamp).To(BeNil())
		Expect(f.claimNamed("data-ss-3").DeletionTimestamp).To(BeNil())
		f.changeClaim(ctx, "data-ss-1", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil }) // the garbage collector deletes it: its owner never existed
	})

	It("PVC should be recreated when pod is pending due to missing PVC", core, func(ctx SpecContext) {
		set := f.create(ctx, newSet("ss", 1, ordinal(), claiming("data"), requesting("100000")))
		pod := f.awaitNames(ctx, set, "ss-0")[0]
		claim := f.awaitClaimNames(ctx, "data-ss-0")[0]

		By("deleting the claim of the pending pod")
		f.delete(ctx, claim)
		f.awaitClaims(ctx, "another claim", func(claims []*corev1.PersistentVolumeClaim) bool {
			return len(claims) == 1 && claims[0].UID != claim.UID && claims[0].DeletionTimestamp == nil
		})
		f.expectNoPodLost([]*corev1.Pod{pod})

		By("deleting both")
		claim = f.claimNamed("data-ss-0")
		f.delete(ctx, claim)
		f.delete(ctx, pod)
		f.awaitClaims(ctx, "another claim", func(claims []*corev1.PersistentVolumeClaim) bool {
			return len(claims) == 1 && claims[0].UID != claim.UID && claims[0].DeletionTimestamp == nil
		})
		f.awaitReady(ctx, f.change(ctx, set, requesting("1m")))
	})

	It("waits for a claim that is being deleted, with its own pod only", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), parallel(), claiming("data"))))
		old := f.claimNamed("data-ss-1")
		f.changeClaim(ctx, "data-ss-1", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = append(c.Finalizers, hold) })
		f.delete(ctx, old) // protected by the pod that uses it
		f.delete(ctx, f.pod("ss-1"))
		f.delete(ctx, f.pod("ss-2"))
		f.awaitPods(ctx, set, "ss-2 alone to come back", func(pods []*corev1.Pod) bool {
			return slices.Equal(names(pods), numbered(set, 0, 2)) && count(pods, isAvailable) == 2
		})
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "ClaimConflict")
		Expect(failure.Message).To(ContainSubstring("claim data-ss-1 is being deleted"))

		f.changeClaim(ctx, "data-ss-1", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		f.awaitReady(ctx, set)
		Expect(f.claimNamed("data-ss-1").UID).NotTo(Equal(old.UID))
	})

	It("never shares the claims of two sets that spell them alike", long, func(ctx SpecContext) {
		first := f.awaitReady(ctx, f.create(ctx, newSet("c", 1, ordinal(), claiming("a-b"))))
		claim := f.awaitClaimNames(ctx, "a-b-c-0")[0]
		second := f.create(ctx, newSet("b-c", 2, ordinal(), parallel(), claiming("a")))
		f.awaitNames(ctx, second, "b-c-1")
		failure := f.awaitCondition(ctx, second, "ReplicaFailure", metav1.ConditionTrue, "ClaimConflict")
		Expect(failure.Message).To(And(ContainSubstring("a-b-c-0"), ContainSubstring("the set c")))
		Expect(f.claimNamed("a-b-c-0").UID).To(Equal(claim.UID))
		f.awaitReady(ctx, first)

		By("deleting the first set and its claim: the name is free")
		f.delete(ctx, first)
		f.expectGone(ctx, first)
		f.delete(ctx, claim)
		f.awaitNames(ctx, second, "b-c-0", "b-c-1")
		f.awaitReady(ctx, second)
		Expect(f.claimNamed("a-b-c-0").UID).NotTo(Equal(claim.UID))
	})

	It("finds the claims that a StatefulSet has left, by their names", func(ctx SpecContext) {
		set := newSet("ss", 2, ordinal(), claiming("data"), keeping(remove, remove))
		for _, name := range []string{"data-ss-0", "data-ss-1", "data-ss-7"} {
			claim := set.Spec.VolumeClaimTemplates[0].DeepCopy()
			claim.Name = name
			f.createObject(ctx, claim)
		}
		left := uids(f.awaitClaimNames(ctx, "data-ss-0", "data-ss-1", "data-ss-7"))
		set = f.awaitReady(ctx, f.create(ctx, set))
		f.awaitOwners(ctx, set, remove, "data-ss-0", "data-ss-1")
		Expect(uids(f.claims())).To(Equal(left))
		f.delete(ctx, set)
		f.awaitClaimNames(ctx, "data-ss-7")
	})

	It("says which class a claim waits for, and which claim", func(ctx SpecContext) {
		onLocalCluster() // for a class that exists
		set := f.create(ctx, newSet("ss", 2, ordinal(), claiming("data"), storageClass("data", "nowhere")))
		f.awaitMessage(ctx, set, "Progressing", "ss-0", "data-ss-0", "nowhere")
		set = f.change(ctx, set, storageClass("data", nodes.ClaimClass))
		// The manager may see the change later than a deletion of the claim, and would create the claim with the old class.
		f.awaitMessage(ctx, set, "Progressing", "ss-0", "data-ss-0", "nowhere")
		f.delete(ctx, f.claimNamed("data-ss-0"))
		f.awaitReady(ctx, set)
	})
})

var _ = Describe("Claims of pods with random names", func() {
	f := newFixture()

	It("stay with their identities in an update, though they go when it is scaled down", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3, claiming("data"))))
		pods, claims := names(f.pods(set)), uids(f.claims())
		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, release("2")))
		Expect(isUpdated(set)).To(Succeed())
		f.awaitNames(ctx, set, pods...)
		Expect(uids(f.claims())).To(Equal(claims))
		f.expectLiveAtMost(set, from, 3)
		f.expectAvailableAtLeast(set, from, 2)
		f.delete(ctx, set)
		f.awaitClaimNames(ctx)
	})

	It("go with their pods, and are kept for the next ones where the policy says so", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3, claiming("data"))))
		claims := f.awaitClaims(ctx, "three claims", func(claims []*corev1.PersistentVolumeClaim) bool { return len(claims) == 3 })
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(1)))
		f.awaitClaims(ctx, "one claim", func(claims []*corev1.PersistentVolumeClaim) bool { return len(claims) == 1 })

		By("keeping claims")
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(3), keeping(remove, retain)))
		kept := uids(f.claims())
		Expect(kept).To(HaveLen(3))
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(1)))
		f.awaitPods(ctx, set, "one pod", func(pods []*corev1.Pod) bool { return len(pods) == 1 })
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(3)))
		Expect(uids(f.claims())).To(Equal(kept), "claims that are free are used before new ones are made")

		By("updating: each pod leaves its claim to its successor")
		f.awaitReady(ctx, f.change(ctx, set, release("2")))
		Expect(uids(f.claims())).To(Equal(kept))
		Expect(claims).To(HaveLen(3))
	})
})

// someOwner creates an object that can own claims and does nothing.
func (f *fixture) someOwner(ctx context.Context) *corev1.ConfigMap {
	GinkgoHelper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	f.createObject(ctx, owner)
	return owner
}

func controllerRef(owner *corev1.ConfigMap) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
}

// awaitOwners waits until the claims have the set as their controller, if they are to be deleted with it, and otherwise no
// owner of the set's.
func (f *fixture) awaitOwners(ctx context.Context, set *v1beta1.RollSet, whenDeleted v1beta1.ClaimRetentionPolicy, wanted ...string) {
	GinkgoHelper()
	f.awaitClaims(ctx, fmt.Sprintf("the owners of claims to be right for whenDeleted %s", whenDeleted), func([]*corev1.PersistentVolumeClaim) bool {
		return !slices.ContainsFunc(wanted, func(name string) bool {
			claim := f.claimNamed(name)
			return claim == nil || metav1.IsControlledBy(claim, set) != (whenDeleted == remove)
		})
	})
}
