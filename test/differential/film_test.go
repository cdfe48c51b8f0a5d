// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

const (
	appLabel       = "app"
	noteAnnotation = "example.com/note"
	claimName      = "data"
	unscheduled    = "unscheduled"
	holdFinalizer  = "example.com/hold"
)

// member is a pod as a watch shows it.
type member struct {
	name, version string
	serving       bool // ready, and not on its way out
	going         bool
	stays         bool // counts among the replicas that are wished for, serving or not
	// held says what keeps it from changing by itself: its node, a probe, a finalizer, no node to run on.
	held string
}

// frame is a change of what a film shows.
type frame struct {
	at    time.Time
	scene int
	text  string
}

// shot is one scene of a film.
type shot struct {
	low      int      // the fewest pods that served at once
	serving  int      // at the end
	versions []string // of the pods that are not on their way out
	surplus  int      // how many of them are not wished for
	good     int      // how many of the others have a template that works
	untried  int      // how many have a template that has not served
	updated  int      // how many have the template that is wished for
	// terminates says that a pod of another template is still on its way out.
	terminates bool
	claims     []string
	verdict    verdict
	lasted     time.Duration // until the last change
	// settled is false if the set was still changing at the end of all patience.
	settled, whole bool
	// full is whole, whatever else is there.
	full bool
}

// film is one set as the watches show it.
type film struct {
	mu       sync.Mutex
	name     string
	ordinal  bool
	replicas int
	pods     map[string]member
	claims   map[string]bool
	verdict  verdict
	frames   []frame
	shots    []shot
	began    time.Time // the scene
	changed  time.Time
	// gap is the longest time between two changes in one scene.
	gap time.Duration
	// cordoned says that the node takes no new pods.
	cordoned bool
	// standing are the pods without ordinals at the beginning of the scene, in the order in which histories name them.
	standing []string
	// served has the versions that served in some pod.
	served map[string]bool
}

func newFilm(w wish) *film {
	return &film{
		name: w.name, ordinal: w.partner != deployment, replicas: int(w.replicas), pods: map[string]member{}, claims: map[string]bool{},
		served: map[string]bool{},
	}
}

// begin begins a scene.
func (f *film) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began = time.Now()
	f.changed = f.began
	f.shots = append(f.shots, shot{low: f.serving()})
	f.standing = nil
	for _, m := range f.byVersion() {
		f.standing = append(f.standing, m.name)
	}
}

// wishFor notes how many replicas are wanted from now on.
func (f *film) wishFor(replicas int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = int(replicas)
	f.note()
}

// end ends a scene in which a template was wished for.
func (f *film) end(settled bool, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.shots[len(f.shots)-1]
	s.serving, s.settled, s.whole, s.full = f.serving(), settled, f.whole(), f.serving() == f.replicas
	s.lasted = f.changed.Sub(f.began)
	s.verdict = f.verdict
	s.claims = slices.Sorted(maps.Keys(f.claims))
	live := f.live()
	for _, m := range live {
		s.versions = append(s.versions, f.called(m)+m.version)
		if !f.served[m.version] {
			s.untried++
		}
		if m.version == version {
			s.updated++
		}
		switch {
		case !f.isWanted(m):
			s.surplus++
		case !isBad(m.version):
			s.good++
		}
	}
	slices.Sort(s.versions)
	for _, m := range f.pods {
		s.terminates = s.terminates || m.going && m.version != version
	}
}

// called begins a member's text with its ordinal.
func (f *film) called(m member) string {
	if f.ordinal {
		return strings.TrimPrefix(m.name, f.name+"-") + ":"
	}
	return ""
}

// see takes in an object that a watch shows, or shows to be gone.
func (f *film) see(object client.Object, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Pod:
		if o.Labels[appLabel] == f.name && !gone {
			m := memberOf(o)
			f.pods[o.Name] = m
			f.served[m.version] = f.served[m.version] || m.serving
		} else {
			delete(f.pods, o.Name)
		}
	case *corev1.PersistentVolumeClaim:
		if !strings.HasPrefix(o.Name, claimName+"-"+f.name+"-") {
			return
		}
		f.claims[o.Name] = true
		if gone {
			delete(f.claims, o.Name)
		}
	default:
		if o.GetName() == f.name && !gone {
			f.verdict = judge(o)
		}
	}
	f.note()
}

