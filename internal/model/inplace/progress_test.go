// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/inplace"
)

// report is a status of the container web, as a kubelet reports it.
type report struct {
	observed    int64 // observedGeneration
	image       string
	imageID     string
	containerID string
	state       string // "" is running, anything else the reason of waiting
	resources   string // requests and limits
	conditions  string // type=reason, separated by blanks
}

func (r report) write(p *corev1.Pod) {
	p.Status.ObservedGeneration = r.observed
	status := corev1.ContainerStatus{Name: "web", Image: r.image, ImageID: r.imageID, ContainerID: r.containerID}
	if r.state == "" {
		status.State.Running = &corev1.ContainerStateRunning{}
	} else {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: r.state}
	}
	if r.resources != "" {
		status.Resources = new(requirements(r.resources, r.resources))
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodResizePending, Status: corev1.ConditionFalse},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	for field := range strings.FieldsSeq(r.conditions) {
		kind, reason, _ := strings.Cut(field, "=")
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(kind), Reason: reason, Status: corev1.ConditionTrue,
			Message: map[string]string{"Deferred": "the node is full", "Infeasible": "the node is too small"}[reason],
		})
	}
}

// done reports whether a pod's update is done as far as the pod itself shows, and returns what is waited for.
func done(p *corev1.Pod, to *corev1.PodTemplateSpec, s inplace.State) (isDone bool, waiting string) {
	progress := inplace.Of(p, to, s, inplace.Sighting{})
	return progress.Done(), cmp.Or(progress.Restart, progress.Resize)
}

// unproven returns what is waited for while container web runs but does not prove that it runs an image.
func unproven(wanted, image, imageID string) string {
	return fmt.Sprintf("container web has restarted, but not provably with %s: the node reports image %q, imageID %q", wanted, image, imageID)
}

