// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("A rollout in steps", func() {
	f := newFixture()

	// stepped creates a set of four pods, and moves them in steps.
	stepped := func(ctx SpecContext, steps ...v1beta1.RolloutStep) *v1beta1.RollSet {
		return f.awaitReady(ctx, f.create(ctx, newSet("web", 4, maxUnavailable("2"), rolling(func(r *v1beta1.RollingUpdate) { r.Steps = steps }))))
	}
	one, half := intstr.FromInt32(1), intstr.FromString("50%")

	It("soaks, writes nothing meanwhile, and goes on by itself", long, func(ctx SpecContext) {
		set := stepped(ctx, v1beta1.RolloutStep{Updated: one, SoakSeconds: 2}, v1beta1.RolloutStep{Updated: half})
		from := f.mark()
		set = f.change(ctx, set, release("2"))
		now := f.awaitStep(ctx, set, 1, v1beta1.RolloutSoaking)
		f.expectAtRevision(ctx, now, 1)
		Expect(meta.FindStatusCondition(now.Status.Conditions, "Progressing").Message).To(HavePrefix("step 1 of 2: 1 of 4 pods updated; soaking until"))

		set = f.awaitReady(ctx, set)
		Expect(set.Status.Rollout).To(BeNil())
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 2)
		Expect(f.created(set, from)).To(Equal(4), "pods created")
		soaking := read(f.record, func() (n int) {
			for _, c := range f.record.sets.changes {
				if r := c.object.Status.Rollout; r != nil && r.Phase == v1beta1.RolloutSoaking {
					n++
				}
			}
			return n
		})
		Expect(soaking).To(Equal(1), "versions of the set while it soaks: nothing is to be written then")
	})

	It("waits for a person, whom late and early promotions do not replace", long, func(ctx SpecContext) {
		set := stepped(ctx, v1beta1.RolloutStep{Updated: one, Pause: true}, v1beta1.RolloutStep{Updated: half, Pause: true})
		old := set.Status.UpdateRevision
		set = f.change(ctx, set, release("2"))
		now := f.awaitStep(ctx, set, 1, v1beta1.RolloutPaused)
		f.awaitCondition(ctx, set, "Progressing", metav1.ConditionUnknown, "AwaitingPromotion")
		revision := now.Status.Rollout.Revision
		for _, promotion := range []string{old + "/1", revision + "/2", revision + "/0", "all", "web-0000000000/1", strings.Repeat("x/", 50_000)} {
			f.change(ctx, set, asking(v1beta1.PromoteAnnotation, promotion))
		}
		f.quiet(ctx, still)
		f.expectAtRevision(ctx, f.awaitStep(ctx, set, 1, v1beta1.RolloutPaused), 1)

		f.change(ctx, set, asking(v1beta1.PromoteAnnotation, revision+"/1"))
		f.expectAtRevision(ctx, f.awaitStep(ctx, set, 2, v1beta1.RolloutPaused), 2)
		f.change(ctx, set, asking(v1beta1.PromoteAnnotation, revision+"/2"))
		Expect(isUpdated(f.awaitReady(ctx, set))).To(Succeed())
	})

	It("waits for a gate, which is written with the shipped role and no other", core, func(ctx SpecContext) {
		judge := f.newJudge(ctx)
		set := stepped(ctx, v1beta1.RolloutStep{Updated: one, Gates: []v1beta1.StepGate{{ConditionType: "Errors"}}})
		set = f.change(ctx, set, release("2"))
		f.awaitStep(ctx, set, 1, v1beta1.RolloutGated)

		By("judging it, and then another way")
		edited := f.set(set).DeepCopy()
		edited.Spec.UpdateStrategy.RollingUpdate.Steps = nil
		Expect(apierrors.IsForbidden(judge.Update(ctx, edited))).To(BeTrue(), "a writer of gates edits a set")
		writeGate(ctx, judge, set, "Errors", metav1.ConditionFalse)
		f.awaitCondition(ctx, set, "Stalled", metav1.ConditionTrue, "StepFailed")
		f.expectAtRevision(ctx, f.awaitStep(ctx, set, 1, v1beta1.RolloutFailed), 1)
		writeGate(ctx, judge, set, "Errors", metav1.ConditionTrue)
		Expect(isUpdated(f.awaitReady(ctx, set))).To(Succeed())
	})

	It("goes back when it is aborted, stays there, and begins again when it is retried", long, func(ctx SpecContext) {
		set := stepped(ctx, v1beta1.RolloutStep{Updated: half, Pause: true})
		old := set.Status.UpdateRevision
		set = f.change(ctx, set, release("2"))
		now := f.awaitStep(ctx, set, 1, v1beta1.RolloutPaused)
		revision := now.Status.Rollout.Revision

		f.change(ctx, set, asking(v1beta1.AbortAnnotation, revision))
		f.awaitCondition(ctx, set, "Stalled", metav1.ConditionTrue, "RolledBack")
		f.awaitPods(ctx, set, "all pods to be back", func(pods []*corev1.Pod) bool {
			return len(pods) == 4 && count(pods, at(old)) == 4 && count(pods, isAvailable) == 4
		})
		By("restarting the manager, and taking the annotation away: neither changes anything")
		Expect(cluster.manager.stop()).To(Succeed())
		Expect(cluster.manager.start()).To(Succeed())
		set = f.change(ctx, set, func(s *v1beta1.RollSet) { delete(s.Annotations, v1beta1.AbortAnnotation) })
		f.quiet(ctx, still)
		Expect(count(f.pods(set), at(old))).To(Equal(4))

		f.change(ctx, set, asking(v1beta1.RetryAnnotation, revision))
		f.awaitStep(ctx, set, 1, v1beta1.RolloutPaused)
		f.change(ctx, set, asking(v1beta1.PromoteAnnotation, revision+"/all"))
		Expect(isUpdated(f.awaitReady(ctx, set))).To(Succeed())
	})
})

