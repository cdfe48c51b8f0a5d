// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"slices"
	"strings"
)

// sentence says in what a RollSet differs from other kinds, and why that is better. Its predicate reads both films.
type sentence struct {
	says     string
	explains func(*pair, difference) bool
}

// sentences returns all of them. The first that explains a difference counts.
func sentences() []sentence {
	return []sentence{
		{
			says: "`kubectl rollout status` gives no answer for a StatefulSet under OnDelete. A RollSet that has nothing to do says so.",
			explains: func(p *pair, d difference) bool {
				return d.point == rollout && d.better == oursBetter && p.wishes[d.scene].strategy == "OnDelete"
			},
		},
		{
			says: "A StatefulSet stops at a pod that is not ready, and a correction of the template never reaches it. " +
				"A RollSet replaces such a pod first.",
			explains: func(p *pair, d difference) bool {
				return p.isSet() && p.servesNoLess(d) && p.theirs.at(d.scene).stuck(p.wishes[d.scene])
			},
		},
		{
			says: "A pod that comes back while the new template has not proven itself gets the template that last served. " +
				"Other kinds give some of them the new one, so that each loss breaks one more.",
			explains: func(p *pair, d difference) bool {
				return p.servesNoLess(d) && p.theirs.at(d.scene).bad() > p.ours.at(d.scene).bad()
			},
		},
		{
			says: "A StatefulSet whose name is taken makes and deletes no other pod. A RollSet leaves that name aside, and says whose it is.",
			explains: func(p *pair, d difference) bool {
				return p.isSet() && p.servesNoLess(d) && p.saw(d.scene, "stranger", "mislabel")
			},
		},
	}
}

func (p *pair) isSet() bool { return p.history.partner != deployment }

func (s *side) at(scene int) *shot { return &s.film.shots[scene] }

// servesNoLess reports whether a RollSet has no fewer pods that serve, at rest and at any moment of the scene.
func (p *pair) servesNoLess(d difference) bool {
	ours, theirs := p.ours.at(d.scene), p.theirs.at(d.scene)
	return d.better != theirsBetter && ours.serving >= theirs.serving && ours.low >= theirs.low
}

// saw reports whether one of the verbs was played before the end of a scene.
func (p *pair) saw(scene int, words ...string) bool {
	for _, scene := range p.history.scenes[:min(scene, len(p.history.scenes))] {
		if slices.ContainsFunc(scene, func(act string) bool { return slices.Contains(words, verbOf(act)) }) {
			return true
		}
	}
	return false
}

// bad counts the pods at rest whose template never becomes ready.
func (s *shot) bad() int {
	n := 0
	for _, v := range s.versions {
		if isBad(v) {
			n++
		}
	}
	return n
}

// stuck reports whether pods at rest are broken by another template than the one that is wished for.
func (s *shot) stuck(w wish) bool {
	return slices.ContainsFunc(s.versions, func(v string) bool { return isBad(v) && !strings.Contains(v, w.image) })
}