// The sequences are recordings of a kubelet 1.37.
func TestDone(t *testing.T) {
	t.Parallel()
	const id1, id2, id3 = "c://1", "c://2", "c://3"
	digest3 := "sha256:" + strings.Repeat("3", 64)
	v1 := report{observed: 1, image: "web:v1", imageID: "web@sha256:1", containerID: id1}
	type step struct {
		// patch is the image to which a controller moves the pod, before the kubelet reports.
		patch  string
		report report
		want   string
	}
	tests := map[string]struct {
		image string // of the pod at first; web:v1 if empty
		first *report
		steps []step
	}{
		"an image": {steps: []step{
			{patch: "web:v2", report: v1, want: "container web: the kubelet has not seen the change yet"},
			// Seen, and Ready; but the old container is only about to be told.
			{report: report{2, "web:v1", "web@sha256:1", id1, "", "", ""}, want: "container web has not restarted with web:v2 yet"},
			{report: report{2, "web:v2", "web@sha256:2", id2, "", "", ""}},
			{report: report{2, "web:v2", "web@sha256:2", id2, "CrashLoopBackOff", "", ""}},
		}},
		"another tag of the same image": {steps: []step{
			{patch: "web:v1-again", report: report{2, "web:v1", "web@sha256:1", id1, "", "", ""}, want: "container web has not restarted with web:v1-again yet"},
			{report: report{2, "web:v1", "web@sha256:1", id2, "", "", ""}},
		}},
		"the same image by digest": {steps: []step{
			{patch: "web@sha256:1", report: report{2, "web:v1", "web@sha256:1", id1, "", "", ""}, want: "container web has not restarted with web@sha256:1 yet"},
			{report: report{2, "web:v1", "web@sha256:1", id2, "", "", ""}},
		}},
		"an image that cannot be pulled, and its correction, under short names": {image: "web:v1", steps: []step{
			{patch: "web:none", report: report{2, "docker.io/library/web:v1", "docker.io/library/web@sha256:1", id1, "ErrImagePull", "", ""}, want: "container web has not restarted with web:none yet"},
			{patch: "web:v3", report: report{2, "docker.io/library/web:v1", "docker.io/library/web@sha256:1", id1, "ErrImagePull", "", ""}, want: "container web: the kubelet has not seen the change yet"},
			{report: report{3, "docker.io/library/web:v3", "docker.io/library/web@sha256:3", id2, "", "", ""}},
		}},
		"two patches before the kubelet acts": {steps: []step{
			{patch: "web:v2", report: v1, want: "container web: the kubelet has not seen the change yet"},
			{patch: "web:v3", report: v1, want: "container web: the kubelet has not seen the change yet"},
			// The generation of the second patch, and the container of the first.
			{report: report{3, "web:v2", "web@sha256:2", id2, "", "", ""}, want: unproven("web:v3", "web:v2", "web@sha256:2")},
			{report: report{3, "web:v3", "web@sha256:3", id3, "", "", ""}},
		}},
		"two patches, the second one to a digest": {steps: []step{
			{patch: "web:v2", report: report{2, "web:v1", "web@sha256:1", id1, "", "", ""}, want: "container web has not restarted with web:v2 yet"},
			{patch: "web@" + digest3, report: report{3, "web:v2", "web@sha256:2", id2, "", "", ""}, want: unproven("web@"+digest3, "web:v2", "web@sha256:2")},
			{report: report{3, "web:v3", "web@" + digest3, id3, "", "", ""}},
		}},
		"there and back before the kubelet acts": {steps: []step{
			{patch: "web:v2", report: v1, want: "container web: the kubelet has not seen the change yet"},
			{patch: "web:v1", report: v1, want: "container web: the kubelet has not seen the change yet"},
			{report: report{3, "web:v1", "web@sha256:1", id1, "", "", ""}},
		}},
		"there and back, to a tag that the kubelet does not report": {
			image: "web:v1-again",
			steps: []step{
				{patch: "web:v2", report: v1, want: "container web: the kubelet has not seen the change yet"},
				{patch: "web:v1-again", report: v1, want: "container web: the kubelet has not seen the change yet"},
				{report: report{3, "web:v1", "web@sha256:1", id1, "", "", ""}},
			},
		},
		"there and back after the kubelet has acted": {steps: []step{
			{patch: "web:v2", report: report{2, "web:v1", "web@sha256:1", id1, "", "", ""}, want: "container web has not restarted with web:v2 yet"},
			{patch: "web:v1", report: report{3, "web:v2", "web@sha256:2", id2, "", "", ""}, want: unproven("web:v1", "web:v2", "web@sha256:2")},
			{report: report{3, "web:v1", "web@sha256:1", id3, "", "", ""}},
		}},
		"a finished update is no overlap": {steps: []step{
			{patch: "web:v2", report: report{2, "web:v2", "web@sha256:2", id2, "", "", ""}},
			{patch: "web:v2-again", report: report{3, "web:v2", "web@sha256:2", id2, "", "", ""}, want: "container web has not restarted with web:v2-again yet"},
			{report: report{3, "web:v2", "web@sha256:2", id3, "", "", ""}},
		}},
		"an image that cannot be pulled, and its correction": {steps: []step{
			// The healthy container is ended first, and stays in the status until there is another.
			{patch: "web:none", report: report{2, "web:v1", "web@sha256:1", id1, "ErrImagePull", "", ""}, want: "container web has not restarted with web:none yet"},
			{report: report{2, "web:v1", "web@sha256:1", id1, "CrashLoopBackOff", "", ""}, want: "container web has not restarted with web:none yet"},
			{patch: "web:v3", report: report{3, "web:v1", "web@sha256:1", id1, "ErrImagePull", "", ""}, want: "container web has not restarted with web:v3 yet"},
			{report: report{3, "web:v3", "web@sha256:3", id2, "", "", ""}},
		}},
		"an image that cannot be pulled, and back": {steps: []step{
			{patch: "web:none", report: report{2, "web:v1", "web@sha256:1", id1, "ErrImagePull", "", ""}, want: "container web has not restarted with web:none yet"},
			// It does not run, but nothing remains to wait for.
			{patch: "web:v1", report: report{3, "web:v1", "web@sha256:1", id1, "CrashLoopBackOff", "", ""}},
			{report: report{3, "web:v1", "web@sha256:1", id2, "", "", ""}},
		}},
		"a pod that never started": {
			first: &report{1, "web:v1", "", "", "ImagePullBackOff", "", ""},
			steps: []step{
				{patch: "web:v2", report: report{2, "web:v1", "", "", "ImagePullBackOff", "", ""}, want: "container web has not started"},
				{report: report{2, "web:v2-alias", "web@sha256:2", id1, "", "", ""}},
			},
		},
		"a pod without a status": {
			first: &report{},
			steps: []step{
				{patch: "web:v2", report: report{}, want: "container web: the kubelet has not seen the change yet"},
				{report: report{2, "web:v2", "web@sha256:2", id1, "", "", ""}},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := template()
			if tc.image != "" {
				web(from).Image = tc.image
			}
			p := pod(from, "r0")
			v1.write(p)
			if tc.first != nil {
				tc.first.write(p)
			}
			seen := inplace.Sighting{}
			for i, s := range tc.steps {
				if s.patch != "" {
					to := from.DeepCopy()
					web(to).Image = s.patch
					c, cannot := inplace.Diff(from, to)
					if cannot != "" {
						t.Fatal(cannot)
					}
					p, from = update(t, p, c, fmt.Sprintf("r%d", i+1)), to
				}
				s.report.write(p)
				state, err := inplace.StateOf(p)
				if err != nil {
					t.Fatal(err)
				}
				seen = seen.See(p)
				if got := inplace.Of(p, from, state, seen); got.Restart != s.want || got.Resize != "" {
					t.Errorf("step %d: waiting for %+v; want %q", i+1, got, s.want)
				}
			}
		})
	}
}

