// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// inPlace lets pods be changed in place where possible; inPlaceOnly allows nothing else.
func inPlace() option     { return withPolicy(v1beta1.InPlaceIfPossiblePod) }
func inPlaceOnly() option { return withPolicy(v1beta1.InPlaceOnlyPod) }

func withPolicy(policy v1beta1.PodUpdatePolicy) option {
	return rolling(func(r *v1beta1.RollingUpdate) { r.PodUpdatePolicy = policy })
}

// withGrace keeps pods out of service for some seconds before their containers are touched.
func withGrace(seconds int32) option {
	return rolling(func(r *v1beta1.RollingUpdate) {
		r.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	})
}

// withHelpers adds a second container, helper, and a restartable init container, sidecar.
func withHelpers() option {
	return template(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "helper", Image: cluster.image()})
		t.Spec.InitContainers = []corev1.Container{{
			Name: "sidecar", Image: cluster.image(), RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		}}
	})
}

// withImageOf sets the image of a container or init container.
func withImageOf(name, image string) option {
	return template(func(t *corev1.PodTemplateSpec) {
		for _, containers := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
			for i := range containers {
				if containers[i].Name == name {
					containers[i].Image = image
				}
			}
		}
	})
}

// crashingImage returns an image that exits with an error at once. A spec that needs it is skipped without it.
func crashingImage() string {
	switch {
	case *crashingImageFlag != "":
	case cluster.local != nil:
		return "registry.k8s.io/rollset-e2e:crash"
	default:
		Skip("no flag -crashing-image")
	}
	return *crashingImageFlag
}

// restarts is how often each container has restarted.
type restarts map[string]int32

func restartsOf(pod *corev1.Pod) restarts {
	r := restarts{}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			r[statuses[i].Name] = statuses[i].RestartCount
		}
	}
	return r
}

// expectKept fails the spec unless the set has the same pods as before, each on its node and with its address.
func (f *fixture) expectKept(set *v1beta1.RollSet, before []*corev1.Pod) {
	GinkgoHelper()
	place := func(pods []*corev1.Pod) (places []string) {
		for _, pod := range pods {
			places = append(places, fmt.Sprintf("%s %s on %s at %s", pod.Name, pod.UID, pod.Spec.NodeName, pod.Status.PodIP))
		}
		return places
	}
	Expect(place(f.pods(set))).To(Equal(place(before)))
}

// expectRestarted fails the spec unless the set has the same pods as before and, in each, exactly the given containers have
// restarted once since, and had done so when the set became as given.
func (f *fixture) expectRestarted(ctx context.Context, set *v1beta1.RollSet, before []*corev1.Pod, containers ...string) {
	GinkgoHelper()
	f.expectKept(set, before)
	for _, pod := range before {
		want := restartsOf(pod)
		for _, name := range containers {
			want[name]++
		}
		f.awaitPods(ctx, set, fmt.Sprintf("restarts of %s: %v", pod.Name, want), func([]*corev1.Pod) bool {
			return maps.Equal(restartsOf(f.pod(pod.Name)), want)
		})
		for _, c := range read(f.record, func() []change[*corev1.Pod] { return slices.Clone(f.record.pods.changes) }) {
			if c.object.UID == pod.UID && maps.Equal(restartsOf(c.object), want) {
				Expect(version(c.object)).To(BeNumerically("<", version(set)), "the set was said to be updated before %s was", pod.Name)
				break
			}
		}
	}
}

// expectInService fails the spec if at any moment since the mark a pod was ready with a container that did not run the image
// of its spec.
func (f *fixture) expectInService(set *v1beta1.RollSet, from mark) {
	GinkgoHelper()
	f.replay(set, from, func(moment string, pods []*corev1.Pod) {
		for _, pod := range pods {
			for _, c := range pod.Spec.Containers {
				if runs := containerOf(pod, c.Name).Image; isReady(pod) && runs != c.Image {
					Fail(fmt.Sprintf("pod %s is ready with %s instead of %s at %s", pod.Name, runs, c.Image, moment))
				}
			}
		}
	})
}

