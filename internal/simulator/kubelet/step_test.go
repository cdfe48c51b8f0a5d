// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCreate(t *testing.T) {
	pod := newPod("app:v1", probed, func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "side:v1"})
	})
	f := newFilm(t, Recorded(), pod).run(time.Minute).expect(
		"+0s 1/1 Pending Ready=False app=app:v1#0,ContainerCreating side=side:v1#0,ContainerCreating",
		"+150ms 1/1 Pending Ready=False app=app:v1#0,ContainerCreating side=side:v1#0,ContainerCreating",
		"+250ms 1/1 Running Ready=False app=app:v1#0,running side=side:v1#0,ready",
		"+1.25s 1/1 Running Ready=True app=app:v1#0,ready side=side:v1#0,ready",
	)
	for _, c := range f.pod.Status.Conditions {
		if c.ObservedGeneration != 1 || c.Status != corev1.ConditionTrue {
			t.Errorf("condition %s = %s at generation %d, want True at 1", c.Type, c.Status, c.ObservedGeneration)
		}
	}
	if got := f.pod.Status.ContainerStatuses[0].ImageID; len(got) != len("docker.io/library/app@sha256:")+64 {
		t.Errorf("imageID = %q, want repository@sha256:<64 digits>", got)
	}
}

// Containers are reported by name, init containers in the order in which they start.
func TestOrderOfStatuses(t *testing.T) {
	named := func(names ...string) (containers []corev1.Container) {
		for _, name := range names {
			containers = append(containers, corev1.Container{Name: name, Image: name + ":v1"})
		}
		return containers
	}
	f := newFilm(t, Recorded(), newPod("app:v1", func(p *corev1.Pod) {
		p.Spec.InitContainers, p.Spec.Containers = named("z", "b"), named("main", "helper")
	})).run(time.Minute)
	if got := frame(f.pod); got != "1/1 Running Ready=True z=z:v1#0,Completed(0) b=b:v1#0,Completed(0) helper=helper:v1#0,ready main=main:v1#0,ready" {
		t.Errorf("pod is %s", got)
	}
}

func TestFirstEventCarriesAllConditions(t *testing.T) {
	o := Recorded().Step(newPod("app:v1"), Memory{}, epoch)
	type line struct{ Type, Status, Reason, Message string }
	var got []line
	for _, c := range o.Status.Conditions {
		got = append(got, line{string(c.Type), string(c.Status), c.Reason, c.Message})
	}
	want := []line{
		{"PodScheduled", "True", "", ""},
		{"PodReadyToStartContainers", "False", "PodSandboxNotReady", "no pod sandbox exists"},
		{"Initialized", "True", "", ""},
		{"Ready", "False", "ContainersNotReady", "containers with unready status: [app]"},
		{"ContainersReady", "False", "ContainersNotReady", "containers with unready status: [app]"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
}

func TestImageChange(t *testing.T) {
	slowToEnd := Recorded()
	slowToEnd.TermDelay = 2 * time.Second
	tests := map[string]struct {
		pod   *corev1.Pod
		image string
		want  []string
	}{
		"a probed pod is unready from the new container on": {
			pod: newPod("app:v1", probed), image: "app:v2",
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+2.1s 2/2 Running Ready=False app=app:v2#1,running<Completed(0)",
				"+3.1s 2/2 Running Ready=True app=app:v2#1,ready<Completed(0)",
			},
		},
		"a pod without probes is Ready all the time": {
			pod: newPod("app:v1"), image: "app:v2",
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+2.1s 2/2 Running Ready=True app=app:v2#1,ready<Completed(0)",
			},
		},
		"another tag of the same content restarts, and is never reported": {
			pod: newPod("app:v1"), image: "app:v1-again",
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+2.1s 2/2 Running Ready=True app=app:v1#1,ready<Completed(0)",
			},
		},
		"a broken image never becomes ready": {
			pod: newPod("app:v1", probed), image: "app:v2-broken",
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+2.1s 2/2 Running Ready=False app=app:v2-broken#1,running<Completed(0)",
			},
		},
		"a slow image takes its time, probe or not": {
			pod: newPod("app:v1"), image: "app:v2-slow",
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+2.1s 2/2 Running Ready=False app=app:v2-slow#1,running<Completed(0)",
				"+32.1s 2/2 Running Ready=True app=app:v2-slow#1,ready<Completed(0)",
			},
		},
		"a container that outlives the grace period is killed": {
			pod:   newPod("app:v1", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1)) }),
			image: "app:v2",
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+1.1s 2/2 Running Ready=True app=app:v2#1,ready<Error(137)",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			newFilm(t, slowToEnd, tt.pod).run(time.Minute).image(tt.image).run(time.Hour).expect(tt.want...)
		})
	}
}

