// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
)

// fixture gives a spec its own namespace, and a record of everything that happens in it.
type fixture struct {
	namespace string
	record    *record
	// log is where the manager's log was when the spec began. audit begins there too, if there is one.
	log   int64
	audit audit
}

// newFixture gives each spec of a container a fixture. A spec begins with a running manager. It ends with a check of what
// must never happen. If it has failed, everything that is known about its namespace is printed.
func newFixture() *fixture {
	f := &fixture{}
	BeforeEach(func(ctx SpecContext) {
		Expect(cluster.manager.ensure()).To(Succeed())
		_, f.log = cluster.manager.logged(0)
		if cluster.auditLog != "" {
			f.audit = auditFrom()
		}
		f.namespace = makeNamespace(ctx)
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(stop)
		var err error
		f.record, err = newRecord(running, cluster, f.namespace)
		Expect(err).NotTo(HaveOccurred())
	})
	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			f.explain(ctx)
		}
		f.expectUniqueIdentities()
		f.judge()
	})
	return f
}

// makeNamespace creates a namespace that is deleted when the spec ends. The spec does not wait for that.
func makeNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Labels: map[string]string{runLabel: cluster.run}}}
	Expect(cluster.client.Create(ctx, namespace)).To(Succeed())
	cluster.made.Insert(namespace.Name)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(cluster.client.Delete(ctx, namespace))).To(Succeed())
	})
	// Pods are refused until their default service account exists.
	account := &corev1.ServiceAccount{}
	Eventually(func() error {
		return cluster.client.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: "default"}, account)
	}).WithContext(ctx).Should(Succeed())
	return namespace.Name
}

// create creates a set, and returns it as stored, once the record shows it.
func (f *fixture) create(ctx context.Context, set *v1beta1.RollSet) *v1beta1.RollSet {
	GinkgoHelper()
	set = set.DeepCopy()
	f.createObject(ctx, set)
	f.caughtUp(ctx)
	return set
}

// createObject creates any object in the spec's namespace.
func (f *fixture) createObject(ctx context.Context, o client.Object) {
	GinkgoHelper()
	o.SetNamespace(f.namespace)
	Expect(cluster.client.Create(ctx, o)).To(Succeed())
}

// change changes a set, and returns it as stored, once the record shows the change. It can only change the spec and the
// metadata.
func (f *fixture) change(ctx context.Context, set *v1beta1.RollSet, by ...option) *v1beta1.RollSet {
	GinkgoHelper()
	now := &v1beta1.RollSet{}
	update(ctx, set, now, func() {
		for _, o := range by {
			o(now)
		}
	})
	f.caughtUp(ctx)
	return now
}

// changePod changes a pod's spec or metadata.
func (f *fixture) changePod(ctx context.Context, pod *corev1.Pod, by func(*corev1.Pod)) *corev1.Pod {
	GinkgoHelper()
	now := &corev1.Pod{}
	update(ctx, pod, now, func() { by(now) })
	return now
}

// changeStatus changes the status of an object, as it is now. Its kubelet may be writing as well.
func changeStatus[T client.Object](ctx context.Context, o T, by func(T)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := cluster.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		by(o)
		return cluster.client.Status().Update(ctx, o)
	})).To(Succeed())
}

// update reads an object, changes it and writes it. It repeats this after a conflict.
func update(ctx context.Context, o, now client.Object, mutate func()) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := cluster.client.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		mutate()
		return cluster.client.Update(ctx, now)
	})).To(Succeed())
}

// delete deletes an object. It does not fail if the object is gone.
func (f *fixture) delete(ctx context.Context, o client.Object, options ...client.DeleteOption) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(cluster.client.Delete(ctx, o, options...))).To(Succeed())
}

// setGate sets the condition that pods of a set made with gated need to become ready.
func (f *fixture) setGate(ctx context.Context, pod *corev1.Pod, open corev1.ConditionStatus) {
	GinkgoHelper()
	Expect(turn(ctx, pod, gate, open)).To(Succeed())
}

