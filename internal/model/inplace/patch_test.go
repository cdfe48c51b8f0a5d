// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"

	"rollset.dev/rollset/internal/model/inplace"
)

// pod returns a pod of a template as the API server stores it.
func pod(t *corev1.PodTemplateSpec, revision string) *corev1.Pod {
	t = t.DeepCopy()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", UID: "u0", ResourceVersion: "7", Generation: 1,
			Labels:      map[string]string{"controller-revision-hash": revision},
			Annotations: t.Annotations,
		},
		Spec:   t.Spec,
		Status: corev1.PodStatus{ObservedGeneration: 1},
	}
	maps.Copy(p.Labels, t.Labels)
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if c.ImagePullPolicy == "" {
				c.ImagePullPolicy = corev1.PullIfNotPresent
				if !strings.Contains(c.Image, ":") || strings.HasSuffix(c.Image, ":latest") {
					c.ImagePullPolicy = corev1.PullAlways
				}
			}
			if requests := maps.Clone(c.Resources.Limits); requests != nil {
				maps.Copy(requests, c.Resources.Requests)
				c.Resources.Requests = requests
			}
		}
	}
	return p
}

// patched returns the pod that the API server makes of a pod and a strategic merge patch.
func patched(t rapid.TB, p *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		t.Fatalf("%v: %s", err, patch)
	}
	var result corev1.Pod
	if err := json.Unmarshal(after, &result); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(p.Spec, result.Spec) {
		result.Generation++
	}
	return &result
}

// update patches a pod as a controller does that does not crash.
func update(t rapid.TB, p *corev1.Pod, c inplace.Change, revision string) *corev1.Pod {
	t.Helper()
	patch, err := inplace.Patch(p, c, revision)
	if err != nil {
		t.Fatal(err)
	}
	return patched(t, p, patch)
}

func resize(t rapid.TB, p *corev1.Pod, to *corev1.PodTemplateSpec) *corev1.Pod {
	t.Helper()
	s, err := inplace.StateOf(p)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := inplace.ResizePatch(p, to, s.Resized)
	if err != nil {
		t.Fatal(err)
	}
	if patch == nil {
		return p
	}
	return patched(t, p, patch)
}