// Another client changes an image, and the controller another one before the kubelet has seen the first.
func TestDoneAfterForeignPatch(t *testing.T) {
	t.Parallel()
	p := pod(template(), "r0")
	report{observed: 1, image: "web:v1", containerID: "c://1"}.write(p)
	p.Spec.Containers[0].Image = "web:foreign"
	p.Generation = 2
	p = update(t, p, inplace.Change{Images: map[string]string{"web": "web:v2"}}, "r1")
	for i, tc := range []struct {
		report report
		want   bool
	}{
		{report{3, "web:foreign", "web@sha256:9", "c://2", "", "", ""}, false},
		{report{3, "web:v2", "web@sha256:2", "c://3", "ErrImagePull", "", ""}, false},
		{report{3, "web:v2", "web@sha256:2", "c://3", "", "", ""}, true},
	} {
		tc.report.write(p)
		state, err := inplace.StateOf(p)
		if err != nil {
			t.Fatal(err)
		}
		if done, waiting := done(p, template(), state); done != tc.want {
			t.Errorf("report %d: done is %v, waiting for %q", i+1, done, waiting)
		}
	}
}

// A second update of another container waits for the first one too.
func TestDoneCarriesOver(t *testing.T) {
	t.Parallel()
	p := pod(template(), "r0")
	statuses := func(generation int64, web, log string) {
		p.Status.ObservedGeneration = generation
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "web", ContainerID: web, ImageID: "web@" + web}, {Name: "log", ContainerID: log, ImageID: "log@" + log},
		}
	}
	statuses(1, "c://w1", "c://l1")
	p = update(t, p, inplace.Change{Images: map[string]string{"web": "web:v2"}}, "r1")
	p = update(t, p, inplace.Change{Images: map[string]string{"log": "log:v2"}}, "r2")
	statuses(3, "c://w1", "c://l2")
	state, err := inplace.StateOf(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, waiting := done(p, template(), state); waiting != "container web has not restarted with web:v2 yet" {
		t.Errorf("waiting for %q", waiting)
	}
	statuses(3, "c://w2", "c://l2")
	if done, waiting := done(p, template(), state); !done {
		t.Errorf("waiting for %q", waiting)
	}
}