func memberOf(pod *corev1.Pod) member {
	m := member{name: pod.Name, going: pod.DeletionTimestamp != nil}
	app := pod.Spec.Containers[0]
	m.version = versionOf(strings.TrimPrefix(app.Image, "app:"), app.Resources.Requests.Cpu().String(), pod.Annotations[noteAnnotation])
	finished := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	ready := false
	for _, c := range pod.Status.Conditions {
		ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			m.held = unscheduled
		}
	}
	m.stays = !m.going && !finished
	m.serving = ready && m.stays
	switch {
	case pod.Annotations[nodes.SilentAnnotation] != "":
		m.held = "lost"
	case pod.Annotations[withheld] != "":
		m.held = "unready"
	case m.going && slices.Contains(pod.Finalizers, holdFinalizer):
		m.held = "finalizer"
	}
	return m
}

// versionOf names a template.
func versionOf(image, cpu, note string) string { return image + suffix(cpu, "1m") + suffix(note, "a") }

func suffix(value, usual string) string {
	if value == usual || value == "" {
		return ""
	}
	return "+" + value
}

// note adds a frame if what the film shows has changed.
func (f *film) note() {
	text := f.text()
	if n := len(f.frames); n > 0 && f.frames[n-1].text == text {
		return
	}
	now := time.Now()
	if !f.changed.IsZero() {
		f.gap = max(f.gap, min(now.Sub(f.changed), mostOfGap))
	}
	f.changed = now
	f.frames = append(f.frames, frame{at: f.changed, scene: len(f.shots), text: text})
	if n := len(f.shots); n > 0 {
		f.shots[n-1].low = min(f.shots[n-1].low, f.serving())
	}
}

func (f *film) text() string {
	var words []string
	for _, m := range f.sorted() {
		mark := "."
		switch {
		case m.going:
			mark = "x"
		case !m.stays:
			mark = "!"
		case m.serving:
			mark = "+"
		}
		words = append(words, cmp.Or(f.called(m), m.name[strings.LastIndex(m.name, "-")+1:]+":")+m.version+mark)
	}
	return fmt.Sprintf("%s | %d of %d, %s", strings.Join(words, " "), f.serving(), f.replicas, f.verdict)
}

func (f *film) sorted() []member {
	return slices.SortedFunc(maps.Values(f.pods), func(a, b member) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
}

// live are the pods that are not on their way out.
func (f *film) live() []member {
	return slices.DeleteFunc(f.sorted(), func(m member) bool { return !m.stays })
}

// isWanted reports whether a pod may be one of those that are wished for: with ordinals, the first ones are.
func (f *film) isWanted(m member) bool {
	if !f.ordinal {
		return true
	}
	return number(strings.TrimPrefix(m.name, f.name+"-")) < int32(f.replicas)
}

// serving counts the pods that stay and serve: no more than are wished for.
func (f *film) serving() int {
	n := 0
	for _, m := range f.pods {
		if m.serving && f.isWanted(m) {
			n++
		}
	}
	return min(n, f.replicas)
}

// whole reports whether all that are wished for serve, and nothing else is there.
func (f *film) whole() bool { return f.serving() == f.replicas && len(f.pods) == f.replicas }

// moves reports whether a pod is on its way to somewhere: nothing holds it, and it is not broken.
func (f *film) moves() bool {
	for _, m := range f.pods {
		held := m.held != "" && (m.held != unscheduled || f.cordoned)
		if !held && (m.going || m.stays && !m.serving && !isBad(m.version)) {
			return true
		}
	}
	return false
}

// place returns the name of the pod with an ordinal, or of the n-th pod at the beginning of the scene; if that is on its way out, of the
// n-th pod now. It returns an empty name if there is none.
func (f *film) place(n int32) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	live := f.byVersion()
	isLive := func(name string) bool {
		return slices.ContainsFunc(live, func(m member) bool { return m.name == name })
	}
	switch {
	case f.ordinal:
		if name := fmt.Sprintf("%s-%d", f.name, n); isLive(name) {
			return name
		}
	case len(f.standing) > 0 && isLive(f.standing[int(n)%len(f.standing)]):
		return f.standing[int(n)%len(f.standing)]
	case len(live) > 0:
		return live[int(n)%len(live)].name
	}
	return ""
}

// byVersion are the live pods in an order that both films of a pair have.
func (f *film) byVersion() []member {
	live := f.live()
	slices.SortStableFunc(live, func(a, b member) int { return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.held, b.held)) })
	return live
}
