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
			says: "A rollout that is paused has come as far as it may, and a RollSet says so. `kubectl rollout status` waits for a paused Deployment.",
			explains: func(p *pair, d difference) bool {
				said := d.point == rollout && d.better == oursBetter
				came := d.point == versions && p.servesNoLess(d) && p.ours.at(d.scene).updated <= p.theirs.at(d.scene).updated
				return (said || came) && p.wishes[d.scene].paused
			},
		},
		{
			says: "A StatefulSet stops at a pod that is not ready, and a correction of the template never reaches it. " +
				"A RollSet replaces such a pod first.",
			explains: func(p *pair, d difference) bool {
				return p.isSet() && p.servesNoLess(d) && p.wasStuck(d.scene)
			},
		},
		{
			says: "While pods of a new template are not available, no other pod gets it: none that works, none that is not ready, and none " +
				"that comes back. With other kinds each loss breaks one more pod.",
			explains: func(p *pair, d difference) bool {
				ours, theirs := p.ours.at(d.scene), p.theirs.at(d.scene)
				fewer := ours.untried > 0 && ours.updated <= theirs.updated && ours.distinct() <= 2 &&
					slices.Contains([]string{lowest, resting, versions, available}, d.point)
				return p.servesNoLess(d) && (fewer || theirs.bad() > ours.bad() || theirs.good < ours.good || theirs.untried > ours.untried)
			},
		},
		{
			says: "A StatefulSet begins no rollout while a pod is not ready. A RollSet begins, and stays within `maxUnavailable`.",
			explains: func(p *pair, d difference) bool {
				ours, theirs, w := p.ours.at(d.scene), p.theirs.at(d.scene), p.wishes[d.scene]
				began := ours.updated > 0 || len(ours.versions) < len(theirs.versions)
				waits := d.point != truth && d.point != rest && theirs.updated == 0 && began && theirs.serving < int(w.replicas)
				waited := d.point == lowest && ours.updated > 0 && p.loses(d.scene)
				return p.isSet() && (waits || waited) && ours.low >= int(w.replicas-max(1, w.unavailable))
			},
		},
		{
			says: "A RollSet counts the pods that serve before each deletion. A Deployment counts them by the status of its ReplicaSets. " +
				"If a pod becomes unready in between, fewer serve than `maxUnavailable` allows.",
			explains: func(p *pair, d difference) bool {
				floor := int(p.wishes[d.scene].replicas - max(1, p.wishes[d.scene].unavailable))
				return !p.isSet() && d.point == lowest && p.ours.at(d.scene).low >= floor && p.theirs.at(d.scene).low < floor
			},
		},
		{
			says: "Under Recreate, no pod comes while one of another template still terminates. A Deployment that is scaled up adds pods.",
			explains: func(p *pair, d difference) bool {
				return p.wishes[d.scene].strategy == "Recreate" && p.ours.at(d.scene).terminates &&
					slices.Contains([]string{lowest, resting, versions, rollout, available}, d.point)
			},
		},
		{
			says: "A Deployment is Available without any pod that serves, if `maxUnavailable` allows it. A RollSet is not.",
			explains: func(p *pair, d difference) bool {
				return d.point == available && p.ours.at(d.scene).serving == 0 && d.ours == "False" && p.wishes[d.scene].replicas > 0
			},
		},
		{
			says: "Available means that no more than `maxUnavailable` pods are missing, under every strategy. A Deployment under Recreate " +
				"is Available only if none is.",
			explains: func(p *pair, d difference) bool {
				w := p.wishes[d.scene]
				return d.point == available && w.strategy == "Recreate" && d.ours == "True" && p.ours.at(d.scene).serving >= int(w.replicas-max(1, w.unavailable))
			},
		},
		{
			says: "A set is not done while a surplus pod is still to be deleted. `kubectl rollout status` of a StatefulSet does not count those.",
			explains: func(p *pair, d difference) bool {
				return p.isSet() && d.point == rollout && d.ours == "false" && p.ours.at(d.scene).surplus > 0
			},
		},
		{
			says: "A partition is a state: raised, it takes pods back to the template before. A StatefulSet keeps them where they are.",
			explains: func(p *pair, d difference) bool {
				return d.point == versions && p.saw(d.scene, "partition") && p.servesNoLess(d) && p.wishes[d.scene].partition > 0 &&
					p.ours.at(d.scene).surplus == p.theirs.at(d.scene).surplus
			},
		},
		{
			says: "After several templates in quick succession, at most two stay. A Deployment keeps pods of those between.",
			explains: func(p *pair, d difference) bool {
				return d.point == versions && p.servesNoLess(d) && p.ours.at(d.scene).distinct() <= 2 && p.theirs.at(d.scene).distinct() > 2
			},
		},
		{
			says: "A member with a stable name goes when surge serves in its place. A Deployment takes pods as soon as `maxUnavailable` allows it.",
			explains: func(p *pair, d difference) bool {
				w := p.wishes[d.scene]
				return w.ordinals && w.surge > 0 && p.servesNoLess(d) && slices.Contains([]string{lowest, resting, available}, d.point)
			},
		},
		{
			says: "A pod with a stable name has a successor when it is gone. A Deployment gives the next pod another name, and need not wait.",
			explains: func(p *pair, d difference) bool {
				ours, theirs, gone := p.ours.at(d.scene), p.theirs.at(d.scene), p.count(d.scene, "hold", "mislabel", "lose", "drop")
				return p.wishes[d.scene].ordinals && gone > 0 && theirs.serving <= ours.serving+gone && theirs.low <= ours.low+gone &&
					slices.Contains([]string{lowest, resting, versions, rollout, available}, d.point)
			},
		},
		{
			says: "Pods with stable names go from the highest ordinal down, as in a StatefulSet. A Deployment takes pods that are not ready first.",
			explains: func(p *pair, d difference) bool {
				return p.wishes[d.scene].ordinals && d.scene > 0 && p.wishes[d.scene].replicas < p.wishes[d.scene-1].replicas &&
					slices.Contains([]string{lowest, resting, available}, d.point)
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
func (p *pair) saw(scene int, words ...string) bool { return p.count(scene, words...) > 0 }

// loses reports whether a pod was taken out of service in a scene.
func (p *pair) loses(scene int) bool {
	taking := []string{"delete", "evict", "unready", "lose", "drop"}
	return scene > 0 && p.count(scene, taking...) > p.count(scene-1, taking...)
}

// count counts how often one of the verbs was played before the end of a scene.
func (p *pair) count(scene int, words ...string) (n int) {
	for _, act := range slices.Concat(p.history.scenes[:min(scene, len(p.history.scenes))]...) {
		if slices.Contains(words, verbOf(act)) {
			n++
		}
	}
	return n
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

// distinct counts the templates of the pods at rest.
func (s *shot) distinct() int {
	all := map[string]bool{}
	for _, v := range s.versions {
		all[v[strings.Index(v, ":")+1:]] = true
	}
	return len(all)
}

// stuck reports whether pods at rest are not ready, and no pod has the template that is wished for and that some are to have.
func (s *shot) stuck(w wish) bool {
	return s.updated == 0 && s.serving < int(w.replicas) && len(s.versions) > 0 && w.strategy != "OnDelete" && w.partition < w.replicas
}

// wasStuck reports whether the other kind has stopped in or before a scene at pods that are not ready.
func (p *pair) wasStuck(scene int) bool {
	for i := range scene + 1 {
		if p.theirs.at(i).stuck(p.wishes[i]) {
			return true
		}
	}
	return false
}
