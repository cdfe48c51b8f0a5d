// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

// fixture is the namespace of a spec.
type fixture struct{ namespace string }

// newFixture gives each spec of a container a fixture. If the spec has failed, what its namespace holds is printed.
func newFixture() *fixture {
	f := &fixture{}
	BeforeEach(func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}
		Expect(bed.client.Create(ctx, namespace)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(bed.client.Delete(ctx, namespace)).To(Succeed()) })
		f.namespace = namespace.Name
		// Pods are refused until their default service account exists.
		Eventually(func() error {
			return bed.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "default"}, &corev1.ServiceAccount{})
		}).WithContext(ctx).Should(Succeed())
	})
	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			f.explain(ctx)
		}
	})
	return f
}

// explain prints sets and pods, and the end of the logs.
func (f *fixture) explain(ctx context.Context) {
	sets, pods := &v1beta1.RollSetList{}, &corev1.PodList{}
	err := errors.Join(bed.client.List(ctx, sets, client.InNamespace(f.namespace)), bed.client.List(ctx, pods, client.InNamespace(f.namespace)))
	if err != nil {
		GinkgoWriter.Println(err)
	}
	for i := range sets.Items {
		GinkgoWriter.Println(inYAML(sets.Items[i].Spec.UpdateStrategy), inYAML(sets.Items[i].Status))
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		GinkgoWriter.Println(pod.Name, inYAML(pod.Annotations), inYAML(pod.Spec.Containers), inYAML(pod.Status))
	}
	for _, path := range []string{bed.log, bed.node.Log("kubelet")} {
		raw, _ := os.ReadFile(path)
		GinkgoWriter.Println(path, "\n", string(raw[max(0, len(raw)-4000):]))
	}
}

func inYAML(o any) string {
	raw, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// option changes a set that is about to be created or updated.
type option func(*v1beta1.RollSet)

// newSet returns a set whose pods, labeled app=<name>, have one container called app, which serves HTTP and has a probe.
func newSet(name string, replicas int32, options ...option) *v1beta1.RollSet {
	labels := map[string]string{"app": name}
	set := &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.RollSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(5)),
					AutomountServiceAccountToken:  new(false),
					Containers: []corev1.Container{{
						Name: "app", Image: "web:1", ImagePullPolicy: corev1.PullIfNotPresent,
						ReadinessProbe: &corev1.Probe{
							ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
							PeriodSeconds: 1,
						},
					}},
				},
			},
		},
	}
	for _, o := range options {
		o(set)
	}
	return set
}

func template(change func(*corev1.PodTemplateSpec)) option {
	return func(s *v1beta1.RollSet) { change(&s.Spec.Template) }
}

func container(name string, change func(*corev1.Container)) option {
	return template(func(t *corev1.PodTemplateSpec) {
		for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
			for i := range list {
				if list[i].Name == name {
					change(&list[i])
				}
			}
		}
	})
}

func image(name string) option { return imageOf("app", name) }

func imageOf(name, image string) option {
	return container(name, func(c *corev1.Container) { c.Image = image })
}

// probeless removes the probe: such a pod is Ready as long as its container runs.
func probeless() option {
	return container("app", func(c *corev1.Container) { c.ReadinessProbe = nil })
}

// withSidecar adds a restartable init container.
func withSidecar() option {
	return template(func(t *corev1.PodTemplateSpec) {
		t.Spec.InitContainers = []corev1.Container{{
			Name: "sidecar", Image: "sidecar:1", ImagePullPolicy: corev1.PullIfNotPresent, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		}}
	})
}

// sized sets the requests and limits of the container app; memory restarts it.
func sized(cpu, memory string) option {
	return container("app", func(c *corev1.Container) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{
			{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
			{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
		}
		size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		c.Resources = corev1.ResourceRequirements{Requests: size, Limits: size.DeepCopy()}
	})
}

func scaledTo(replicas int32) option {
	return func(s *v1beta1.RollSet) { s.Spec.Replicas = &replicas }
}

// inPlace updates pods where they are, one at a time.
func inPlace() option {
	return func(s *v1beta1.RollSet) {
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePod
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
	}
}

// soon lets a set wait for half a minute, instead of ten minutes, for proof that an image runs.
func soon() option {
	return func(s *v1beta1.RollSet) { s.Spec.ProgressDeadlineSeconds = new(int32(30)) }
}

// create creates a set, and waits until it is Ready.
func (f *fixture) create(ctx context.Context, set *v1beta1.RollSet) *v1beta1.RollSet {
	GinkgoHelper()
	return f.awaitReady(ctx, f.submit(ctx, set))
}

// submit creates a set.
func (f *fixture) submit(ctx context.Context, set *v1beta1.RollSet) *v1beta1.RollSet {
	GinkgoHelper()
	set = set.DeepCopy()
	set.Namespace = f.namespace
	Expect(bed.client.Create(ctx, set)).To(Succeed())
	return set
}

// change changes a set and returns it as the API server has it then.
func (f *fixture) change(ctx context.Context, set *v1beta1.RollSet, by ...option) *v1beta1.RollSet {
	GinkgoHelper()
	now := &v1beta1.RollSet{}
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := bed.client.Get(ctx, client.ObjectKeyFromObject(set), now); err != nil {
			return err
		}
		for _, o := range by {
			o(now)
		}
		return bed.client.Update(ctx, now)
	})).To(Succeed())
	return now
}