func TestPatch(t *testing.T) {
	t.Parallel()
	running := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "c://1"}, {Name: "log", ContainerID: "c://2"}}
	}
	tests := map[string]struct {
		pod    func(*corev1.Pod)
		change inplace.Change
		want   string
	}{
		"nothing but the revision": {
			want: `{"metadata":{"uid":"u0","labels":{"controller-revision-hash":"v2"}}}`,
		},
		"labels and annotations": {
			change: inplace.Change{
				Labels:      inplace.Keys{Set: map[string]string{"a": "b"}, Removed: []string{"tier"}},
				Annotations: inplace.Keys{Set: map[string]string{"c": ""}, Removed: []string{"note"}},
			},
			want: `{"metadata":{"uid":"u0","labels":{"a":"b","controller-revision-hash":"v2","tier":null},"annotations":{"c":"","note":null}}}`,
		},
		"images": {
			pod:    running,
			change: inplace.Change{Images: map[string]string{"web": "web:v2", "proxy": "proxy:v2"}},
			want: `{"metadata":{"uid":"u0","resourceVersion":"7","labels":{"controller-revision-hash":"v2"},"annotations":{` +
				`"apps.rollset.dev/in-place-update":"{\"revision\":\"v2\",\"generation\":2,\"containers\":{` +
				`\"proxy\":{\"image\":7907202129488554922},\"web\":{\"id\":\"c://1\",\"image\":15503031735544893372}}}"}},` +
				`"spec":{"initContainers":[{"name":"proxy","image":"proxy:v2"}],"containers":[{"name":"web","image":"web:v2"}]}}`,
		},
		"an image that the pod has already": {
			pod:    func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:v2" },
			change: inplace.Change{Images: map[string]string{"web": "web:v2"}},
			want: `{"metadata":{"uid":"u0","labels":{"controller-revision-hash":"v2"}},` +
				`"spec":{"containers":[{"name":"web","image":"web:v2"}]}}`,
		},
		"resources, which another patch brings": {
			change: inplace.Change{Resources: map[string]corev1.ResourceRequirements{"web": {}, "log": {}}},
			want: `{"metadata":{"uid":"u0","labels":{"controller-revision-hash":"v2"},"annotations":{` +
				`"apps.rollset.dev/in-place-update":"{\"revision\":\"v2\",\"generation\":1,\"resized\":[\"log\",\"web\"]}"}}}`,
		},
		"an old state": {
			pod: func(p *corev1.Pod) {
				running(p)
				p.Annotations[inplace.StateAnnotation] = `{"revision":"v1","generation":1,"containers":{"web":{"id":"c://0"}}}`
				p.Status.ContainerStatuses[0].Image = "docker.io/library/web:v1"
				p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
			},
			want: `{"metadata":{"uid":"u0","labels":{"controller-revision-hash":"v2"},"annotations":{"apps.rollset.dev/in-place-update":null}}}`,
		},
		"a state with foreign content": {
			pod: func(p *corev1.Pod) {
				running(p)
				p.Generation = 2
				p.Annotations[inplace.StateAnnotation] = `{"revision":"v1","generation":2,` +
					`"containers":{"evil":{"id":"evil"},"log":{"id":"evil"},"web":{"id":"c://1"}},"resized":["evil","log"]}`
			},
			want: `{"metadata":{"uid":"u0","resourceVersion":"7","labels":{"controller-revision-hash":"v2"},"annotations":{` +
				`"apps.rollset.dev/in-place-update":"{\"revision\":\"v2\",\"generation\":2,\"containers\":{` +
				`\"log\":{\"generation\":2},\"web\":{\"id\":\"c://1\",\"generation\":2}},\"resized\":[\"log\"]}"}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod(template(), "v1")
			if tc.pod != nil {
				tc.pod(p)
			}
			before := p.DeepCopy()
			got, err := inplace.Patch(p, tc.change, "v2")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, p); diff != "" {
				t.Errorf("the pod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestPatchFails(t *testing.T) {
	t.Parallel()
	p := pod(template(), "v1")
	if _, err := inplace.Patch(p, inplace.Change{Images: map[string]string{"none": "x"}}, "v2"); err == nil ||
		err.Error() != "patch pod web-0: it has no container none" {
		t.Errorf("error is %v", err)
	}
	many := inplace.Change{Images: make(map[string]string)}
	for i := range 500 {
		name := strings.Repeat("x", 20) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "x:v1"})
		many.Images[name] = "x:v2"
	}
	if _, err := inplace.Patch(p, many, "v2"); err == nil || err.Error() != "patch pod web-0: it has too many containers" {
		t.Errorf("error is %v", err)
	}
}

func TestResizePatch(t *testing.T) {
	t.Parallel()
	to := template()
	web(to).Resources = requirements("memory=3Gi", "cpu=2 memory=4Gi")
	to.Spec.InitContainers[1].Resources = requirements("cpu=1", "")
	tests := map[string]struct {
		pod        func(*corev1.Pod)
		containers []string
		want       string
		wantError  string
	}{
		"a container": {
			containers: []string{"web"},
			want: `{"metadata":{"uid":"u0"},"spec":{"containers":[{"name":"web","resources":{` +
				`"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"2","memory":"3Gi"}}}]}}`,
		},
		"an init container": {
			containers: []string{"proxy"},
			want:       `{"metadata":{"uid":"u0"},"spec":{"initContainers":[{"name":"proxy","resources":{"requests":{"cpu":"1"}}}]}}`,
		},
		"a container that has it all": {
			pod: func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources = requirements("cpu=2 memory=3Gi gpu=1", "cpu=2000m memory=4Gi")
			},
			containers: []string{"web", "log"},
		},
		"none":                          {},
		"a container not in the pod":    {pod: func(p *corev1.Pod) { p.Spec.Containers = nil }, containers: []string{"web"}, wantError: "resize pod web-0: it has no container web"},
		"a container without any names": {containers: []string{""}, wantError: "resize pod web-0: it has no container "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod(template(), "v1")
			if tc.pod != nil {
				tc.pod(p)
			}
			got, err := inplace.ResizePatch(p, to, tc.containers)
			if text := errorText(err); text != tc.wantError {
				t.Fatalf("error is %q, want %q", text, tc.wantError)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	changes := 0
	for range 100 { // few pairs are similar enough; one round may have none
		rapid.Check(t, func(t *rapid.T) {
			if roundTrip(t) {
				changes++
			}
		})
		if changes >= 10 {
			return
		}
	}
	t.Errorf("%d pairs of templates could be changed into one another, too few for a test", changes)
}

func FuzzRoundTrip(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { roundTrip(t) }))
}

// roundTrip takes a pod from one template to another. Either that cannot be done, or the result is a pod of the other
// template, and what a user added to it is still there.
func roundTrip(t *rapid.T) (changed bool) {
	from, to := anyTemplate(t, "from"), anyTemplate(t, "to")
	c, cannot := inplace.Diff(from, to)
	if cannot != "" {
		if back, _ := inplace.Diff(from, from); !cmp.Equal(back, inplace.Change{}) {
			t.Fatalf("a template differs from itself: %v", back)
		}
		return false
	}
	p := pod(from, "v1")
	p.Labels["user"], p.Annotations = "label", maps.Clone(p.Annotations)
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, "user", "annotation")
	got := resize(t, update(t, p, c, "v2"), to)

	if got.Labels["user"] != "label" || got.Annotations["user"] != "annotation" {
		t.Fatalf("the user's keys are gone: %v, %v", got.Labels, got.Annotations)
	}
	delete(got.Labels, "user")
	delete(got.Annotations, "user")
	delete(got.Annotations, inplace.StateAnnotation)
	want := pod(to, "v2")
	for _, p := range []*corev1.Pod{got, want} {
		p.Generation = 0
		slices.SortFunc(p.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
		if len(p.Annotations) == 0 {
			p.Annotations = nil
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("pod (-want +got):\n%s", diff)
	}
	return true
}

// anyTemplate draws from few templates, so that two of them are often similar.
func anyTemplate(t *rapid.T, label string) *corev1.PodTemplateSpec {
	sometimes := func(what string) bool { return rapid.IntRange(0, 15).Draw(t, label+": "+what) == 0 }
	keys := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"1", "2", ""}), 0, 3)
	image := rapid.SampledFrom([]string{"x:v1", "x:v2", "x:v3", "x:v4", "x@sha256:0", "x", "x:latest"})
	list := rapid.SampledFrom([]string{"", "cpu=1", "cpu=1 memory=1Gi", "cpu=2 memory=1Gi", "cpu=1000m memory=1024Mi"})
	tpl := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels: keys.Draw(t, label+" labels"), Annotations: keys.Draw(t, label+" annotations"),
	}}
	tpl.Spec.InitContainers = []corev1.Container{
		{Name: "once", Image: "once:v1"},
		{Name: "side", Image: image.Draw(t, label+" side"), RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
	}
	main := corev1.Container{Name: "main", Image: image.Draw(t, label+" main")}
	main.Resources = requirements(list.Draw(t, label+" requests"), list.Draw(t, label+" limits"))
	more := corev1.Container{Name: "more", Image: "more:v1", Resources: requirements("cpu=1", "")}
	tpl.Spec.Containers = []corev1.Container{main, more}
	tpl.Spec.Volumes = []corev1.Volume{{Name: "v"}, {Name: "w"}}
	if rapid.Bool().Draw(t, label+": volumes turned round") {
		slices.Reverse(tpl.Spec.Volumes)
	}
	if sometimes("containers turned round") {
		slices.Reverse(tpl.Spec.Containers)
	}
	if sometimes("host network") {
		tpl.Spec.HostNetwork = true
	}
	if sometimes("another init container") {
		tpl.Spec.InitContainers[0].Image = "once:v2"
	}
	if sometimes("a policy") {
		tpl.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	}
	return tpl
}

// TestResizeOfWhatIsWanted asks for nothing if the API server added a request for a resource that the template does not name.
func TestResizeOfWhatIsWanted(t *testing.T) {
	t.Parallel()
	to := template()
	web(to).Resources = requirements("cpu=1", "")
	p := pod(to, "r1")
	p.Spec.Containers[0].Resources = requirements("cpu=1 memory=1Gi", "memory=1Gi")
	if patch, err := inplace.ResizePatch(p, to, []string{"web"}); patch != nil || err != nil {
		t.Errorf("patch %s, %v", patch, err)
	}
}
