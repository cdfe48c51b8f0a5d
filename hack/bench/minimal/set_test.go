// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package minimal

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// TestWrites counts the writes. They must be the fewest that the work needs, because the client is the lower bound.
func TestWrites(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from, to *Spec
		want     map[string]int
	}{
		"create":                 {nil, spec(10, "v1", ""), map[string]int{"create pods": 10}},
		"scale in":               {spec(10, "v1", ""), spec(3, "v1", ""), map[string]int{"delete pods": 7}},
		"recreate":               {spec(10, "v1", ""), spec(10, "v2", ""), map[string]int{"create pods": 10, "delete pods": 10}},
		"create with a gate":     {nil, inPlace(spec(10, "v1", "")), map[string]int{"create pods": 10, "patch pods/status": 10}},
		"change metadata":        {inPlace(spec(10, "v1", "")), inPlace(spec(10, "v1", "note")), map[string]int{"patch pods": 10}},
		"change images in place": {inPlace(spec(10, "v1", "")), inPlace(spec(10, "v2", "")), map[string]int{"patch pods": 10, "patch pods/status": 20}},
		"change images in place, and wait": {
			waiting(spec(10, "v1", "")), waiting(spec(10, "v2", "")), map[string]int{"patch pods": 10, "patch pods/status": 20},
		},
		"nothing":                 {spec(10, "v1", ""), spec(10, "v1", ""), map[string]int{}},
		"recreate, nothing ready": {spec(10, "broken", ""), spec(10, "v2", ""), map[string]int{"create pods": 10, "delete pods": 10}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.from != nil {
				w.want(tc.from)
			}
			w.api.ClearActions()
			w.want(tc.to)
			if diff := cmp.Diff(tc.want, w.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if tc.from != nil && tc.from.Replicas == tc.to.Replicas && w.most > tc.to.MaxUnavailable {
				t.Errorf("%d pods that were ready are disturbed at a time, want %d at most", w.most, tc.to.MaxUnavailable)
			}
		})
	}
}

func spec(replicas int, image, note string) *Spec {
	s := &Spec{Replicas: replicas, MaxUnavailable: 2, Revision: image + note}
	s.Template.Labels = map[string]string{SetLabel: "web", RevisionLabel: s.Revision}
	s.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	return s
}

func inPlace(s *Spec) *Spec {
	s.InPlace = true
	s.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: Gate}}
	return s
}

func waiting(s *Spec) *Spec {
	s.Waits = true
	return inPlace(s)
}

// world is an API server with a kubelet that takes no time, and the client.
type world struct {
	t      *testing.T
	api    *fake.Clientset
	client *client
	set    *set
	starts int
	// most is the largest number of pods that were ready once and unready at the same time.
	most int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, api: fake.NewClientset()}
	w.client = &client{api: w.api, jobs: newJobs(), sets: map[cache.ObjectName]*set{}}
	w.set = &set{name: cache.NewObjectName("default", "web"), client: w.client, pods: map[string]*pod{}}
	return w
}

// want lets the client do everything that a spec asks for.
func (w *world) want(s *Spec) {
	w.t.Helper()
	w.set.want("uid", s)
	w.set.advance()
	for len(w.client.jobs.queue) > 0 {
		disturbed := 0
		for _, p := range w.set.pods {
			if p.moving || p.gone && p.ready {
				disturbed++
			}
		}
		w.most = max(w.most, disturbed)
		if err := w.client.jobs.next()(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		w.show()
	}
}

// show completes all pods, and shows them to the client.
func (w *world) show() {
	w.t.Helper()
	list, err := w.api.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		object := &list.Items[i]
		w.run(object)
		there[object.Name] = true
		w.set.see(object)
	}
	for name, p := range maps.Clone(w.set.pods) {
		if p.gone && !there[name] {
			w.set.lose(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	w.set.advance()
}

// run sets the status that the spec asks for, as a kubelet does. It names the image in full.
func (w *world) run(object *corev1.Pod) {
	image := "docker.io/library/" + object.Spec.Containers[0].Image
	if now := container(object); now.Image != image {
		w.starts++
		object.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", Image: image, Ready: !strings.HasSuffix(image, "/broken"), ContainerID: strconv.Itoa(w.starts),
		}}
		if err := w.api.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), object, object.Namespace); err != nil {
			w.t.Fatal(err)
		}
	}
	if container(object).Ready && (len(object.Spec.ReadinessGates) == 0 || condition(object, Gate) == corev1.ConditionTrue) {
		object.Status.Conditions = append(object.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
}

func (w *world) writes() map[string]int {
	counts := map[string]int{}
	for _, a := range w.api.Actions() {
		switch a.GetVerb() {
		case "create", "delete", "patch":
			resource := a.GetResource().Resource
			if a.GetSubresource() != "" {
				resource += "/" + a.GetSubresource()
			}
			counts[a.GetVerb()+" "+resource]++
		}
	}
	return counts
}
