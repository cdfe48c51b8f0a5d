// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The kinds that people would have used instead of a RollSet.
const (
	deployment   = "Deployment"
	orderedReady = "StatefulSet"
	parallel     = "StatefulSet in parallel"
)

// later is the act of waiting for a moment: what follows happens in the midst of what came before.
const later = "later"

// history lists the events of a pair of sets. Both are created by the edits of the opening. Each scene begins when both are at
// rest, and its acts follow one another at once.
type history struct {
	partner string
	opening []string
	scenes  [][]string
}

// String writes a history as parse reads it: a line a scene.
func (h history) String() string {
	lines := []string{h.partner + ": " + strings.Join(h.opening, ", ")}
	for _, scene := range h.scenes {
		lines = append(lines, strings.Join(scene, ", "))
	}
	return strings.Join(lines, "\n")
}

// parse reads a history. Scenes are separated by line breaks or semicolons.
func parse(text string) (history, error) {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ';' })
	if len(lines) == 0 {
		return history{}, fmt.Errorf("no history in %q", text)
	}
	partner, opening, _ := strings.Cut(lines[0], ":")
	h := history{partner: strings.TrimSpace(partner), opening: acts(opening)}
	for _, line := range lines[1:] {
		h.scenes = append(h.scenes, acts(line))
	}
	for _, act := range slices.Concat(append(h.scenes, h.opening)...) {
		verb, _, _ := strings.Cut(act, " ")
		if _, known := verbs()[verb]; !known && verb != later {
			return history{}, fmt.Errorf("no verb %q", verb)
		}
	}
	return h, nil
}

func acts(line string) []string {
	var all []string
	for act := range strings.SplitSeq(line, ",") {
		if act = strings.TrimSpace(act); act != "" {
			all = append(all, act)
		}
	}
	return all
}

// kept returns histories in which a RollSet was worse once.
func kept() []string {
	return []string{
		// One edit scales down and changes the template.
		"StatefulSet: replicas 5; replicas 3, image v2-broken",
		// A surplus pod cannot go, and a member is lost.
		"StatefulSet: replicas 4; hold 3; replicas 2; delete 0",
		// What serves was never proven, because a pod at the template before terminates.
		"Deployment: replicas 3; hold 0; image v2; image v3-broken; delete 0",
		// A set is scaled to 0 in a pause.
		"Deployment: replicas 3; paused true; image v2; replicas 0; replicas 2",
		// Pods are lost while a template is broken, without and with maxUnavailable.
		"Deployment: replicas 3, surge 1, unavailable 0; image v2-broken; delete 0; delete 0",
		"Deployment: replicas 4, unavailable 1, surge 1; image v2-broken; delete 0",
		"Deployment: replicas 3, ordinals; image v2-broken; delete 0",
		// A bad template is scaled down, and is followed by another bad one.
		"Deployment: replicas 2, unavailable 1, surge 2; image v4-broken; unready 3, replicas 1",
		"Deployment: replicas 2, unavailable 1, surge 2; image v3-missing; delete 0; image v2-broken; delete 0",
	}
}

// draw returns the history of a seed.
func draw(seed uint64) history {
	dice := rand.New(rand.NewPCG(seed, 0))
	h := history{partner: pick(dice, deployment, deployment, orderedReady, parallel)}
	h.opening = []string{
		"replicas " + pick(dice, "1", "2", "3", "3", "4"),
		"unavailable " + pick(dice, "0", "1", "1", "2"), "surge " + pick(dice, "0", "1", "2"),
	}
	if h.partner != deployment {
		h.opening[2] = "claims " + pick(dice, "none", "none", "Retain", "Delete")
	}
	if dice.IntN(6) == 0 {
		h.opening = append(h.opening, "minReady 1")
	}
	if h.partner == deployment && seed%3 == 0 {
		h.opening = append(h.opening, "ordinals")
	}
	deck := newDeck(h.partner)
	for range 2 + dice.IntN(5) {
		scene := []string{deck.act(dice)}
		if dice.IntN(3) == 0 {
			if dice.IntN(2) == 0 {
				scene = append(scene, later)
			}
			scene = append(scene, deck.act(dice))
		}
		h.scenes = append(h.scenes, scene)
	}
	return h
}

func pick(dice *rand.Rand, from ...string) string { return from[dice.IntN(len(from))] }

// deck has each verb of a partner as often as it is to be drawn.
type deck []string

func newDeck(partner string) deck {
	var d deck
	for _, name := range sortedVerbs() {
		if v := verbs()[name]; v.partners == nil || slices.Contains(v.partners, partner) {
			d = append(d, slices.Repeat([]string{name}, v.weight)...)
		}
	}
	return d
}

func (d deck) act(dice *rand.Rand) string {
	name := d[dice.IntN(len(d))]
	if draw := verbs()[name].draw; draw != nil {
		return name + " " + draw(dice)
	}
	return name
}

// oneOf draws an argument.
func oneOf(from ...string) func(*rand.Rand) string {
	return func(dice *rand.Rand) string { return pick(dice, from...) }
}

// place draws one of the first pods.
func place(dice *rand.Rand) string { return strconv.Itoa(dice.IntN(4)) }