// asking sets an annotation of the set by which its user makes a request.
func asking(key, value string) option {
	return func(s *v1beta1.RollSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value) }
}

// awaitStep waits until a step of the rollout is in a phase, and returns the set as it is then.
func (f *fixture) awaitStep(ctx context.Context, set *v1beta1.RollSet, step int32, phase v1beta1.RolloutPhase) *v1beta1.RollSet {
	GinkgoHelper()
	return f.awaitStatus(ctx, set, fmt.Sprintf("step %d to be %s", step, phase), func(s *v1beta1.RollSetStatus) bool {
		return s.Rollout != nil && s.Rollout.Step == step && s.Rollout.Phase == phase
	})
}

// expectAtRevision checks how many pods a rollout has moved so far.
func (f *fixture) expectAtRevision(ctx context.Context, set *v1beta1.RollSet, n int) {
	GinkgoHelper()
	f.awaitPods(ctx, set, fmt.Sprintf("%d pods at the new revision", n), func(pods []*corev1.Pod) bool {
		return len(pods) == int(*set.Spec.Replicas) && count(pods, at(set.Status.UpdateRevision)) == n
	})
}

// newJudge returns a client of a user who has only the shipped role for writers of gates in the namespace.
func (f *fixture) newJudge(ctx context.Context) client.Client {
	GinkgoHelper()
	root := inCheckout()
	text, err := os.ReadFile(filepath.Join(root, "config", "rbac", "rollset_gate-writer_role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	shipped := &rbacv1.ClusterRole{}
	Expect(yaml.UnmarshalStrict(text, shipped)).To(Succeed())
	name := "judge-" + f.namespace
	f.createObject(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "judge"}, Rules: shipped.Rules})
	f.createObject(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "judge"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "judge"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	kubeconfig, err := cluster.kubeconfigFor(name)
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	judge, err := client.New(config, client.Options{Scheme: cluster.client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return judge
}

// writeGate sets a gate. It repeats this after a conflict.
func writeGate(ctx context.Context, judge client.Client, set *v1beta1.RollSet, name string, status metav1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func() error {
		now := &v1beta1.RollSet{}
		if err := judge.Get(ctx, client.ObjectKeyFromObject(set), now); err != nil {
			return err // RBAC may not know the role yet
		}
		before := now.DeepCopy()
		meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: "Measured", Message: "3% errors"})
		return judge.Status().Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}).WithContext(ctx).Should(Succeed())
}