// turn sets a condition of a pod.
func turn(ctx context.Context, pod *corev1.Pod, condition corev1.PodConditionType, status corev1.ConditionStatus) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"lastTransitionTime":%q}]}}`,
		condition, status, time.Now().UTC().Format(time.RFC3339))
	return cluster.client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", patch))
}

// caughtUp waits until the record shows all that the API server has now. Each kind has its own watch, so one may show what a
// write led to before another shows the write.
func (f *fixture) caughtUp(ctx context.Context) {
	GinkgoHelper()
	for _, list := range f.record.lists {
		var isShown func() bool
		Eventually(func() (err error) {
			isShown, err = list(ctx)
			return err
		}).WithContext(ctx).Should(Succeed())
		f.await(ctx, "the record to show the list", func() error {
			if !read(f.record, isShown) {
				return errors.New("it is older")
			}
			return nil
		})
	}
}

// await waits until holds returns no error. It is called again at every change that the record shows, so it should depend on
// nothing else. For other things there is Eventually.
func (f *fixture) await(ctx context.Context, what string, holds func() error) {
	GinkgoHelper()
	timeout := time.NewTimer(patience.Long())
	defer timeout.Stop()
	for {
		changed := f.record.next() // before the look, so that no change after it is missed
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			Fail(fmt.Sprintf("waited for %s: %v", what, err))
		case <-ctx.Done():
			Fail(fmt.Sprintf("waited for %s: %v (%v)", what, err, context.Cause(ctx)))
		}
	}
}

// awaitPods waits until the set's pods, including terminating ones, are as wanted, and returns them as they were then. After
// that, the record shows all else that the API server had then.
func (f *fixture) awaitPods(ctx context.Context, set *v1beta1.RollSet, what string, holds func([]*corev1.Pod) bool) (pods []*corev1.Pod) {
	GinkgoHelper()
	f.await(ctx, what, func() error {
		if pods = f.pods(set); !holds(pods) {
			return fmt.Errorf("the pods of %s are:\n%s", set.Name, describe(pods))
		}
		return nil
	})
	f.caughtUp(ctx)
	return pods
}

// awaitStatus waits until the controller has observed the given generation of the set, or a later one, and its status is as
// wanted. It returns the set as it was then. After that, the record shows all else that the API server had then.
func (f *fixture) awaitStatus(ctx context.Context, set *v1beta1.RollSet, what string, holds func(*v1beta1.RollSetStatus) bool) (now *v1beta1.RollSet) {
	GinkgoHelper()
	f.await(ctx, what, func() error {
		now = f.set(set)
		switch {
		case now == nil:
			return fmt.Errorf("%s is gone", set.Name)
		case now.Status.ObservedGeneration < set.Generation:
			return fmt.Errorf("%s has observed generation %d, not %d", set.Name, now.Status.ObservedGeneration, set.Generation)
		case !holds(&now.Status):
			return fmt.Errorf("the status of %s is:\n%s", set.Name, inYAML(now.Status))
		}
		return nil
	})
	f.caughtUp(ctx)
	return now
}

// awaitCondition waits until a condition of the given generation of the set, or of a later one, has a status and reason, and
// returns it. An empty reason matches any.
func (f *fixture) awaitCondition(ctx context.Context, set *v1beta1.RollSet, kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	GinkgoHelper()
	now := f.awaitStatus(ctx, set, fmt.Sprintf("%s=%s, %s", kind, status, reason), func(s *v1beta1.RollSetStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, kind)
		return c != nil && c.ObservedGeneration >= set.Generation && c.Status == status && (reason == "" || c.Reason == reason)
	})
	return meta.FindStatusCondition(now.Status.Conditions, kind)
}

// awaitReady waits until the given generation of the set is Ready, and returns the set as it is then.
func (f *fixture) awaitReady(ctx context.Context, set *v1beta1.RollSet) *v1beta1.RollSet {
	GinkgoHelper()
	f.awaitCondition(ctx, set, "Ready", metav1.ConditionTrue, "")
	return f.set(set)
}

// quiet waits until no pod, claim or revision of the namespace was created, began to terminate, or vanished for the given
// time. Their statuses may change, as those of pods do whose image cannot be pulled.
func (f *fixture) quiet(ctx context.Context, long time.Duration) {
	GinkgoHelper()
	Eventually(f.record.still).WithContext(ctx).Should(BeNumerically(">=", long), "something keeps coming or going")
}

// set returns a set as the record shows it now; nil if it is gone.
func (f *fixture) set(set *v1beta1.RollSet) *v1beta1.RollSet {
	return read(f.record, func() *v1beta1.RollSet { return f.record.sets.now[set.UID] })
}

// pods returns the pods that the set controls now, by name, including terminating ones.
func (f *fixture) pods(set *v1beta1.RollSet) []*corev1.Pod {
	return f.podsWith(func(pod *corev1.Pod) bool { return metav1.IsControlledBy(pod, set) })
}

// podsWith returns all matching pods of the namespace, by name.
func (f *fixture) podsWith(wanted func(*corev1.Pod) bool) []*corev1.Pod {
	return read(f.record, func() []*corev1.Pod { return sorted(f.record.pods.now, wanted) })
}

// pod returns the pod with a name; nil if there is none.
func (f *fixture) pod(name string) *corev1.Pod {
	for _, pod := range f.podsWith(func(pod *corev1.Pod) bool { return pod.Name == name }) {
		return pod
	}
	return nil
}

// claims returns all claims of the namespace, by name.
func (f *fixture) claims() []*corev1.PersistentVolumeClaim {
	return read(f.record, func() []*corev1.PersistentVolumeClaim {
		return sorted(f.record.claims.now, func(*corev1.PersistentVolumeClaim) bool { return true })
	})
}

// revisions returns the revisions that the set controls, by name.
func (f *fixture) revisions(set *v1beta1.RollSet) []*appsv1.ControllerRevision {
	return read(f.record, func() []*appsv1.ControllerRevision {
		return sorted(f.record.revisions.now, func(r *appsv1.ControllerRevision) bool { return metav1.IsControlledBy(r, set) })
	})
}

// expectGone waits until an object no longer exists.
func (f *fixture) expectGone(ctx context.Context, o client.Object) {
	GinkgoHelper()
	now, ok := o.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	Eventually(func() bool {
		return apierrors.IsNotFound(cluster.client.Get(ctx, client.ObjectKeyFromObject(o), now))
	}).WithContext(ctx).Should(BeTrue(), "%s is still there", o.GetName())
	f.caughtUp(ctx)
}

// awaitProgress waits until the message of the condition Progressing is as wanted.
func (f *fixture) awaitProgress(ctx context.Context, set *v1beta1.RollSet, wanted gomegatypes.GomegaMatcher) {
	GinkgoHelper()
	f.awaitStatus(ctx, set, "what Progressing says", func(s *v1beta1.RollSetStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, "Progressing")
		if c == nil || c.ObservedGeneration < set.Generation {
			return false
		}
		matched, err := wanted.Match(c.Message)
		Expect(err).NotTo(HaveOccurred())
		return matched
	})
}

// quotaInForce waits until a quota has counted what it limits. Before that, the API server admits everything.
func (f *fixture) quotaInForce(ctx context.Context, quota *corev1.ResourceQuota) {
	GinkgoHelper()
	Eventually(func() corev1.ResourceList {
		now := &corev1.ResourceQuota{}
		Expect(cluster.client.Get(ctx, client.ObjectKeyFromObject(quota), now)).To(Succeed())
		return now.Status.Used
	}).WithContext(ctx).ShouldNot(BeEmpty())
}