func TestSameContentKeepsImageID(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1")).run(time.Minute)
	before := f.pod.Status.ContainerStatuses[0]
	after := f.image("app:v1-again").run(time.Minute).pod.Status.ContainerStatuses[0]
	if before.ImageID != after.ImageID || before.ContainerID == after.ContainerID {
		t.Errorf("imageID %q to %q, containerID %q to %q; want the same image in another container",
			before.ImageID, after.ImageID, before.ContainerID, after.ContainerID)
	}
}

// A container runtime reports the name by which it knows an image, which need not be the one in the spec.
func TestReportedNames(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123", 16)
	bare := strings.Repeat("x", 7) // stands for a digest below
	for spec, want := range map[string]struct{ image, imageID string }{
		"app:v1":                           {"docker.io/library/app:v1", "docker.io/library/app@" + bare},
		"app":                              {"docker.io/library/app:latest", "docker.io/library/app@" + bare},
		"me/app:v1":                        {"docker.io/me/app:v1", "docker.io/me/app@" + bare},
		"app:v1-again":                     {"docker.io/library/app:v1", "docker.io/library/app@" + bare},
		"localhost:5999/app:v1":            {"localhost:5999/app:v1", "localhost:5999/app@" + bare},
		"localhost:5999/app":               {"localhost:5999/app:latest", "localhost:5999/app@" + bare},
		"registry.example.com/a/b:v1":      {"registry.example.com/a/b:v1", "registry.example.com/a/b@" + bare},
		"app:v1-mirror":                    {"mirror.example.com/library/app:v1-mirror", "mirror.example.com/library/app@" + bare},
		"app@" + digest:                    {"docker.io/library/app@" + digest, "docker.io/library/app@" + digest},
		"app:v1@" + digest:                 {"docker.io/library/app@" + digest, "docker.io/library/app@" + digest},
		"registry.example.com/a@" + digest: {"registry.example.com/a@" + digest, "registry.example.com/a@" + digest},
		"app:v1-bare":                      {bare, bare},
	} {
		f := newFilm(t, Recorded(), newPod(spec)).run(time.Minute)
		c := f.pod.Status.ContainerStatuses[0]
		if !c.Ready {
			t.Errorf("%s: not ready", spec)
		}
		hide := func(s string) string {
			name, id, found := strings.Cut(s, "sha256:")
			if !found || "sha256:"+id == digest || len(id) != 64 {
				return s
			}
			return name + bare
		}
		if got := hide(c.Image); got != want.image {
			t.Errorf("%s: image %s, want %s", spec, got, want.image)
		}
		if got := hide(c.ImageID); got != want.imageID {
			t.Errorf("%s: imageID %s, want %s", spec, got, want.imageID)
		}
	}
}

// A name that is none is reported as such, and nothing else is tried.
func TestInvalidNames(t *testing.T) {
	for _, spec := range []string{"App:v1", "app:", "app@sha256:0123", "a b", "app:" + strings.Repeat("v", 4096)} {
		newFilm(t, Recorded(), newPod(spec)).run(time.Hour).expect(
			"+0s 1/1 Pending Ready=False app="+spec+"#0,ContainerCreating",
			"+150ms 1/1 Pending Ready=False app="+spec+"#0,ContainerCreating",
			"+250ms 1/1 Pending Ready=False app="+spec+"#0,InvalidImageName",
		)
	}
}

// The newest generation may be observed in the same event as the container of the one before.
func TestTwoImagesInQuickSuccession(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1")).run(time.Minute)
	f.image("app:v2").run(100 * time.Millisecond).expect("+0s 2/2 Running Ready=True app=app:v1#0,ready")
	f.image("app:v3").run(time.Minute).expect(
		"+50ms 3/3 Running Ready=True app=app:v2#1,ready<Completed(0)",
		"+200ms 3/3 Running Ready=True app=app:v3#2,ready<Completed(0)",
	)
}

func TestMetadataChangeIsNoEvent(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1")).run(time.Minute)
	f.edit(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }).run(time.Minute).expect()
}

