// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"flag"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
)

var races = flag.Int("races", 10, "how many templates come in the instant in which the last pod of the one before becomes ready")

var _ = Describe("A template that comes when the last pod of the one before becomes ready", func() {
	It("finds the revision before it proven", func(ctx SpecContext) {
		f := newFixture(ctx)
		f.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("100%"))
		f.create()
		for i := range *races {
			shared.faults.setLag(f.namespace, time.Duration(i%20)*time.Millisecond) // sometimes the manager learns of the template first
			f.overtake(ctx, fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i))
		}
	}, SpecTimeout(time.Hour))
})

// overtake moves all pods to an image. At the event that shows the last of them ready, it writes another image with a partition
// that keeps them all. They must stay, and their revision must be the current one.
func (f *fixture) overtake(ctx context.Context, image, next string) {
	GinkgoHelper()
	pods, err := shared.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(f.namespace))
	Expect(err).NotTo(HaveOccurred())
	defer pods.Stop()
	write := func(image string, partition int) {
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/app:%s"},
			{"op":"add","path":"/spec/updateStrategy/rollingUpdate/partition","value":%d}]`, image, partition)
		Expect(shared.client.Patch(f, f.set, client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
	}
	write(image, 0)
	ready, revision := map[types.UID]bool{}, ""
	for event := range pods.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		if _, isReady := podstate.ReadySince(pod); isReady && pod.Spec.Containers[0].Image == "example.com/app:"+image {
			ready[pod.UID], revision = true, pod.Labels[v1beta1.RevisionLabel]
		}
		if len(ready) == int(*f.set.Spec.Replicas) {
			break
		}
	}
	Expect(ready).To(HaveLen(int(*f.set.Spec.Replicas)), "the watch ended")
	write(next, int(*f.set.Spec.Replicas))
	Eventually(func(g Gomega) {
		set := f.get()
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect(set.Status.UpdateRevision).NotTo(Equal(revision))
	}).Should(Succeed())
	Expect(f.set.Status.CurrentRevision).To(Equal(revision), next)
	for _, pod := range f.pods() {
		Expect(ready).To(HaveKey(pod.UID), next)
		Expect(pod.DeletionTimestamp).To(BeNil(), next)
	}
}
