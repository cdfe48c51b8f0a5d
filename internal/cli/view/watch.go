// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/progress"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
)

const (
	// redraw is the time between two frames. Faster changes share one, so that a large rollout costs no more than a small
	// one.
	redraw = 250 * time.Millisecond
	// barWidth is the width of the progress bar, where there is room for it.
	barWidth = 40
)

// live is a set that is watched.
type live struct {
	*follower

	set    *v1beta1.RollSet
	stores struct{ sets, pods, revisions, claims toolscache.Store }
}

// watchSet shows a set until its user quits.
func (g *get) watchSet(ctx context.Context, c client.WithWatch, key client.ObjectKey) error {
	set, err := getSet(ctx, c, key)
	if err != nil {
		return err
	}
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &live{follower: newFollower(c, g.session.Clock), set: set}
	if err := l.start(following, c); err != nil {
		return err
	}
	if g.isTerminal() {
		return g.watchOnScreen(ctx, l)
	}
	return g.watchAsLines(ctx, l)
}

// start starts to watch what belongs to the set.
func (l *live) start(ctx context.Context, c client.Reader) (err error) {
	selector, err := metav1.LabelSelectorAsSelector(l.set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	in := client.ListOptions{Namespace: l.set.Namespace}
	named, selected, labeled := in, in, in
	named.FieldSelector = fields.OneTermEqualSelector("metadata.name", l.set.Name)
	selected.LabelSelector = selector
	labeled.LabelSelector = labels.SelectorFromSet(labels.Set{v1beta1.SetLabel: l.set.Name})
	if l.stores.sets, err = l.follow(ctx, &v1beta1.RollSet{}, &v1beta1.RollSetList{}, named); err != nil {
		return err
	}
	if l.stores.pods, err = l.follow(ctx, &corev1.Pod{}, &corev1.PodList{}, selected); err != nil {
		return err
	}
	if l.stores.revisions, err = l.follow(ctx, &appsv1.ControllerRevision{}, &appsv1.ControllerRevisionList{}, in); err != nil {
		return err
	}
	// Most sets have no claims, and some users may not see them.
	maySee := c.List(ctx, &corev1.PersistentVolumeClaimList{}, &labeled) == nil
	if len(l.set.Spec.VolumeClaimTemplates) == 0 || !maySee {
		return nil
	}
	l.stores.claims, err = l.follow(ctx, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, labeled)
	return err
}

// objects returns the newest copies of what belongs to the set.
func (l *live) objects() (o objects, err error) {
	if o.set, err = stored(l.stores.sets.List(), l.set); err != nil {
		return o, err
	}
	o.pods = ownedBy(l.set, among[*corev1.Pod](l.stores.pods))
	o.revisions = ownedBy(l.set, among[*appsv1.ControllerRevision](l.stores.revisions))
	sortRevisions(o.revisions)
	if l.stores.claims != nil {
		o.claims = among[*corev1.PersistentVolumeClaim](l.stores.claims)
	}
	return o, nil
}

// among returns the objects of a store.
func among[T any](store toolscache.Store) []T {
	var found []T
	for _, object := range store.List() {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// isTerminal reports whether the output can be redrawn.
func (g *get) isTerminal() bool {
	return os.Getenv("TERM") != "dumb" && (term.TTY{Out: g.session.Raw}).IsTerminalOut() && (term.TTY{In: g.session.In}).IsTerminalIn()
}

// watchAsLines prints a line for each change of the set's message and of a pod's state.
func (g *get) watchAsLines(ctx context.Context, l *live) error {
	ticker := g.session.Clock.NewTicker(redraw)
	defer ticker.Stop()
	told := map[string]string{}
	for {
		o, err := l.objects()
		if err != nil {
			return err
		}
		now := g.session.Clock.Now()
		for _, line := range changes(told, grow(o, now)) {
			if _, err := fmt.Fprintln(g.session.Out, now.Format(time.TimeOnly), line); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C():
		case err := <-l.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changes returns what differs from what was printed, and records that it is printed now.
func changes(told map[string]string, t *tree) []string {
	now := map[string]string{"rollset/" + t.set.Name: t.reason + ": " + podstate.Printable(t.message, textLimit)}
	for i := range t.branches {
		b := &t.branches[i]
		for j := range b.leaves {
			l := &b.leaves[j]
			text := fmt.Sprintf("revision %d %s: %s", b.number, b.name, l.state)
			if l.why != "" {
				text += ": " + podstate.Printable(l.why, textLimit)
			}
			now["pod/"+l.pod.Name] = text
		}
	}
	var lines []string
	for name, text := range now {
		if told[name] != text {
			lines = append(lines, name+" "+text)
		}
		told[name] = text
	}
	for name := range told {
		if _, ok := now[name]; !ok {
			lines = append(lines, name+" gone")
			delete(told, name)
		}
	}
	slices.SortFunc(lines, func(a, b string) int { // the set after its pods: it sums them up
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return lines
}

func rank(line string) int {
	if strings.HasPrefix(line, "rollset/") {
		return 1
	}
	return 0
}

// screen is the set as a terminal shows it.
type screen struct {
	live          *live
	get           *get
	tree          *tree
	bar           progress.Model
	width, height int
	err           error
}

// tick asks for the next frame.
type tick struct{}

func (g *get) watchOnScreen(ctx context.Context, l *live) error {
	model := &screen{live: l, get: g, bar: progress.New(progress.WithDefaultBlend(), progress.WithWidth(barWidth))}
	model.look()
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(g.session.In), tea.WithOutput(g.session.Raw), tea.WithFPS(int(time.Second / redraw))}
	if g.noColor {
		options = append(options, tea.WithColorProfile(colorprofile.NoTTY))
	}
	if _, err := tea.NewProgram(model, options...).Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("draw on the terminal: %w", err)
	}
	if model.tree != nil { // the screen of the program is gone; the last picture stays
		if err := g.write(model.picture()); err != nil {
			return err
		}
	}
	return cmp.Or(model.err, ctx.Err())
}

// Init asks for the first frame.
func (m *screen) Init() tea.Cmd { return m.wait }

// wait waits for the next frame.
func (m *screen) wait() tea.Msg {
	<-m.get.session.Clock.After(redraw)
	return tick{}
}

// Update handles an event.
func (m *screen) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tea.KeyPressMsg:
		switch message.String() {
		case "q", "esc":
			return m, tea.Quit
		case "ctrl+c":
			m.err = context.Canceled
			return m, tea.Quit
		}
	case tick:
		m.look()
		if m.err != nil {
			return m, tea.Quit
		}
		return m, m.wait
	}
	return m, nil
}

// look reads the set again if it changed or time may have changed it.
func (m *screen) look() {
	select {
	case m.err = <-m.live.failed:
		return
	case <-m.live.changed:
	default:
		if m.tree != nil && m.get.session.Clock.Now().Sub(m.tree.now) < time.Second {
			return
		}
	}
	o, err := m.live.objects()
	if err != nil {
		m.err = err
		return
	}
	m.tree = grow(o, m.get.session.Clock.Now())
}

// View draws the set, on a screen of its own: what is higher than the terminal would leave its upper lines in the way of the
// next picture. The first picture waits for the size of the terminal.
func (m *screen) View() tea.View {
	if m.tree == nil || m.height == 0 {
		return tea.NewView("")
	}
	view := tea.NewView(strings.Join(m.picture(), "\n"))
	view.AltScreen = true
	return view
}

// picture returns the lines that the terminal has room for.
func (m *screen) picture() []string {
	lines := m.tree.lines(max(0, m.height-2), m.width)
	bar := m.bar
	if m.width > 0 {
		bar.SetWidth(min(barWidth, m.width))
	}
	picture := slices.Concat(lines[:2], []string{bar.ViewAs(m.tree.progress())}, lines[2:])
	if m.height > 0 && len(picture) > m.height-1 {
		picture = picture[:max(1, m.height-1)]
	}
	return picture
}
