// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
)

// changed returns a pod whose container web ran one image and is to run another. If it overlaps, an earlier update of it was
// not done, so that only a name or a sighting can prove this one.
func changed(t testing.TB, before, after report, image, overlaps string) (*corev1.Pod, inplace.State) {
	t.Helper()
	p := pod(template(), "r0")
	before.write(p)
	if overlaps != "" {
		p = update(t, p, inplace.Change{Images: map[string]string{"web": overlaps}}, "r1")
	}
	p = update(t, p, inplace.Change{Images: map[string]string{"web": image}}, "r2")
	after.write(p)
	s, err := inplace.StateOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

// TestNames checks which image names prove that a container runs the image of the spec, where nothing else does.
func TestNames(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("ab", 32)
	long := "web:" + strings.Repeat("v", 4096)
	for name, tc := range map[string]struct {
		image, reported, imageID string
		want                     bool
	}{
		"as written":                        {"r.example.com/a/web:v2", "r.example.com/a/web:v2", "", true},
		"of Docker Hub":                     {"web:v2", "docker.io/library/web:v2", "", true},
		"of a user there":                   {"me/web:v2", "docker.io/me/web:v2", "", true},
		"by its old host":                   {"index.docker.io/library/web:v2", "docker.io/library/web:v2", "", true},
		"without a tag":                     {"web", "docker.io/library/web:latest", "", true},
		"a port and a tag":                  {"localhost:5999/web:v2", "localhost:5999/web:v2", "", true},
		"a port and no tag":                 {"localhost:5999/web", "localhost:5999/web:latest", "", true},
		"a host in capitals":                {"REG.example.com/web:v2", "REG.example.com/web:v2", "", true},
		"pinned":                            {"web@" + digest, "docker.io/library/web:v7", "docker.io/library/web@" + digest, true},
		"tagged and pinned":                 {"web:v2@" + digest, "docker.io/library/web@" + digest, "docker.io/library/web@" + digest, true},
		"pinned, with a bare id":            {"web@" + digest, digest, digest, true},
		"another tag":                       {"web:v2", "docker.io/library/web:v1", "", false},
		"another tag of the same beginning": {"web:v2", "docker.io/library/web:v22", "", false},
		"another host":                      {"web:v2", "mirror.example.com/library/web:v2", "", false},
		"a bare id":                         {"web:v2", digest, digest, false},
		"pinned to another digest":          {"web@" + digest, "docker.io/library/web@" + digest, "docker.io/library/web@sha256:" + strings.Repeat("cd", 32), false},
		"pinned, and no imageID":            {"web@" + digest, "docker.io/library/web@" + digest, "", false},
		"a digest that is none":             {"web@sha256:ab", "docker.io/library/web:v2", "docker.io/library/web@sha256:ab", false},
		"not a name":                        {"Web:v2", "Web:v2", "", false},
		"an empty tag":                      {"web:", "web:", "", false},
		"blanks":                            {"a b", "a b", "", false},
		"a tag of 4 kB":                     {long, "docker.io/library/" + long, "", false},
		"nothing reported":                  {"web:v2", "", "", false},
		"nonsense reported":                 {"web:v2", "\x00<nil>", "\xff", false},
	} {
		p, s := changed(t,
			report{observed: 1, image: "docker.io/library/web:v1", imageID: "web@sha256:1", containerID: "c://1"},
			report{3, tc.reported, tc.imageID, "c://2", "", "", ""}, tc.image, "web:missing")
		progress := inplace.Of(p, nil, s, inplace.Sighting{})
		if got := progress.Restart == ""; got != tc.want {
			t.Errorf("%s: done is %v, waiting for %q", name, got, progress.Restart)
		}
		if !tc.want && (!strings.Contains(progress.Restart, "container web") || len(progress.Restart) > 1024) {
			t.Errorf("%s: waits for %q", name, progress.Restart)
		}
	}
}

// TestEvidence covers updates that were made after the previous one was done.
func TestEvidence(t *testing.T) {
	t.Parallel()
	v1 := report{observed: 1, image: "docker.io/library/web:v1", imageID: "web@sha256:1", containerID: "c://1"}
	for name, tc := range map[string]struct {
		image  string
		after  report
		want   bool
		passes bool
	}{
		"another image":                          {"web:v2", report{2, "x", "web@sha256:2", "c://2", "", "", ""}, true, false},
		"a crash, and back from the old image":   {"web:v2", report{2, "docker.io/library/web:v1", "web@sha256:1", "c://2", "", "", ""}, false, false},
		"the same content under the new name":    {"web:v2", report{2, "docker.io/library/web:v2", "web@sha256:1", "c://2", "", "", ""}, true, true},
		"the same content under the old name":    {"web:v1-again", report{2, "docker.io/library/web:v1", "web@sha256:1", "c://2", "", "", ""}, false, false},
		"the same name, written in full":         {"docker.io/library/web:v1", report{2, "docker.io/library/web:v1", "web@sha256:1", "c://2", "", "", ""}, false, false},
		"imageID is gone":                        {"web:v2", report{2, "x", "", "c://2", "", "", ""}, false, false},
		"containerID is gone":                    {"web:v2", report{2, "docker.io/library/web:v2", "web@sha256:2", "", "", "", ""}, false, false},
		"the same containerID and another image": {"web:v2", report{2, "docker.io/library/web:v2", "web@sha256:2", "c://1", "", "", ""}, false, false},
		"the kubelet has not seen it":            {"web:v2", report{1, "docker.io/library/web:v2", "web@sha256:2", "c://2", "", "", ""}, false, false},
		"a kubelet of the future has":            {"web:v2", report{1 << 40, "docker.io/library/web:v2", "web@sha256:2", "c://2", "", "", ""}, true, false},
	} {
		p, s := changed(t, v1, tc.after, tc.image, "")
		progress := inplace.Of(p, nil, s, inplace.Sighting{})
		if got := progress.Restart == ""; got != tc.want || progress.Passing != tc.passes {
			t.Errorf("%s: done is %v, passing %v, waiting for %q", name, got, progress.Passing, progress.Restart)
		}
	}
	p, s := changed(t, v1, report{observed: 2}, "web:v2", "")
	p.Status = corev1.PodStatus{}
	if progress := inplace.Of(p, nil, s, inplace.Sighting{}); progress.Restart == "" {
		t.Error("no status at all: done")
	}
	p.Status.ObservedGeneration = 2
	if progress := inplace.Of(p, nil, s, inplace.Sighting{}); progress.Restart != "container web has not started" {
		t.Errorf("no statuses of containers: waits for %q", progress.Restart)
	}
}

// TestSighting checks that a sighting of a pod proves an update where names do not.
func TestSighting(t *testing.T) {
	t.Parallel()
	const alias = "docker.io/library/web:v1"
	before := report{observed: 1, image: alias, imageID: "web@sha256:1", containerID: "c://1"}
	last := report{2, alias, "web@sha256:1", "c://2", "", "", ""}
	for name, tc := range map[string]struct {
		seen []report
		want bool
	}{
		"nothing":                              {nil, false},
		"only the last":                        {[]report{last}, false},
		"the container before, too early":      {[]report{before, last}, false},
		"the container before":                 {[]report{{2, alias, "web@sha256:1", "c://1", "", "", ""}, last}, true},
		"none":                                 {[]report{{2, alias, "web@sha256:1", "", "ContainerCreating", "", ""}, last}, true},
		"one between":                          {[]report{{2, alias, "web@sha256:1", "c://9", "", "", ""}, last}, true},
		"a kubelet that reports no generation": {[]report{{0, alias, "web@sha256:1", "c://1", "", "", ""}, last}, false},
		"the first that was seen counts":       {[]report{{2, alias, "web@sha256:1", "c://1", "", "", ""}, last, last}, true},
	} {
		p, s := changed(t, before, before, "web:v1-again", "")
		seen := inplace.Sighting{}
		for _, r := range tc.seen {
			r.write(p)
			seen = seen.See(p)
		}
		last.write(p)
		if got := inplace.Of(p, nil, s, seen); (got.Restart == "") != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
		delete(p.Annotations, inplace.StateAnnotation)
		if !seen.See(p).Empty() {
			t.Errorf("%s: kept when there is nothing to wait for", name)
		}
	}
}

// TestSightingOfEarlier checks that a sighting of one update proves nothing about the next.
func TestSightingOfEarlier(t *testing.T) {
	t.Parallel()
	p, _ := changed(t,
		report{observed: 1, image: "x", imageID: "web@sha256:1", containerID: "c://1"},
		report{2, "x", "web@sha256:1", "c://1", "", "", ""}, "web:v2", "")
	seen := inplace.Sighting{}.See(p)
	p = update(t, p, inplace.Change{Images: map[string]string{"web": "web:v3"}}, "r3")
	report{3, "x", "web@sha256:2", "c://2", "", "", ""}.write(p)
	s, err := inplace.StateOf(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, seen := range map[string]inplace.Sighting{"now": seen.See(p), "before": seen} {
		if got := inplace.Of(p, nil, s, seen); got.Restart == "" {
			t.Errorf("seen %s: the container of v2 counts as that of v3", name)
		}
	}
}

// TestSightingOfAnother checks that a sighting of one container proves nothing about another, whose state has no generation.
func TestSightingOfAnother(t *testing.T) {
	t.Parallel()
	before := report{observed: 1, image: "x", imageID: "web@sha256:1", containerID: "c://1"}
	p, s := changed(t, before, before, "web:v2", "")
	web := s.Containers["web"]
	s.Generation, web.Generation = 0, 0
	s.Containers = map[string]inplace.Container{"web": web, "another": {Generation: 1}}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p.Annotations[inplace.StateAnnotation] = string(raw)
	seen := inplace.Sighting{}.See(p)
	report{2, "x", "web@sha256:1", "c://2", "", "", ""}.write(p)
	if got := inplace.Of(p, nil, s, seen); seen.Empty() || got.Restart == "" {
		t.Errorf("%+v: %+v", seen, got)
	}
}

// TestUnseenChangeOfAnother checks that other content proves nothing if another client changed the pod before, and the kubelet had not
// seen that.
func TestUnseenChangeOfAnother(t *testing.T) {
	t.Parallel()
	for observed, want := range map[int64]bool{1: false, 2: true} {
		p := pod(template(), "r0")
		report{observed: observed, image: "x", imageID: "web@sha256:1", containerID: "c://1"}.write(p)
		p.Generation = 2
		p = update(t, p, inplace.Change{Images: map[string]string{"web": "web:v2"}}, "r2")
		report{p.Generation, "x", "web@sha256:2", "c://2", "", "", ""}.write(p)
		s, err := inplace.StateOf(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := inplace.Of(p, nil, s, inplace.Sighting{}); (got.Restart == "") != want {
			t.Errorf("observed %d: %+v", observed, got)
		}
	}
}

// TestGateRemembers checks that an update that was found to be done stays done, whatever the node reports later.
func TestGateRemembers(t *testing.T) {
	t.Parallel()
	p, s := changed(t,
		report{observed: 1, image: "x", imageID: "web@sha256:1", containerID: "c://1"},
		report{2, "x", "web@sha256:1", "c://2", "", "", ""}, "web:v2", "")
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}}
	condition := corev1.PodCondition{Type: v1beta1.InPlaceUpdateReady, Status: corev1.ConditionTrue}
	for observed, want := range map[int64]bool{0: false, 1: false, 2: true, 3: true} {
		condition.ObservedGeneration = observed
		p.Status.Conditions = []corev1.PodCondition{condition}
		if got := inplace.Of(p, nil, s, inplace.Sighting{}); (got.Restart == "") != want || got.Passing {
			t.Errorf("gate opened at generation %d of 2: %+v", observed, got)
		}
	}
}

// FuzzEvidence looks for reports that crash, or that are wrongly taken as proof.
func FuzzEvidence(f *testing.F) {
	f.Add("web:v2", "docker.io/library/web:v2", "web@sha256:2", "c://2", int64(2), false)
	f.Add("web", "sha256:"+strings.Repeat("0", 64), "sha256:"+strings.Repeat("0", 64), "", int64(-1), true)
	f.Add("host:5000/web", "host:5000/web:latest", "", "c://2", int64(3), true)
	f.Add("web@sha256:"+strings.Repeat("a", 64), "", "@sha256:"+strings.Repeat("a", 64), "c://1", int64(1<<62), true)
	f.Add("WEB.example.com/Web:", "\x00", "@", "://", int64(0), false)
	f.Fuzz(func(t *testing.T, image, reported, imageID, containerID string, observed int64, overlap bool) {
		if image == "" || image == "web:v1" {
			t.Skip("the API server refuses it, or nothing changes")
		}
		overlaps := ""
		if overlap && image != "web:other" {
			overlaps = "web:other"
		}
		p, s := changed(t,
			report{observed: 1, image: "docker.io/library/web:v1", imageID: "web@sha256:1", containerID: "c://1"},
			report{observed, reported, imageID, containerID, "", "", ""}, image, overlaps)
		got := inplace.Of(p, nil, s, inplace.Sighting{}.See(p))
		if got.Restart != "" {
			if !strings.Contains(got.Restart, "container web") || len(got.Restart) > 4<<10 {
				t.Fatalf("waits for %q", got.Restart)
			}
			return
		}
		silent := observed == 0
		named, err := reference.ParseDockerRef(image)
		shown := err == nil && (named.String() == reported || strings.Contains(named.String(), "@") && strings.Contains(imageID, "sha256:"))
		if second, err2 := reference.ParseDockerRef(reported); err == nil && err2 == nil {
			shown = shown || second.String() == named.String()
		}
		switch {
		case containerID == "" || containerID == "c://1", !silent && observed < p.Generation,
			!shown && (overlaps != "" || imageID == "" || imageID == "web@sha256:1"):
			t.Fatalf("done without proof: image %q, reported %q %q %q at %d", image, reported, imageID, containerID, observed)
		}
	})
}