// changePod changes a pod's metadata.
func (f *fixture) changePod(ctx context.Context, name string, by func(*corev1.Pod)) {
	GinkgoHelper()
	now := &corev1.Pod{}
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := bed.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, now); err != nil {
			return err
		}
		by(now)
		return bed.client.Update(ctx, now)
	})).To(Succeed())
}

// update changes a set and waits until all pods are at its template and available.
func (f *fixture) update(ctx context.Context, set *v1beta1.RollSet, by ...option) *v1beta1.RollSet {
	GinkgoHelper()
	return f.awaitReady(ctx, f.change(ctx, set, by...))
}

// awaitReady waits until the given generation of the set is complete: Ready, every pod updated and available.
func (f *fixture) awaitReady(ctx context.Context, set *v1beta1.RollSet) *v1beta1.RollSet {
	GinkgoHelper()
	return f.await(ctx, set, "to be complete", func(s *v1beta1.RollSet) bool {
		r := *s.Spec.Replicas
		return meta.IsStatusConditionTrue(s.Status.Conditions, "Ready") &&
			s.Status.Replicas == r && s.Status.UpdatedAvailableReplicas == r
	})
}

// await waits until the given generation of the set, or a later one, was observed and is as wanted.
func (f *fixture) await(ctx context.Context, set *v1beta1.RollSet, what string, holds func(*v1beta1.RollSet) bool) *v1beta1.RollSet {
	GinkgoHelper()
	now := &v1beta1.RollSet{}
	Eventually(func() error {
		if err := bed.client.Get(ctx, client.ObjectKeyFromObject(set), now); err != nil {
			return err
		}
		if now.Status.ObservedGeneration < set.Generation || !holds(now) {
			return fmt.Errorf("%s is not as it was waited for (%s): %s", set.Name, what, progressOf(now))
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
	return now
}

// progressOf returns what the set says that it waits for.
func progressOf(set *v1beta1.RollSet) string {
	if c := meta.FindStatusCondition(set.Status.Conditions, "Progressing"); c != nil {
		return c.Message
	}
	return ""
}

// pods returns the set's pods, by name, without terminating ones.
func (f *fixture) pods(ctx context.Context, set *v1beta1.RollSet) []*corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(bed.client.List(ctx, list, client.InNamespace(f.namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels))).To(Succeed())
	var pods []*corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, &list.Items[i])
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// awaitPods waits until the set's pods are as wanted, and returns them.
func (f *fixture) awaitPods(ctx context.Context, set *v1beta1.RollSet, what string, holds func([]*corev1.Pod) bool) (pods []*corev1.Pod) {
	GinkgoHelper()
	Eventually(func() bool {
		pods = f.pods(ctx, set)
		return holds(pods)
	}).WithContext(ctx).Should(BeTrue(), what)
	return pods
}

// expectRestarted checks that the pods are the same as before, and that exactly the named containers of each have restarted
// once since.
func (f *fixture) expectRestarted(ctx context.Context, set *v1beta1.RollSet, before []*corev1.Pod, containers ...string) {
	GinkgoHelper()
	now := f.pods(ctx, set)
	Expect(now).To(HaveLen(len(before)))
	for i, pod := range now {
		Expect(pod.UID).To(Equal(before[i].UID), "pod %s is another one", pod.Name)
		want := restarts(before[i])
		for _, c := range containers {
			want[c]++
		}
		Expect(restarts(pod)).To(Equal(want), "restarts of pod %s", pod.Name)
	}
}

// expectEvent checks that a set has an event with some words.
func (f *fixture) expectEvent(ctx context.Context, set *v1beta1.RollSet, words string) {
	GinkgoHelper()
	Eventually(func() string {
		events := &eventsv1.EventList{}
		Expect(bed.client.List(ctx, events, client.InNamespace(f.namespace))).To(Succeed())
		var notes []string
		for i := range events.Items {
			if e := &events.Items[i]; e.Regarding.UID == set.UID {
				notes = append(notes, e.Note)
			}
		}
		return strings.Join(notes, "\n")
	}).WithContext(ctx).Should(ContainSubstring(words), "events of %s", set.Name)
}

func restarts(pod *corev1.Pod) map[string]int32 {
	counts := map[string]int32{}
	for _, s := range statuses(pod) {
		counts[s.Name] = s.RestartCount
	}
	return counts
}

func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

func uids(pods []*corev1.Pod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, string(pod.UID))
	}
	return all
}

// reply is the answer of the images of a real node.
type reply struct {
	Version string `json:"version"`
	Ending  bool   `json:"ending"`
}

// get asks a pod, by its address.
func get(ctx context.Context, ip, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, "8080")+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := bed.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

// versionOf returns the version that a pod serves.
func versionOf(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	body, err := get(ctx, pod.Status.PodIP, "/")
	Expect(err).NotTo(HaveOccurred())
	var r reply
	Expect(json.Unmarshal(body, &r)).To(Succeed())
	return r.Version
}

// expectServing checks that all pods serve a version.
func (f *fixture) expectServing(ctx context.Context, set *v1beta1.RollSet, version string) {
	GinkgoHelper()
	for _, pod := range f.pods(ctx, set) {
		Expect(versionOf(ctx, pod)).To(Equal(version), pod.Name)
	}
}
