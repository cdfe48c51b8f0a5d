// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// TestPage compares the sentences with the list on the page.
func TestPage(t *testing.T) {
	t.Parallel()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "docs", "comparison.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- sentences -->\n"
	head, list, found := strings.Cut(string(page), mark)
	var want strings.Builder
	for _, s := range sentences() {
		want.WriteString("\n- " + strings.ReplaceAll(wrap(s.says), "\n", "\n  "))
	}
	want.WriteString("\n")
	switch {
	case !found:
		t.Fatalf("%s has no %s", path, mark)
	case *update:
		if err := os.WriteFile(path, []byte(head+mark+want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	case list != want.String():
		t.Errorf("run this test with -update (-want +got):\n%s", cmp.Diff(want.String(), list))
	}
}

// wrap breaks a sentence into lines of at most 120 characters.
func wrap(text string) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case n == 0:
		case n+1+len(word) > 120:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}

// filmed returns a pair whose scenes both films show as given.
func filmed(partner string, ours, theirs []shot) *pair {
	p := &pair{history: history{partner: partner, scenes: make([][]string, len(ours)-2)}}
	for range ours {
		p.wishes = append(p.wishes, newWish(partner, "web").edited("replicas 3", "image v2"))
	}
	p.ours, p.theirs = &side{film: &film{shots: ours}}, &side{film: &film{shots: theirs}}
	return p
}

// TestJudge judges films of a middle scene, each worse than that of the other kind in one point.
func TestJudge(t *testing.T) {
	t.Parallel()
	good := shot{
		low: 2, serving: 3, good: 3, versions: []string{"v2", "v2", "v2"}, claims: []string{"data-web-0"}, settled: true, whole: true, full: true,
		verdict: verdict{done: true, available: "True"}, lasted: time.Second,
	}
	for name, c := range map[string]struct {
		spoil func(*shot)
		want  []string
	}{
		"nothing":                         {func(*shot) {}, nil},
		"fewer pods serve meanwhile":      {func(s *shot) { s.low = 1 }, []string{lowest}},
		"fewer pods serve in the end":     {func(s *shot) { s.serving = 2 }, []string{resting}},
		"a pod has an older template":     {func(s *shot) { s.versions = []string{"v1", "v2", "v2"} }, []string{versions}},
		"a surplus pod stays":             {func(s *shot) { s.surplus = 1 }, []string{surplus}},
		"a claim is gone":                 {func(s *shot) { s.claims = nil }, []string{claims}},
		"it does not say that it is done": {func(s *shot) { s.verdict.done = false }, []string{rollout}},
		"it says that it is done too soon": {
			func(s *shot) { s.full, s.serving = false, 2 }, []string{resting, truth},
		},
		"it does not say that it is available": {func(s *shot) { s.verdict.available = "False" }, []string{available}},
		"it does not come to rest":             {func(s *shot) { s.settled = false }, []string{rest}},
		"it takes much longer":                 {func(s *shot) { s.lasted = time.Minute }, []string{duration}},
	} {
		worse := good
		c.spoil(&worse)
		var got []string
		for _, d := range unexplained(filmed(deployment, []shot{good, worse, good}, []shot{good, good, good})) {
			got = append(got, d.point)
		}
		if !cmp.Equal(c.want, got) {
			t.Errorf("%s: (-want +got)\n%s", name, cmp.Diff(c.want, got))
		}
	}
	lost := good
	lost.whole = false
	if all := unexplained(filmed(deployment, []shot{good, lost}, []shot{good, lost})); len(all) != 1 || all[0].point != recovery {
		t.Errorf("a set that is not whole in the end, with another that is not: %v", all)
	}
}

// TestCommon finds the differences that are there again: in the same point of the same scene.
func TestCommon(t *testing.T) {
	t.Parallel()
	first := []difference{{scene: 1, point: lowest, ours: "0"}, {scene: 2, point: claims}}
	again := []difference{{scene: 1, point: lowest, ours: "1"}, {scene: 1, point: claims}, {scene: 2, point: lowest}}
	if got := common(first, again); len(got) != 1 || got[0].scene != 1 || got[0].point != lowest {
		t.Errorf("there again: %v", got)
	}
}

// TestPlace names pods without ordinals as they stood at the beginning of a scene, for as long as they stay.
func TestPlace(t *testing.T) {
	t.Parallel()
	f := newFilm(newWish(deployment, "web"))
	for _, m := range []member{{name: "web-a", version: "v1", stays: true}, {name: "web-b", version: "v2", stays: true}} {
		f.pods[m.name] = m
	}
	f.begin()
	f.pods["web-0"] = member{name: "web-0", version: "v1", stays: true}
	if got := f.place(1); got != "web-b" {
		t.Errorf("place 1 is %s, want web-b", got)
	}
	f.pods["web-b"] = member{name: "web-b", version: "v2", going: true}
	if got := f.place(1); got != "web-a" {
		t.Errorf("place 1 is %s when web-b is on its way out, want web-a", got)
	}
}

// TestSeeds draws the same history from a seed each time, and reads it back from its text.
func TestSeeds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		text := draw(seed).String()
		if again := draw(seed).String(); again != text {
			t.Fatalf("seed %d: two histories\n%s\n%s", seed, text, again)
		}
		if h, err := parse(text); err != nil || h.String() != text {
			t.Fatalf("seed %d: %v\n%s", seed, err, cmp.Diff(text, h.String()))
		}
	}
}
