// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"rollset.dev/rollset/internal/cli/session"
)

func logPod(name string, containers ...string) *corev1.Pod {
	pod := testPod(name, "web-a", 0)
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c})
	}
	return pod
}

// TestLogsAreMerged merges by time, and continues if one container cannot be read.
func TestLogsAreMerged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	texts := map[string]string{
		"web-0": "2026-01-02T03:04:05.5Z first\n2026-01-02T03:04:07Z third\n",
		"web-1": "2026-01-02T03:04:05.55Z second\n2026-01-02T03:04:08Z last, without an end",
	}
	l := &logs{
		session:    session.New(genericiooptions.IOStreams{Out: &out}, clocktesting.NewFakeClock(now)),
		maxStreams: 1, tail: -1,
		open: func(_ context.Context, pod *corev1.Pod, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
			text, ok := texts[pod.Name]
			if !ok {
				return nil, errors.New("gone")
			}
			return io.NopCloser(strings.NewReader(text)), nil
		},
	}
	streams, err := l.streams([]*corev1.Pod{logPod("web-1", "app"), logPod("web-0", "app", "sidecar"), logPod("web-2", "app")}, "web-a")
	if err != nil {
		t.Fatal(err)
	}
	err = l.mergeAll(t.Context(), streams)
	if err == nil || err.Error() != "read the log of pod web-2, container app: gone" {
		t.Errorf("the error is %v", err)
	}
	want := "[web-0 app] first\n[web-1 app] second\n[web-0 app] third\n[web-1 app] last, without an end\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWhichContainers(t *testing.T) {
	t.Parallel()
	annotated := logPod("web-1", "app", "sidecar")
	annotated.Annotations = map[string]string{defaultContainer: "sidecar"}
	pods := []*corev1.Pod{logPod("web-0", "app", "sidecar"), annotated}
	for name, test := range map[string]struct {
		container string
		all       bool
		revision  string
		want      []string
		wantErr   string
	}{
		"the first or the default": {want: []string{"[web-0 app] ", "[web-1 sidecar] "}},
		"one by name":              {container: "sidecar", want: []string{"[web-0 sidecar] ", "[web-1 sidecar] "}},
		"all":                      {all: true, want: []string{"[web-0 app] ", "[web-0 sidecar] ", "[web-1 app] ", "[web-1 sidecar] "}},
		"another revision":         {revision: "web-b"},
		"none of that name":        {container: "x", wantErr: `pod web-0 has no container "x"; it has app, sidecar`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, err := (&logs{container: test.container, allOf: test.all}).streams(pods, test.revision)
			if test.wantErr != "" {
				if err == nil || err.Error() != test.wantErr {
					t.Errorf("want the error %q, got %v", test.wantErr, err)
				}
				return
			}
			var got []string
			for _, s := range streams {
				got = append(got, s.prefix())
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}
