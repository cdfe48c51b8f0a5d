// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/inplace"
)

func TestStateOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value     string
		want      inplace.State
		wantError string
	}{
		"as written": {
			value: `{"revision":"v2","generation":3,"containers":{"a":{"id":"c://1","image":7,"alike":true}},"resized":["b"]}`,
			want: inplace.State{
				Revision: "v2", Generation: 3, Resized: []string{"b"},
				Containers: map[string]inplace.Container{"a": {ID: "c://1", Image: 7, Alike: true}},
			},
		},
		"nothing to wait for":   {value: `{"revision":"v2","generation":0}`, want: inplace.State{Revision: "v2"}},
		"another revision":      {value: `{"revision":"v1","generation":3}`, wantError: "not of this revision"},
		"a generation to come":  {value: `{"revision":"v2","generation":4}`, wantError: "of a generation to come"},
		"empty":                 {value: ``, wantError: "not a state"},
		"null":                  {value: `null`, wantError: "not as the controller writes it"},
		"a list":                {value: `[]`, wantError: "not a state"},
		"cut short":             {value: `{"revision":"v2","generation":3`, wantError: "not a state"},
		"something behind":      {value: `{"revision":"v2","generation":3}{}`, wantError: "not a state"},
		"white space":           {value: `{"revision":"v2", "generation":3}`, wantError: "not as the controller writes it"},
		"an unknown key":        {value: `{"revision":"v2","generation":3,"images":{"a":"evil"}}`, wantError: "not as the controller writes it"},
		"an unknown deeper key": {value: `{"revision":"v2","generation":3,"containers":{"a":{"name":"evil"}}}`, wantError: "not as the controller writes it"},
		"a key twice":           {value: `{"revision":"v1","revision":"v2","generation":3}`, wantError: "not as the controller writes it"},
		"a key in other letters": {
			value: `{"Revision":"v2","generation":3}`, wantError: "not as the controller writes it",
		},
		"a number that is none": {value: `{"revision":"v2","generation":"3"}`, wantError: "not a state"},
		"a huge number":         {value: `{"revision":"v2","generation":99999999999999999999}`, wantError: "not a state"},
		"a fraction":            {value: `{"revision":"v2","generation":3.0}`, wantError: "not a state"},
		"too long": {
			value:     `{"revision":"v2","generation":3,"resized":["` + strings.Repeat("x", 16<<10) + `"]}`,
			wantError: "longer than 16 KiB",
		},
		"very deep": {value: strings.Repeat("[", 16<<10), wantError: "not a state"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Generation:  3,
				Labels:      map[string]string{"controller-revision-hash": "v2"},
				Annotations: map[string]string{inplace.StateAnnotation: tc.value},
			}}
			wantError := tc.wantError
			if wantError != "" {
				wantError = "annotation apps.rollset.dev/in-place-update: " + wantError
			}
			got, err := inplace.StateOf(p)
			if text := errorText(err); text != wantError {
				t.Errorf("error is %q, want %q", text, wantError)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			if empty := len(tc.want.Containers)+len(tc.want.Resized) == 0; got.Empty() != empty {
				t.Errorf("Empty() = %v", got.Empty())
			}
		})
	}
	if s, err := inplace.StateOf(&corev1.Pod{}); err != nil || !s.Empty() {
		t.Errorf("state of a pod without annotation: %v, %v", s, err)
	}
}

// FuzzParseState looks for values that crash, that are accepted although this package does not write them, or that get
// content of the annotation into a write.
func FuzzParseState(f *testing.F) {
	f.Add(`{"revision":"v1","generation":1,"containers":{"web":{"id":"c://1","image":7,"alike":true},"log":{}},"resized":["web"]}`)
	f.Add(`{"revision":"v1","generation":-1,"resized":["","foreign"]}`)
	f.Add(`{"revision":"v1","generation":1,"generation":2}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, value string) {
		s, err := inplace.ParseState(value)
		if err == nil {
			if written, err := json.Marshal(s); err != nil || string(written) != value {
				t.Fatalf("accepted %q, which would be written %q (%v)", value, written, err)
			}
		}
		p := pod(template(), "v1")
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "c://2"}}
		clean, _ := patchOf(t, p)
		p.Annotations[inplace.StateAnnotation] = value
		done(p, template(), s)
		patch, state := patchOf(t, p)
		if diff := cmp.Diff(clean, patch); diff != "" {
			t.Fatalf("the annotation changes the patch (-without +with):\n%s", diff)
		}
		known := []string{"prepare", "proxy", "web", "log"}
		for name, container := range state.Containers {
			if id := container.ID; !slices.Contains(known, name) || id != "" && id != "c://2" {
				t.Fatalf("the next state has container %q with ID %q", name, id)
			}
		}
		for _, name := range state.Resized {
			if !slices.Contains(known, name) {
				t.Fatalf("the next state has container %q", name)
			}
		}
	})
}

// patchOf returns the patch for a new image, and separately the state that it writes.
func patchOf(t *testing.T, p *corev1.Pod) (patch map[string]any, state inplace.State) {
	t.Helper()
	change := inplace.Change{Images: map[string]string{"web": "web:v2"}}
	written, err := inplace.Patch(p, change, "v2")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(written, &patch); err != nil {
		t.Fatal(err)
	}
	metadata, _ := patch["metadata"].(map[string]any)
	delete(metadata, "annotations") // the state is the only annotation
	if state, err = inplace.StateOf(patched(t, p, written)); err != nil {
		t.Fatalf("the state in %s cannot be read: %v", written, err)
	}
	return patch, state
}

// TestBackToTheImageBefore reverts an update in place before the container has restarted. The container ran the image before the update,
// so the state does not note that it seems to.
func TestBackToTheImageBefore(t *testing.T) {
	t.Parallel()
	p := pod(template(), "r1")
	report{observed: 1, image: "docker.io/library/web:v1", imageID: "sha256:1", containerID: "containerd://1"}.write(p)
	p = update(t, p, inplace.Change{Images: map[string]string{"web": "web:v2"}}, "r2")
	p = update(t, p, inplace.Change{Images: map[string]string{"web": "web:v1"}}, "r1")
	if s, err := inplace.StateOf(p); err != nil || s.Containers["web"].Alike || s.Containers["web"].ID == "" {
		t.Errorf("state %+v, %v; want the container before the update, not Alike", s.Containers, err)
	}
}

func TestStateInWords(t *testing.T) {
	t.Parallel()
	s := inplace.State{Containers: map[string]inplace.Container{"web": {}}, Resized: []string{"log"}}
	if got, want := s.String(), "images of web; resources of log"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