func TestDoneResizing(t *testing.T) {
	t.Parallel()
	from := template()
	onlyWeb(from).Resources = requirements("cpu=1 memory=1Gi", "cpu=1 memory=1Gi")
	to := from.DeepCopy()
	web(to).Resources = requirements("cpu=2 memory=1Gi", "cpu=2 memory=1Gi")
	const before, after = "cpu=1 memory=1Gi", "cpu=2 memory=1Gi"
	tests := map[string]struct {
		image   string
		resized bool
		report  report
		want    string
	}{
		"not asked for yet": {
			report: report{1, "web:v1", "", "c://1", "", before, ""},
			want:   "container web is to be resized",
		},
		"not seen": {
			resized: true, report: report{1, "web:v1", "", "c://1", "", before, ""},
			want: "container web: the kubelet has not seen the change yet",
		},
		"deferred": {
			resized: true, report: report{2, "web:v1", "", "c://1", "", before, "PodResizePending=Deferred"},
			want: "PodResizePending: Deferred: the node is full",
		},
		"in progress": {
			resized: true, report: report{2, "web:v1", "", "c://1", "", before, "PodResizeInProgress="},
			want: "PodResizeInProgress",
		},
		"in progress, with the resources there": {
			resized: true, report: report{2, "web:v1", "", "c://1", "", after, "PodResizeInProgress="},
			want: "PodResizeInProgress",
		},
		"not there": {
			resized: true, report: report{2, "web:v1", "", "c://1", "", before, ""},
			want: "container web does not have its new resources yet",
		},
		"not reported": {
			resized: true, report: report{2, "web:v1", "", "c://1", "", "", ""},
			want: "container web does not have its new resources yet",
		},
		"there": {
			resized: true, report: report{2, "web:v1", "", "c://1", "", after, ""},
		},
		"there, but the image is not": {
			image: "web:v2", resized: true, report: report{3, "web:v1", "", "c://1", "", after, ""},
			want: "container web has not restarted with web:v2 yet",
		},
		"the image is there, the resize not seen": {
			image: "web:v2", resized: true, report: report{2, "web:v2", "", "c://2", "", before, ""},
			want: "container web: the kubelet has not seen the change yet",
		},
		"both are there": {
			image: "web:v2", resized: true, report: report{3, "web:v2", "", "c://2", "", after, ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := to.DeepCopy()
			if tc.image != "" {
				web(to).Image = tc.image
			}
			p := pod(from, "r0")
			report{observed: 1, image: "web:v1", containerID: "c://1", resources: before}.write(p)
			c, cannot := inplace.Diff(from, to)
			if cannot != "" {
				t.Fatal(cannot)
			}
			p = update(t, p, c, "r1")
			if tc.resized {
				p = resize(t, p, to)
			}
			tc.report.write(p)
			state, err := inplace.StateOf(p)
			if err != nil {
				t.Fatal(err)
			}
			isDone, waiting := done(p, to, state)
			if isDone != (tc.want == "") || waiting != tc.want {
				t.Errorf("done is %v, waiting for %q; want %q", isDone, waiting, tc.want)
			}
			if isDone, _ := done(p, nil, inplace.State{Resized: state.Resized}); !isDone {
				t.Error("without a template, there is something to wait for")
			}
		})
	}
}

// A resize is not forgotten when the next revision comes before it was asked for.
func TestResizeIsCarriedOver(t *testing.T) {
	t.Parallel()
	v1 := template()
	v2 := v1.DeepCopy()
	web(v2).Resources = requirements("cpu=1500m memory=1Gi", "cpu=2 memory=2Gi")
	v3 := v2.DeepCopy()
	v3.Spec.Containers[1].Image = "log:v2"
	p := pod(v1, "r1")
	for i, templates := range [][2]*corev1.PodTemplateSpec{{v1, v2}, {v2, v3}} {
		c, cannot := inplace.Diff(templates[0], templates[1])
		if cannot != "" {
			t.Fatal(cannot)
		}
		p = update(t, p, c, fmt.Sprintf("r%d", i+2))
	}
	p = resize(t, p, v3)
	want := pod(v3, "r3")
	if diff := gocmp.Diff(want.Spec, p.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// A forged state names containers that do not exist.
func TestDoneIgnoresUnknownContainers(t *testing.T) {
	t.Parallel()
	s := inplace.State{Containers: map[string]inplace.Container{"none": {}}, Resized: []string{"none"}}
	if done, waiting := done(pod(template(), "r1"), template(), s); !done {
		t.Errorf("waiting for %q", waiting)
	}
	other := template()
	other.Spec.Containers[0].Name = "none" // the template has one of the name, and the pod has not
	if done, waiting := done(pod(template(), "r1"), other, s); !done {
		t.Errorf("waiting for %q of the template", waiting)
	}
}

func TestInfeasible(t *testing.T) {
	t.Parallel()
	larger := template()
	larger.Spec.Containers[0].Resources = requirements("cpu=1 memory=1Gi", "cpu=3 memory=2Gi")
	tests := map[string]struct {
		conditions string
		observed   int64
		to         *corev1.PodTemplateSpec
		want       string
	}{
		"no condition":               {observed: 1, to: template()},
		"deferred":                   {observed: 1, to: template(), conditions: "PodResizePending=Deferred"},
		"infeasible":                 {observed: 1, to: template(), conditions: "PodResizePending=Infeasible", want: "the node is too small"},
		"not asked for this yet":     {observed: 1, to: larger, conditions: "PodResizePending=Infeasible"},
		"the template is lost":       {observed: 1, conditions: "PodResizePending=Infeasible"},
		"an answer to what was then": {observed: 1, to: template(), conditions: "PodResizePending=Infeasible old"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod(template(), "r1")
			conditions, old := strings.CutSuffix(tc.conditions, " old")
			if old {
				p.Generation++
			}
			report{observed: tc.observed, conditions: conditions}.write(p)
			if got := inplace.Infeasible(p, tc.to, inplace.State{Resized: []string{"web"}}); got != tc.want {
				t.Errorf("Infeasible() = %q, want %q", got, tc.want)
			}
		})
	}
}
