// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// better is the side that did better, by a difference.
type better int

const (
	neither better = iota
	oursBetter
	theirsBetter
)

// The points in which the films of a pair are compared.
const (
	lowest    = "fewest serving"
	resting   = "serving at rest"
	versions  = "versions at rest"
	surplus   = "surplus at rest"
	claims    = "claims at rest"
	rollout   = "kubectl says that the rollout is done"
	truth     = "what is said to be done is done"
	available = "kubectl says that the set is available"
	rest      = "comes to rest"
	recovery  = "is whole when nothing is in the way"
	duration  = "seconds until it was whole"
)

// difference is a point in which two films differ in a scene.
type difference struct {
	scene        int
	point        string
	ours, theirs string
	better       better
}

func (d difference) String() string {
	judgment := [...]string{"differs", "is better", "is worse"}[d.better]
	return fmt.Sprintf("scene %d, %s: the RollSet %s: %s, the other %s", d.scene, d.point, judgment, d.ours, d.theirs)
}

// generous is how much longer a RollSet may take, beside twice the time, on whatever machine this is.
const generous = 10 * time.Second

// compare returns all differences of a pair.
func compare(p *pair) []difference {
	var all []difference
	last := len(p.ours.film.shots) - 1
	for i := range p.ours.film.shots {
		all = append(all, compareShots(i, &p.ours.film.shots[i], &p.theirs.film.shots[i])...)
	}
	if ours := &p.ours.film.shots[last]; !ours.whole {
		all = append(all, difference{last, recovery, "false", strconv.FormatBool(p.theirs.film.shots[last].whole), theirsBetter})
	}
	return all
}

func compareShots(scene int, ours, theirs *shot) []difference {
	var all []difference
	differ := func(point string, a, b any, better better) {
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			all = append(all, difference{scene, point, x, y, better})
		}
	}
	more := func(a, b int) better {
		if a > b {
			return oursBetter
		}
		return theirsBetter
	}
	differ(lowest, ours.low, theirs.low, more(ours.low, theirs.low))
	differ(resting, ours.serving, theirs.serving, more(ours.serving, theirs.serving))
	differ(surplus, ours.surplus, theirs.surplus, more(theirs.surplus, ours.surplus))
	differ(versions, strings.Join(ours.versions, " "), strings.Join(theirs.versions, " "), neither)
	differ(claims, ours.claims, theirs.claims, neither)
	differ(rollout, ours.verdict.done, theirs.verdict.done, truthful(ours))
	differ(rest, ours.settled, theirs.settled, oneOfTwo(ours.settled))
	if ours.verdict.done && !ours.full {
		differ(truth, false, true, theirsBetter)
	}
	if theirs.verdict.available != "" {
		differ(available, ours.verdict.available, theirs.verdict.available, neither)
	}
	if ours.whole && theirs.whole && ours.lasted > 2*theirs.lasted+generous {
		differ(duration, ours.lasted.Seconds(), theirs.lasted.Seconds(), theirsBetter)
	}
	return all
}

// truthful names the side that is better if only one says that it is done.
func truthful(ours *shot) better { return oneOfTwo(ours.verdict.done == ours.full) }

func oneOfTwo(ours bool) better {
	if ours {
		return oursBetter
	}
	return theirsBetter
}

// unexplained returns the differences that no sentence explains. None explains that a RollSet is worse in what it promises.
func unexplained(p *pair) []difference {
	return slices.DeleteFunc(compare(p), func(d difference) bool { return explain(p, d) != "" })
}

// common returns the differences in the same points of the same scenes.
func common(a, b []difference) []difference {
	return slices.DeleteFunc(b, func(d difference) bool {
		return !slices.ContainsFunc(a, func(e difference) bool { return e.scene == d.scene && e.point == d.point })
	})
}

// explain returns the sentence that says why a difference is better; empty if there is none.
func explain(p *pair, d difference) string {
	for _, s := range sentences() {
		if s.explains(p, d) {
			return s.says
		}
	}
	return ""
}
