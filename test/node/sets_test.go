// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("A set", func() {
	f := newFixture()

	It("is created, recreated for another template, and scaled", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 3))
		f.expectServing(ctx, set, "1")
		before := uids(f.pods(ctx, set))

		set = f.update(ctx, set, image("web:2"))
		f.expectServing(ctx, set, "2")
		after := f.pods(ctx, set)
		Expect(after).To(HaveLen(3))
		for _, uid := range uids(after) {
			Expect(before).NotTo(ContainElement(uid))
		}

		set = f.update(ctx, set, scaledTo(5))
		Expect(f.pods(ctx, set)).To(HaveLen(5))
		set = f.update(ctx, set, scaledTo(1))
		Expect(f.pods(ctx, set)).To(HaveLen(1))
	})

	It("with ordinals keeps each pod's data on its local volume through an update and a scaling", func(ctx SpecContext) {
		makeVolumes(ctx, f.namespace, 3)
		set := f.create(ctx, newSet("db", 3, ordinal(f.namespace)))
		starts := func(name string) string {
			GinkgoHelper()
			pod := &corev1.Pod{}
			Expect(bed.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, pod)).To(Succeed())
			data, err := get(ctx, pod.Status.PodIP, "/data")
			Expect(err).NotTo(HaveOccurred())
			return string(data)
		}
		Expect(starts("db-2")).To(Equal("1\n"))

		set = f.update(ctx, set, image("web:2"))
		for _, name := range []string{"db-0", "db-1", "db-2"} {
			Expect(starts(name)).To(Equal("1\n2\n"), name)
		}
		set = f.update(ctx, set, scaledTo(2))
		set = f.update(ctx, set, scaledTo(3))
		Expect(starts("db-2")).To(Equal("1\n2\n2\n"))
		f.update(ctx, set, inPlace(), image("web:3"))
		Expect(starts("db-0")).To(Equal("1\n2\n3\n"))
	})

	It("holds pods for its hooks", func(ctx SpecContext) {
		const mark = "example.com/hook"
		hook := &v1beta1.LifecycleHook{LabelsHandler: map[string]string{mark: "on"}}
		hooked := func(s *v1beta1.RollSet) {
			s.Spec.Lifecycle = &v1beta1.Lifecycle{InPlaceUpdate: hook, PreDelete: hook}
			s.Spec.Template.Labels[mark] = "on"
		}
		set := f.create(ctx, newSet("web", 1, inPlace(), hooked))
		before := f.pods(ctx, set)
		name := before[0].Name
		unhook := func(pod *corev1.Pod) { delete(pod.Labels, mark) }

		set = f.change(ctx, set, image("web:2"))
		f.awaitState(ctx, set, v1beta1.LifecyclePreparingUpdate)
		Expect(versionOf(ctx, f.pods(ctx, set)[0])).To(Equal("1"))
		f.changePod(ctx, name, unhook)
		f.awaitState(ctx, set, v1beta1.LifecycleUpdated)
		f.changePod(ctx, name, func(pod *corev1.Pod) { pod.Labels[mark] = "on" })
		set = f.awaitReady(ctx, set)
		f.expectRestarted(ctx, set, before, "app")
		f.expectServing(ctx, set, "2")

		set = f.change(ctx, set, scaledTo(0))
		f.awaitState(ctx, set, v1beta1.LifecyclePreparingDelete)
		Expect(versionOf(ctx, f.pods(ctx, set)[0])).To(Equal("2"))
		f.changePod(ctx, name, unhook)
		f.awaitReady(ctx, set)
	})
})

var _ = Describe("A node", func() {
	f := newFixture()

	// The garbage collector of pods takes a minute to be sure.
	It("that is deleted takes its pods along, and their successors run when it is back", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 2))
		before := uids(f.pods(ctx, set))
		Expect(bed.client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: bed.node.Name()}})).To(Succeed())
		f.awaitPods(ctx, set, "two other pods, that wait for a node", func(pods []*corev1.Pod) bool {
			return len(pods) == 2 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
				return slices.Contains(before, string(pod.UID)) || pod.Spec.NodeName != ""
			})
		})
		Expect(bed.node.KillKubelet(ctx)).To(Succeed())
		Expect(bed.node.StartKubelet(ctx)).To(Succeed()) // a kubelet registers its node at its start
		f.awaitReady(ctx, set)
		f.expectServing(ctx, set, "1")
	})
})

// awaitState waits until the set's only pod is in a state of its life.
func (f *fixture) awaitState(ctx SpecContext, set *v1beta1.RollSet, state v1beta1.LifecycleState) {
	GinkgoHelper()
	f.awaitPods(ctx, set, "lifecycle state "+string(state), func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].Labels[v1beta1.LifecycleStateLabel] == string(state)
	})
}

// ordinal gives the pods ordinals, and volumes of a storage class, mounted at /data.
func ordinal(class string) option {
	return func(s *v1beta1.RollSet) {
		s.Spec.PodIdentity = v1beta1.OrdinalIdentity
		s.Spec.PodManagementPolicy = v1beta1.ParallelPodManagement
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

// makeVolumes makes local volumes of a storage class of their own.
func makeVolumes(ctx SpecContext, class string, count int) {
	GinkgoHelper()
	objects := []client.Object{&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner",
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}}
	for i := range count {
		path, err := bed.node.MakeVolume(i)
		Expect(err).NotTo(HaveOccurred())
		objects = append(objects, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{GenerateName: class + "-"},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: class,
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{bed.node.Name()}}},
				}}}},
			},
		})
	}
	for _, o := range objects {
		Expect(bed.client.Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(bed.client.Delete(ctx, o)).To(Succeed()) })
	}
}