func TestReadinessGate(t *testing.T) {
	const gate = "example.com/gate"
	f := newFilm(t, Recorded(), newPod("app:v1", gated(gate))).run(time.Minute)
	want := corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(epoch), Reason: "ReadinessGatesNotReady",
		Message: `corresponding condition of pod readiness gate "example.com/gate" does not exist.`,
	}
	if diff := cmp.Diff(want, readyOf(f.pod)); diff != "" {
		t.Errorf("Ready differs (-want +got):\n%s", diff)
	}
	f.edit(setGate(gate, corev1.ConditionTrue)).run(time.Minute).expect("+0s 1/1 Running Ready=True app=app:v1#0,ready")
	f.edit(setGate(gate, corev1.ConditionFalse)).run(time.Minute).expect("+0s 1/1 Running Ready=False app=app:v1#0,ready")
	if got, want := readyOf(f.pod).Message, `the status of pod readiness gate "example.com/gate" is not "True", but False`; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	f.image("app:v2").run(time.Minute)
	kept := 0
	for _, c := range f.pod.Status.Conditions {
		if c.Type == gate && c.Status == corev1.ConditionFalse && c.ObservedGeneration == 0 {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("the gate's condition was not left as its owner wrote it: %v", f.pod.Status.Conditions)
	}
}

func TestInitContainers(t *testing.T) {
	pod := newPod("app:v1", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "i1", Image: "init:v1"},
			{Name: "sc", Image: "side:v1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		}
	})
	f := newFilm(t, Recorded(), pod).run(time.Minute).expect(
		"+0s 1/1 Pending Ready=False i1=init:v1#0,PodInitializing sc=side:v1#0,PodInitializing app=app:v1#0,PodInitializing",
		"+150ms 1/1 Pending Ready=False i1=init:v1#0,PodInitializing sc=side:v1#0,PodInitializing app=app:v1#0,PodInitializing",
		"+250ms 1/1 Pending Ready=False i1=init:v1#0,running sc=side:v1#0,PodInitializing app=app:v1#0,PodInitializing",
		"+350ms 1/1 Pending Ready=False i1=init:v1#0,Completed(0) sc=side:v1#0,PodInitializing app=app:v1#0,PodInitializing",
		"+450ms 1/1 Pending Ready=False i1=init:v1#0,Completed(0) sc=side:v1#0,ready app=app:v1#0,PodInitializing",
		"+550ms 1/1 Running Ready=True i1=init:v1#0,Completed(0) sc=side:v1#0,ready app=app:v1#0,ready",
	)
	f.edit(func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "init:v2"; p.Generation++ }).run(time.Hour).expect(
		"+0s 2/2 Running Ready=True i1=init:v1#0,Completed(0) sc=side:v1#0,ready app=app:v1#0,ready",
	)
	f.edit(func(p *corev1.Pod) {
		p.Spec.InitContainers[1].Image, p.Spec.Containers[0].Image = "side:v2", "app:v2"
		p.Generation++
	}).run(time.Hour).expect(
		"+0s 3/3 Running Ready=True i1=init:v1#0,Completed(0) sc=side:v1#0,ready app=app:v1#0,ready",
		"+150ms 3/3 Running Ready=True i1=init:v1#0,Completed(0) sc=side:v2#1,ready<Completed(0) app=app:v2#1,ready<Completed(0)",
	)
}

func TestRestartedKubeletForgetsProbes(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1", probed)).run(time.Minute)
	f.memory = Memory{}
	f.image("app:v2").run(time.Minute).expect(
		"+0s 2/2 Running Ready=False app=app:v1#0,running",
		"+150ms 2/2 Running Ready=False app=app:v2#1,running<Completed(0)",
		"+1.15s 2/2 Running Ready=True app=app:v2#1,ready<Completed(0)",
	)
}

func TestUnboundPodIsLeftAlone(t *testing.T) {
	newFilm(t, Recorded(), newPod("app:v1", func(p *corev1.Pod) { p.Spec.NodeName = "" })).run(time.Hour).expect()
}

// With no delays at all every event is still there, in its order.
func TestZeroModel(t *testing.T) {
	f := newFilm(t, Model{}, newPod("app:v1", probed)).run(time.Second)
	if len(f.strip) != 4 {
		t.Errorf("a pod without delays is created in %d events, want 4: %q", len(f.strip), f.strip)
	}
	f.image("app:v2").run(time.Second)
	if len(f.strip) != 3 || readyOf(f.pod).Status != corev1.ConditionTrue {
		t.Errorf("an image change without delays takes the events %q, want 3, the last one Ready", f.strip)
	}
	f.delete(30).run(time.Second)
	if !f.removed || f.pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("a deletion without delays leaves phase %s, removed %v", f.pod.Status.Phase, f.removed)
	}
}
