// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/podstate"
)

// settle is how long nothing must happen before a state is printed, so that simultaneous changes are one line.
const settle = 60 * time.Millisecond

// screen prints the pods of a set by revision, one line for each state.
type screen struct {
	begin time.Time
	color bool
	pods  map[string]*corev1.Pod
	web   *v1alpha1.RollSet
	// names are the revisions in the order in which they were seen; on the screen they are v1, v2, …
	names []string
	last  string
}

func newScreen() *screen {
	info, err := os.Stdout.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &screen{
		begin: time.Now(), color: terminal && os.Getenv("NO_COLOR") == "",
		pods: map[string]*corev1.Pod{}, web: &v1alpha1.RollSet{},
	}
}

// set returns the set as it was last seen.
func (s *screen) set() *v1alpha1.RollSet { return s.web }

// see handles an event.
func (s *screen) see(event watch.Event) {
	switch object := event.Object.(type) {
	case *v1alpha1.RollSet:
		s.web = object
	case *corev1.Pod:
		if event.Type == watch.Deleted {
			delete(s.pods, object.Name)
			return
		}
		s.pods[object.Name] = object
		if revision := object.Labels[v1alpha1.RevisionLabel]; !slices.Contains(s.names, revision) {
			s.names = append(s.names, revision)
		}
	}
}

// print prints the state unless it was printed last.
func (s *screen) print() {
	var b strings.Builder
	for i, name := range s.names {
		if marks := s.marks(name); marks != "" {
			fmt.Fprintf(&b, "  v%d %s", i+1, marks)
		}
	}
	line := b.String()
	message := ""
	if c := meta.FindStatusCondition(s.web.Status.Conditions, "Progressing"); c != nil {
		message = c.Message
	}
	if line+message == s.last {
		return
	}
	s.last = line + message
	fmt.Printf("%6.1fs %s\n", time.Since(s.begin).Seconds(), line)
	if message != "" {
		fmt.Printf("         %s\n", s.paint("2", message))
	}
}

// marks draws the pods of a revision, each as one character, the oldest first.
func (s *screen) marks(revision string) string {
	pods := slices.SortedFunc(maps.Values(s.pods), func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var b strings.Builder
	for _, pod := range pods {
		if pod.Labels[v1alpha1.RevisionLabel] != revision {
			continue
		}
		_, ready := podstate.ReadySince(pod)
		switch {
		case podstate.Terminating(pod):
			b.WriteString(s.paint("31", "×"))
		case ready:
			b.WriteString(s.paint("32", "●"))
		default:
			b.WriteString(s.paint("33", "○"))
		}
	}
	return b.String()
}

// paint colors a text if the terminal supports it.
func (s *screen) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