// bill counts the writes of the manager to each pod since it was opened, if requests are counted.
type bill struct {
	fixture *fixture
	audit   audit
}

func (f *fixture) openBill() bill {
	GinkgoHelper()
	b := bill{fixture: f}
	if cluster.auditLog != "" {
		b.audit = auditFrom()
	}
	return b
}

// counts returns, for each pod, the number of writes to it by kind.
func (b bill) counts() map[string]map[string]int {
	GinkgoHelper()
	if cluster.auditLog == "" {
		return nil
	}
	requests := map[string][]request{}
	for _, r := range b.audit.requests(b.fixture.inNamespace()) {
		isWrite := r.Code < 300 && r.Verb != "create (dry run)"
		if isWrite && (r.Resource == "pods" || strings.HasPrefix(r.Resource, "pods/")) {
			requests[r.Name] = append(requests[r.Name], r)
		}
	}
	counts := map[string]map[string]int{}
	for name, list := range requests {
		counts[name] = byKind(list)
	}
	return counts
}

// expectPerPod fails the spec unless exactly this was written to each of the pods, and nothing to any other: "patch pods 1,
// patch pods/status 2".
func (b bill) expectPerPod(pods []*corev1.Pod, writes string) {
	GinkgoHelper()
	want, got := map[string]string{}, map[string]string{}
	for name, counts := range b.counts() {
		var words []string
		for _, kind := range slices.Sorted(maps.Keys(counts)) {
			words = append(words, fmt.Sprintf("%s %d", kind, counts[kind]))
		}
		got[name] = strings.Join(words, ", ")
	}
	for _, pod := range pods {
		if cluster.auditLog != "" {
			want[pod.Name] = writes
		}
	}
	Expect(got).To(Equal(want))
}

// expectAtMost fails the spec if the manager has made more than n writes of a kind to one pod.
func (b bill) expectAtMost(kind string, n int) {
	GinkgoHelper()
	for pod, counts := range b.counts() {
		Expect(counts[kind]).To(BeNumerically("<=", n), "%s %s", kind, pod)
	}
}

// movedSince returns the names of the pods that moved to the set's update revision since the mark, in order.
func (f *fixture) movedSince(set *v1beta1.RollSet, from mark) (names []string) {
	isUpdated := at(f.set(set).Status.UpdateRevision)
	for _, c := range read(f.record, func() []change[*corev1.Pod] { return slices.Clone(f.record.pods.changes[from:]) }) {
		if isUpdated(c.object) && !slices.Contains(names, c.object.Name) {
			names = append(names, c.object.Name)
		}
	}
	return names
}

// turnAllTheTime turns the gate of each pod fifty times a second, as no client but the controller should.
func (f *fixture) turnAllTheTime(ctx context.Context, pods []*corev1.Pod, long time.Duration) {
	GinkgoHelper()
	next := time.NewTicker(time.Second / 50)
	defer next.Stop()
	status := corev1.ConditionTrue
	for end := time.Now().Add(long); time.Now().Before(end); <-next.C {
		for _, pod := range pods {
			Expect(turn(ctx, pod, v1beta1.InPlaceUpdateReady, status)).To(Succeed())
		}
		if status == corev1.ConditionTrue {
			status = corev1.ConditionFalse
		} else {
			status = corev1.ConditionTrue
		}
	}
}

// isOpen reports whether the gate of a pod lets traffic pass.
func isOpen(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1beta1.InPlaceUpdateReady && c.Status == corev1.ConditionTrue
	})
}

// heaviest updates pods with a label before others.
func heaviest(key, value string) option {
	return rolling(func(r *v1beta1.RollingUpdate) {
		r.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{
			Weight: 10, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		}}}
	})
}

// containerOf returns the status of a container.
func containerOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
	if i < 0 {
		return &corev1.ContainerStatus{}
	}
	return &pod.Status.ContainerStatuses[i]
}

// annotated sets annotations of the template; labeled, labels.
func annotated(key, value string) option {
	return template(func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, value) })
}

func labeled(key, value string) option {
	return template(func(t *corev1.PodTemplateSpec) { t.Labels[key] = value })
}
