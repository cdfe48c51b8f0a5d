// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// word is a command with what may stand behind it.
type word struct {
	name string
	arg  *rapid.Generator[string]
}

func among(values ...string) *rapid.Generator[string] { return rapid.SampledFrom(values) }

func number(low, high int) *rapid.Generator[string] {
	return rapid.Map(rapid.IntRange(low, high), strconv.Itoa)
}

// bound draws a number of pods or a share of them, with a bias towards the ends.
func bound() *rapid.Generator[string] {
	return rapid.OneOf(number(0, 4), among("0%", "1%", "25%", "50%", "99%", "100%"))
}

// specWords returns the fields that every set has.
func specWords() []word {
	return []word{
		{"replicas", number(0, 6)},
		{"image", among("app:v1", "app:v2", "app:v3", "app:v2-again", "app:v3-bare", "app:v4-mirror", "app:missing", "app:broken", "app:slow", "app:quorum")},
		{"defaults", among("written", "left-out", "written:app:v2", "left-out:app:v3")},
		{"partition", bound()},
		{"maxUnavailable", bound()},
		{"scaleMaxUnavailable", bound()},
		{"paused", among("true", "false")},
		{"minReady", number(0, 5)},
		{"history", number(0, 2)},
		{"deadline", number(8, 60)},
		{"onDeadline", among("Hold", "Rollback")},
		{"strategy", among("RollingUpdate", "OnDelete", "Recreate")},
		{"policy", among("Recreate", "InPlaceIfPossible", "InPlaceOnly")},
		{"annotate", among("team=a", "team=b", "kubectl.kubernetes.io/restartedAt=1", "kubectl.kubernetes.io/restartedAt=2")},
		{"env", among("A=1", "A=2")},
		{"memory", among("64Mi", "128Mi")},
		{"cpu", among("1", "64")},
		{"grace", number(0, 3)},
		{"hook", among("preNormal", "preDelete", "preDelete!", "inPlaceUpdate", "inPlaceUpdate!", "none")},
		{"hook", limitedHook()},
		{"weight", among("1 zone=a", "100 zone=b", "0 zone=a")},
		{"order", among("zone", "rank")},
		{"scatter", among("zone=a", "zone=b")},
		{"whenDeleted", among("Retain", "Delete")},
		{"whenScaled", among("Retain", "Delete")},
		{"storage", among("1Gi", "2Gi", "3Gi")},
		{"attributes", among("gold", "silver", "none")},
		{"driver", among("growth fails", "growth works", "gold infeasible", "gold pending", "silver slow", "silver ignores", "all works")},
		{"class", among("growing", "fixed")},
		{"old-class", among("growing", "fixed")},
		{"claims", among("data", "log")},
		{"no-claims", among("data", "log")},
		{"rename-claims", among("data store", "store data")},
		{"steps", among("1,soak=2", "1,gate=A:5 50%,pause", "25%,pause 50%,gate=A 100%,soak=3", "2 3,gate=A:4,gate=B", "1 2 3,pause 100%,gate=B", "none")},
		{"onStepFailed", among("Hold", "Rollback")},
		{"budget", among("Auto", "Auto", "None")},
		{"domains", among("zone", "zone 2", "zone 20", "rank", "example.com/none 1", "none")},
	}
}

// limitedHook draws a hook with a limit.
func limitedHook() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		hook := among("preNormal", "preNormal!", "preDelete", "preDelete!", "inPlaceUpdate", "inPlaceUpdate!").Draw(t, "hook")
		return hook + " " + among("1", "4", "30").Draw(t, "limit") + " " + among("Proceed", "Proceed", "Hold").Draw(t, "onTimeout")
	})
}

// podWords returns what users, nodes and other programs do to pods; the pods are named as on the film strip.
func podWords(pod *rapid.Generator[string]) []word {
	var words []word
	for _, name := range []string{
		"delete", "kill", "fail", "reject", "lose", "specify", "unspecify", "relabel", "label-back", "expensive", "podsToDelete",
		"close-gate", "open-gate", "tamper", "garble", "mislabel", "mark", "unmark", "misdate", "undate",
		"forge hash", "forge hash=none", "forge surge=true", "forge state=Updating", "forge state=nonsense", "forge index=1", "forge instance-id=zzzzz",
		"forge-claims surge=true", "forge-claims left=true", "forge-claims index=1", "forge-claims instance-id=zzzzz", "forge-claims set=other", "forge-claims set", "label zone=a", "label zone=b", "label rank=2",
	} {
		words = append(words, word{name, pod})
	}
	return words
}

// worldWords returns what happens to the cluster and to the managers.
func worldWords() []word {
	return []word{
		{"quota", among("2", "none")},
		{"deny-image", among("app:v2", "app:v3")},
		{"resize", rapid.Map(rapid.IntRange(0, 4), func(n int) string { return "300m " + invariants.Letters(n) + " " + strconv.Itoa(n) })},
		{"on-drain", among("Replace", "Replace", "Ignore")},
		{"crash", rapid.Map(rapid.IntRange(0, 24), func(n int) string { return invariants.Letters(n/5) + " " + strconv.Itoa(n%5) + "s" })},
		{"busy", among("0s", "1s", "5s", "30s")},
		{"neighbors", among("40 0", "40 3", "0 4", "0 0")},
		{"rewrite", rapid.Custom(func(t *rapid.T) string {
			change := among("pods app=other", "pods app-", "pods controller-revision-hash-", "pods controller-revision-hash=other", "pods owner-", "pods apps.rollset.dev/surge-",
				"pods apps.rollset.dev/instance-id-", "claims apps.rollset.dev/set-", "claims owner-", "revision owner-", "revision app=other", "status selector-").Draw(t, "change")
			return change + among("", " create").Draw(t, "on")
		})},
		{"outage", among("2s", "9s", "12s", "40s")},
		{"slow-collector", among("2s", "20s", "2m")},
		{"run", rapid.Map(rapid.IntRange(0, 20), func(n int) string { return (time.Duration(n) * 500 * time.Millisecond).String() })},
		{"rewind", rapid.Map(rapid.IntRange(0, 40), strconv.Itoa)},
		{"rewind", among("9 Pod", "9 RollSet", "9 PersistentVolumeClaim", "9 ControllerRevision", "9 PodDisruptionBudget")},
		{"skew", among("-20s", "-1s", "1s", "20s")},
		{"gate", among("A True", "A False", "B True", "B Unknown")},
		{"zone-down", among("a", "b", "c")},
		{"cordon-node", among("a", "b")},
		{"taint-node", among("a karpenter.sh/disrupted", "b ToBeDeletedByClusterAutoscaler", "b example.com/other")},
		{"keep-node", among("a", "b")},
		{"make-budget", among("a-mine app=web", "z-mine all", "web app=other", "other app=other", "idle none")},
		{"edit-budget", among("web 0", "web 2", "a-mine 1")},
		{"disown-budget", among("web")},
		{"delete-budget", among("web", "web", "a-mine", "z-mine")},
		{"promote", among("1", "2", "3", "all", "old", "junk")},
		{"delete-set", among("Background", "Foreground", "Orphan")},
		{"refuse", rapid.Custom(func(t *rapid.T) string {
			verb := among("create", "patch", "delete", "resize", "any").Draw(t, "verb")
			object := among("pods", "a", "b", "c", "d", "0", "1", "2", "status", "revision", "claims", "budgets", "resizes").Draw(t, "object")
			return verb + " " + object + " " + among("forbidden", "quota", "conflict", "invalid", "throttled", "webhook", "rights", "hang").Draw(t, "answer")
		})},
	}
}

// loneWords stand alone.
func loneWords() []string {
	return []string{"settle", "settle", "restart", "resync", "cordon", "uncordon", "zone-up", "deny", "allow", "permit", "managers 2", "forget", "forget-update", "forget-claims", "leave", "create-set", "lose-status", "api-default", "tolerate", "garble-revisions", "abort", "retry", "podsToDelete"}
}

// randomSet and ordinalSet are the two kinds of sets: how they begin, what fields only they have, and what their pods are
// called.
func randomSet() (preface *rapid.Generator[string], words []word) {
	words = []word{
		{"maxSurge", bound()},
		{"stranger", among("qdl8b", "btr7l")}, // among the first names that the set would choose
		{"orphan", among("12345", "xpb4r")},
		{"podsToDelete", among("a b", "b c d")},
	}
	return among("replicas 3", "replicas 3\nclaims data"), append(words, podWords(rapid.Map(rapid.IntRange(0, 11), invariants.Letters))...)
}

func ordinalSet() (preface *rapid.Generator[string], words []word) {
	words = []word{
		{"start", number(0, 3)},
		{"reserve", among("0", "1", "1-2", "2,4")},
		{"management", among("Parallel", "OrderedReady")},
		{"maxSurge", bound()},
		{"stranger", number(0, 4)},
		{"orphan", number(0, 6)},
	}
	preface = among("identity Ordinal", "identity Ordinal\nclaims data", "identity Ordinal\nmanagement Parallel\nclaims data\nclaims log",
		"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1", "identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2")
	return preface, append(words, podWords(number(0, 6))...)
}

// history draws a script about a kind of set. Numbers are small and names few, so that what is drawn meets what was drawn
// before.
func history(kind func() (*rapid.Generator[string], []word)) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		preface, own := kind()
		groups := [][]word{specWords(), own, worldWords()}
		line := rapid.Custom(func(t *rapid.T) string {
			group := rapid.IntRange(0, len(groups)).Draw(t, "group")
			if group == len(groups) {
				return among(loneWords()...).Draw(t, "word")
			}
			w := rapid.SampledFrom(groups[group]).Draw(t, "word")
			return w.name + " " + w.arg.Draw(t, "argument")
		})
		lines := rapid.SliceOfN(line, 1, 20).Draw(t, "script")
		beginning := rapid.OneOf(among("", aged, midstep, aged+midroll, zonal, zonal+midstep, drained, budgeted, drained+budgeted, held), midwait())
		ending := among("", "", "\nsettle").Draw(t, "ending")
		past := among("", "", "", forgetful).Draw(t, "past")
		return preface.Draw(t, "preface") + "\n" + past + beginning.Draw(t, "beginning") + strings.Join(lines, "\n") + ending
	})
}

// zonal makes the zones of a set its failure domains.
const zonal = "domains zone\nmaxUnavailable 2\n"

// budgeted has a disruption budget of its own.
const budgeted = "budget Auto\nsettle\n"

// drained has pods on nodes that leave.
const drained = "on-drain Replace\nsettle\ncordon-node a\n"

// forgetful keeps no revision that it does not need.
const forgetful = "history 0\n"

// aged has claims that are old enough to be deleted once no pod needs them.
const aged = "settle\nrun 1m\n"

// midroll brings a set into the midst of a rollout.
const midroll = "image app:v2\nrun 500ms\n"

// midstep brings a set into the midst of a rollout in steps.
const midstep = "settle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\n"

// held brings a set into a rollout that the guard holds.
const held = "replicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\n"

// midwait draws the way of a set into the midst of a rollout in which pods wait for a hook with a limit.
func midwait() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		policy := among("Recreate", "InPlaceIfPossible").Draw(t, "policy")
		return "settle\npolicy " + policy + "\nhook " + limitedHook().Draw(t, "hook") + "\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n"
	})
}

// relief removes what can keep the set from its wanted state permanently. Pods that a fast clock showed as available
// need time to become so. Released pods are removed at the end.
const relief = "outage 0s\nquota none\nuncordon\nzone-up\nallow\npermit\npolicy InPlaceIfPossible\nhook none\nskew 0s\nneighbors 0 0\nlet-pass\ndriver all works\nremember-claims\nrun 20s\nsettle\nleave\nsettle"

// live plays a history to its end and checks that it converges.
func live(ctx context.Context, text string, seed uint64) (*World, error) {
	script, err := ParseScript(text)
	if err != nil {
		return nil, err
	}
	rest, err := ParseScript(relief)
	if err != nil {
		return nil, err
	}
	w, err := play(ctx, script, seed)
	if err == nil {
		err = w.Play(ctx, rest)
	}
	if err == nil {
		err = w.CheckConverged(ctx)
	}
	if err == nil && !(judge{w}).satisfiable() {
		err = w.correct(ctx)
	}
	return w, err
}

// correction is what a user does about a template with which no pod can be available.
const correction = "image app:v9\ncpu 1\npaused false\nstrategy RollingUpdate\npartition 0\nsteps none\nsettle"

// correct corrects the template, and checks that all pods have it then, however broken they were.
func (w *World) correct(ctx context.Context) error {
	script, err := ParseScript(correction)
	if err == nil {
		err = w.Play(ctx, script)
	}
	if set := w.Set(); err == nil && set != nil && set.DeletionTimestamp == nil {
		err = w.CheckWanted(set, w.gates.open)
	}
	if err != nil {
		return fmt.Errorf("the template was corrected: %w", err)
	}
	return nil
}

// eachHistory draws scripts and orders of events at random, and calls check with them: -rapid.checks of each kind of
// set, side by side.
func eachHistory(t *testing.T, check func(t *rapid.T, text string, seed uint64)) {
	t.Helper()
	for name, kind := range map[string]func() (*rapid.Generator[string], []word){"Random": randomSet, "Ordinal": ordinalSet} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				text := history(kind).Draw(t, "history")
				check(t, text, rapid.Uint64Range(0, 1<<20).Draw(t, "seed"))
			})
		})
	}
}

// TestHistories plays histories. A failure is shrunk; its script, saved in testdata with a sentence about what it shows,
// becomes a scenario.
func TestHistories(t *testing.T) {
	t.Parallel()
	eachHistory(t, func(t *rapid.T, text string, seed uint64) {
		if w, err := live(t.Context(), text, seed); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, text, w.Film.last(60))
		}
	})
}

// TestHistoriesAgain plays histories that once raised an alarm, in the order of events that did.
func TestHistoriesAgain(t *testing.T) {
	t.Parallel()
	for _, h := range []struct {
		text string
		seed uint64
	}{
		// A promotion of a later step is ignored, and a user removes it to promote that step once it is at work.
		{"replicas 3\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ndeny\ntolerate\nsettle\npromote 3", 0},
		// A create meets a conflict and is tried again in the plan that moves a pod to the same revision.
		{"identity Ordinal\nclaims data\nreplicas 5\norphan 3\nstart 2", 146},
		// The API server gets a default, and a user edits the set before the manager has seen that.
		{"replicas 3\ncordon\nsettle\nimage app:v2\nsettle\napi-default\nmaxSurge 50%\nsettle", 0},
		// A template is changed while the hook preNormal holds back the only pod that is there.
		{"identity Ordinal\nhook preNormal\nreplicas 5\nsettle\nenv A=2\nsettle", 1048576},
		// A set in steps is scaled up, and its steps are edited, while the first pod is moved.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nsteps 1,soak=2\nreplicas 4", 2},
		// All pods have to go back before one may go on, and the API server has refused what they would go on to.
		{"replicas 3\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ndeny\nannotate team=a\nmaxSurge 99%\nsettle", 1},
		// A user removes the hook that has held a pod back for half an hour.
		{"identity Ordinal\nsettle\npolicy Recreate\nhook preNormal! 4 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nonDeadline Hold\n" +
			"replicas 1\nreserve 1\nsettle\n" + "settle\nclose-gate 0\ndomains zone 20\ngate A False\nmemory 64Mi\ndeny-image app:v2\n" +
			"stranger 1\nsettle\nimage app:v2\nsettle\n" + "settle\nimage app:v4-mirror", 0},
		// A pod without claims is drained while a pod of neither revision has claims that only the update revision mounts.
		{"replicas 3\non-drain Replace\nsettle\ncordon-node a\nclaims data\nstranger qdl8b\npartition 2\nrestart\nsettle\n" +
			"podsToDelete a b\ntolerate", 19473},
		// A manager starts with a cache from before the first ids were noted, and a pod has gone since.
		{"replicas 3\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nrewind 37", 10000894},
		// The pods that the cache does not show are there still, and a foreign pod that it shows has the name of one.
		{"replicas 3\nclaims data\nstranger qdl8b\nsettle\nimage app:v2\nleave\nrewind 37\nimage app:broken", 250},
		// A user names a pod of surge that stands in for a pod of a lost node.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nimage app:quorum\nlabel-back a\nwhenScaled Delete\n" +
			"delete a\nlose e\nlabel rank=2 b\nexpensive b\nmaxSurge 99%\npodsToDelete l\nsettle\npodsToDelete h\nhistory 1", 15212},
		// A pod that came at the current revision, and has a minute to become ready, begins an update in place.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\ndeny\n" +
			"policy InPlaceIfPossible\nsettle", 1048576},
		// A user gives a claim to another set while the pod that uses it is recreated.
		{"identity Ordinal\nclaims data\nsettle\nrun 1m\nimage app:v2\nrun 500ms\nforge-claims set=other 0", 0},
		// Two pods are out of service before they are updated, and both stay prepared.
		{"replicas 3\npolicy InPlaceIfPossible\nmaxUnavailable 2\ngrace 5\nhook inPlaceUpdate\nsettle\nmark b c\nimage app:v2\nrun 2s\nunmark b c\nsettle", 0},
		// A delete is under way for longer than the manager waits for it.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\npodsToDelete b c d\nstrategy OnDelete\nuncordon\n" +
			"podsToDelete\nminReady 3\nquota 2\nrewind 19\ndeadline 11", 10008666},
		// A set is scaled up and its strategy becomes Recreate while surge serves at a revision that is no longer wanted.
		{"replicas 3\nclaims data\nsettle\nmaxSurge 50%\nminReady 3\nimage app:v2\nrun 4.5s\nimage app:v3\nstrategy Recreate\nreplicas 6\nsettle", 0},
		// The revision of a template that the API server has changed is deleted, and its pods are asked about in dry runs.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nabort\napi-default\nlose-status\nmaxSurge 0%\nsettle\n" +
			"maxSurge 100%\nmaxUnavailable 1\nrestart\nforget", 20015672},
		// Under OnDelete a user names a pod that has no revision.
		{"replicas 3\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nrename-claims data store\nrestart\nreplicas 4\nquota 2\n" +
			"strategy OnDelete\nreplicas 1\nuncordon\nresize 300m e 4\norphan 12345\npodsToDelete a b\nmanagers 2", 50014714},
		// A revision that could not be recorded again is shown by the cache, which was behind.
		{"identity Ordinal\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nrewind 40", 71009929},
		// A pod that is updated has a claim underway, and a new template asks for another change.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nforget-update\nimage app:v2-again\nrestart\n" +
			"defaults written:app:v2\nattributes silver", 18},
		// A pod that a scale-down deletes and one that ends are in different failure domains.
		{"replicas 3\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nreplicas 2\nforget\nfail f\nenv A=2", 333},
		// A set of one pod, which a step has updated, is scaled up while its steps are edited.
		{"identity Ordinal\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\n" + "settle\nforget-update\nreplicas 3\n" +
			"steps 1,gate=A:5 50%,pause\nsettle\nrewind 24", 2806},
		// A policy gives new pods another revision, so that surge is never at the revision that it was made for.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nrewrite pods controller-revision-hash=other\nsettle", 1033757},
		// A pod of a set that needs surge serves, and nothing proves that its update in place is done.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\non-drain Replace\nsettle\ncordon-node a\nimage app:v2\nclass growing\n" +
			"start 1\ngarble-revisions\nforge-claims left=true 0\nimage app:v4-mirror\nsettle\nbusy 30s", 3},
		// The only place has a name that is taken, and the API server has stopped to refuse the template.
		{"identity Ordinal\nstranger 3\ndeny\nstart 3\nsettle", 15493},
		// Surplus pods of a paused set cannot be deleted.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\npaused true\n" +
			"refuse delete pods webhook\nreplicas 1\nsettle", 471},
		// A rollout is complete by a manager that has not seen a later edit of replicas and partition.
		{"identity Ordinal\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"on-drain Replace\npartition 2\nclose-gate 0\nreplicas 3\nunspecify 0", 7},
		// Ordinals of surge become reserved, and others take their place, in order and in parallel.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nsettle\npolicy InPlaceIfPossible\n" +
			"hook preDelete! 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nreserve 2,4\nmanagement OrderedReady\nsettle", 0},
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nsettle\npolicy InPlaceIfPossible\n" +
			"hook preDelete 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nreserve 0\nreserve 2,4\nsettle", 1},
		// A template comes back that had served before the one that is left.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\n" +
			"image app:v2\nsettle\nimage app:v3\nreplicas 3\nimage app:v2", 1},
		// The current revision is deleted, made again, and followed by another.
		{"identity Ordinal\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate! 30 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"settle\nforget-update\nrewind 28\nimage app:quorum", 23164},
		// Surge that serves in a pause is there when the last of the named pods is gone.
		{"replicas 3\nclaims data\non-drain Replace\nsettle\ncordon-node a\nbudget Auto\nsettle\n" + "settle\nquota 2\nimage app:v4-mirror\nforget\n" +
			"zone-down c\npodsToDelete b c d\nsettle\npaused true\nmaxSurge 1", 1},
		// Surge waits for a member in a zone that is down.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\nsettle\nrun 1m\nimage app:v2\nzone-down a\nsettle", 0},
		// A manager that does not see that a pod is gone takes the surge that it makes for the third of three replicas.
		{"replicas 3\nclaims data\nlabel zone=a i\nmaxSurge 1\nsettle\nhistory 1\nreplicas 3\nrestart\nforget\npartition 1\nstranger qdl8b\n" +
			"podsToDelete b c d\nkill b\npartition 99%\nlose-status\nrun 0s\nenv A=2\nsettle\nrewind 9 RollSet\nuncordon\ndeadline 13\nmaxSurge 4", 70012742},
		// The first revision is recorded late, after pods were made at the second.
		{"replicas 3\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nstranger qdl8b\npodsToDelete b c d\nmaxUnavailable 99%\n" +
			"onStepFailed Rollback\nlabel zone=a c\nreplicas 6\ncpu 64", 71010914},
		// Only the claims show that the pods had any: the template is removed, and the revisions are deleted.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nfail e\nforget\nlose-status\nno-claims data\n" +
			"maxSurge 99%\nkill j\nminReady 3\nonDeadline Hold\nunspecify a\nlabel-back i\nsettle", 73003900},
		// A pod is moved in place while surge at the same revision, which is not ready, is about to be deleted.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ndeny-image app:v3\ncreate-set\npolicy Recreate\n" +
			"maxSurge 2\ngrace 1\nmanagers 2\nsettle\ngate B Unknown\nrefuse create a conflict\npaused false\nmaxSurge 0%\norder zone", 73009450},
		// The first revision cannot be recorded until the API server has another default.
		{"replicas 3\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nrefuse any revision conflict\nrewind 0\nannotate team=a\n" +
			"label zone=b d\nquota none\ndeny-image app:v2\npolicy InPlaceIfPossible\nmaxSurge 0%\ndeny-image app:v2\nsettle\napi-default\n" +
			"deny-image app:v2\npaused false\nrewind 9 RollSet\nresync\nrewind 1\nresync\nabort\nsettle\nexpensive h", 20027450},
		// A user pauses a rollout whose step has failed.
		{"identity Ordinal\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nlose-status\nsettle\nbusy 1s\nquota none\n" +
			"steps 1,gate=A:5 50%,pause\nrefuse delete a forbidden\nunmark 0\ncpu 64\npaused false\nhistory 2\ncpu 1\nreserve 0\nreplicas 3\nsettle\n" +
			"run 500ms\nretry\nclose-gate 2\ndeny\npaused true\nexpensive 6", 75011977},
		// A pod is replaced before its manager knows that the set has failure domains.
		{"replicas 3\nhistory 0\nsettle\npolicy Recreate\nhook preNormal! 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nsettle\n" +
			"image app:v1\nresync\nbudget None\ndomains zone 20\nforget-update\nmaxUnavailable 3", 1},
		// A pod that the steps keep is created beside updated ones whose claims are to have other attributes.
		{"replicas 3\nclaims data\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nreplicas 4\n" +
			"orphan 12345\nattributes gold\nsettle", 201},
		// Users change how many pods may be unavailable while a pod waits for a lifecycle hook.
		{"identity Ordinal\nclaims data\nsettle\npolicy Recreate\nhook preDelete 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nreplicas 2", 26123},
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nmaxSurge 1\nsettle", 1},
		// Pods wait too long for a hook that holds their deletion, and are updated in place when the policy allows that, in a partition.
		{"replicas 3\nsettle\npolicy Recreate\nhook preDelete! 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\npartition 2\nmaxUnavailable 99%\nsettle", 56},
		// A user marks a good pod as surge while a bad template is held.
		{"replicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nforge surge=true b\nrestart\nsettle", 393},
		// A pod that has the mark of surge and a hook comes to be below the range.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\npolicy Recreate\nhook preDelete 4 Proceed\nmark a b c 0 1 2\n" +
			"image app:v2\nrun 2s\nsettle\nstranger 1\nreplicas 5\nstart 3\nforge surge=true 0\nsettle", 186},
		// A set in order is scaled up while one of its pods cannot be scheduled at any revision.
		{"identity Ordinal\nclaims data\nbudget Auto\nsettle\nreplicas 3\nrename-claims data store\ncordon\nsettle", 0},
		// Limits are lowered, a create is answered late, or a user names a good pod while a bad template is held.
		{"replicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nforget-update\noutage 2s\nresize 300m b 1\n" +
			"on-drain Ignore\nreplicas 4\nbusy 5s\nsettle", 1},
		{"replicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nsettle\nskew 1s\nminReady 2\n" +
			"podsToDelete a b\nhistory 1\nmanagers 2\nstorage 3Gi\nmaxSurge 25%\nforge hash a\nmaxSurge 1\nsettle\nreplicas 2\nsettle", 0},
		// A member that a user has marked as surge comes to be below the range.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nhistory 0\n" + held +
			"forge surge=true 0\nmanagement OrderedReady\nstart 1\nsettle", 4},
		// Under Recreate no partition keeps claims as they are.
		{"identity Ordinal\nclaims data\nsettle\npartition 1%\nattributes silver\nstrategy Recreate", 360},
		// The update revision is deleted after its template was written with the defaults, so that its name cannot be made again.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\ndefaults written\n" +
			"forget-update", 172},
		// A webhook fails for each deletion, and pods would be prepared for it in turn, again and again.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preDelete 30 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"refuse delete pods webhook\ntolerate\ndefaults left-out:app:v3\nsettle", 1},
		// A quorum is complete when an orphan has been adopted.
		{"replicas 3\nkill a\nsettle\nlabel rank=2 a\nsettle\nimage app:quorum\nforget\nsettle\nrun 8s\nsettle\norphan 12345", 30037022},
		// Claims are left of an earlier set of the same name, and pods use them again.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nmaxSurge 50%\ndeny-image app:v2\ndelete-set Orphan\n" +
			"managers 2\nresync\ncpu 1\ndeny-image app:v3\nsettle\ncreate-set\nwhenScaled Delete", 30060958},
		// A pod takes over the id of claims that a deleted set of the same name has left.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ndelete-set Background\ncreate-set\nuncordon\n" +
			"onStepFailed Rollback\npolicy InPlaceIfPossible\nannotate team=b\nimage app:v1\nhistory 1\nforget\nbusy 5s\nno-claims data", 50016170},
		// The last pods that a rollout is to move are ones that a user named.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\npodsToDelete a b\npromote all\nquota none", 40018394},
		// The API server gets a default, and the image of the revision before that is wanted again.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nreplicas 6\n" +
			"scaleMaxUnavailable 3\ncordon\npodsToDelete\nweight 100 zone=b\napi-default\nunspecify 4\nsettle\nimage app:v1\nleave\nrun 1s\nquota 2", 40009647},
		// A plan replaces a broken pod that was adopted, and scales down to the pod that a user named.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ngate B True\nsettle\nlabel zone=a g\nrun 500ms\n" +
			"gate B True\nreplicas 5\nuncordon\nwhenDeleted Retain\ncordon\nlabel rank=2 b\nmislabel a\nsettle\nunmark j\n" +
			"rewind 9 PersistentVolumeClaim\npodsToDelete b c d\norphan 12345\nstranger qdl8b\nhistory 1\nsettle\npodsToDelete b c d", 40017416},
		// Surge is allowed while a step that has come to all pods waits for a person.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nmaxSurge 100%\napi-default", 452},
		// A pod is made after its create has timed out, and the cache shows those that were asked for after it.
		{"replicas 3\nsettle", 12229},
		// Pods become members of a quorum in place.
		{"replicas 3\nimage app:broken\nsettle\nimage app:quorum", 10},
		// The cache of a manager that starts shows the newest pod of a batch, and not all before it.
		{"replicas 3\nsettle\nrewind 21\nsettle", 140},
		// One of two managers puts a pod on a claim that the other has given to the pod before it, and does not see that yet.
		{"replicas 3\nclaims data\nrun 0s\nmanagers 2\nreplicas 0", 15},
		// In the midst of a rollout surge comes for a pod that a user wants replaced and that has to stay for the time being.
		{"replicas 3\nreplicas 1\norphan xpb4r\norphan xpb4r\nrun 3s\nmislabel i\nmanagers 2\nimage app:v2\nimage app:v3\nrun 3.5s\nimage app:v2\nrun 5s\n" +
			"stranger qdl8b\nreplicas 1\nrestart\nreplicas 6\nrun 6.5s\nrewind 7\nmaxSurge 99%\nspecify f\npartition 0", 2},
		// A pod is moved to a revision that was just deleted, and the cache does not show that.
		{"replicas 3\nrun 3.5s\nminReady 3\nexpensive a\nannotate team=a\nrewind 4\nimage app:v2\nrun 9s\nforget\nsettle\nresync", 12803},
		// The answer to a delete is lost, and the cache shows the delete only after the manager has given up waiting
		// for it.
		{"replicas 3\nsettle\nrun 4.5s\nenv A=1\nimage app:v2", 54},
		// A set that is deleted leaves its revision behind, and the cache still shows the set.
		{"identity Ordinal\nreplicas 0\npartition 1\nsettle\nannotate team=a\nreplicas 1\nreplicas 2\ndelete-set Orphan", 34},
		// A pause keeps a broken pod of unknown origin as it is.
		{"replicas 3\nimage app:broken\norphan 12345\npaused true\nimage app:v1", 0},
		// Surge belongs to rolling updates; under OnDelete a pod that was named is replaced in its place.
		{"replicas 3\nsettle\nmaxSurge 1%\nstrategy OnDelete\nspecify b", 0},
		// A manager whose cache stays in the past wants to change a revision that another has changed.
		{"replicas 3\nclaims data\nhook preDelete!\nsettle\nrewind 17\nannotate team=a\nmanagers 2\nsettle", 5523},
		// One of two managers made a pod for a set that left it behind; the other gives it to the set of the same name that follows.
		{"identity Ordinal\nclaims data\nimage app:v1\nimage app:v1\nreplicas 1\nrestart\nrewind 0\nimage app:v1\nrun 0s\ndelete-set Orphan\nimage app:v2\n" +
			"managers 2\nonDeadline Rollback\ndelete-set Orphan\nrun 7s\nreplicas 6\ndelete-set Background\nonDeadline Hold\nforget\nstranger 4\n" +
			"label zone=b 2\ncreate-set", 482491},
		// A claim goes with the pod that it was handed to, and a manager whose cache begins before that wants to use it.
		{"replicas 3\nclaims data\nsettle\nreplicas 1\nimage app:v2\nrestart\nrun 1.5s\nrewind 13", 741097},
		// A set adopts pods of another, whose names it would not choose itself, and a manager whose cache begins before that makes its own.
		{"replicas 3\nminReady 0\ndelete a\nimage app:v1\nsettle\ndelete-set Orphan\ncordon\nsettle\ncreate-set\nimage app:v1\nreplicas 0\nrestart\n" +
			"delete a\ndelete a\nforget\nrun 0s\nreplicas 2\nreplicas 3\nrewind 7\nspecify j\nrewind 29", 2},
		// Surge is wanted at a revision whose claim templates were removed.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nno-claims data\nmaxSurge 1%\nforget-claims", 15376},
		// The claims of three pods are there, and of two the pods, which a manager does not see that is to have one.
		{"replicas 3\nclaims data\nrun 0s\nrewind 9 Pod\nreplicas 1", 125},
		// An unused revision changed before it could be deleted, and nothing else happens to the set.
		{"replicas 3\nsettle\nhistory 0\nimage app:v2\nminReady 1\nenv A=1", 33406},
		// A manager whose cache stays in the past wants to reject a revision that another has changed.
		{"replicas 3\nclaims data\nonDeadline Rollback\nstrategy OnDelete\nsettle\nimage app:broken\nreplicas 6\npodsToDelete c\nmanagers 2\ntamper a", 3045},
		// The cache shows no pods of a set, but that its claims are on their way out; what it does not show is that the set goes.
		{"replicas 3\nclaims data\nsettle\nrewind 21\ndelete-set Background", 187},
		{"replicas 3\nclaims data\nsettle\ndelete-set Foreground\nimage app:v2\nsettle\nrewind 14", 910115},
		// A manager whose cache begins in the past learns of one edit after the other, and undoes each time what it made.
		{"replicas 3\nmanagers 2\nsettle\nrewind 9 Pod\nfail a\nreplicas 4\nimage app:broken\nlose a\nannotate team=b\nleave\ncpu 64", 4},
		// A user closes the gate of the one pod that is available, and it is replaced before its kubelet has seen that.
		{"replicas 3\nclaims data\nhook preDelete!\nrun 2s\nenv A=1\nmanagers 2\nclose-gate a", 1048576},
		// A pod with two claims goes back to a revision that has one template of them.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"settle\npartition 3\nclaims log\nreplicas 5\npodsToDelete a b\nsettle\nstranger btr7l\npartition 4\nclaims data\nmaxSurge 2\n" +
			"garble-revisions\nno-claims data", 360729},
		// Two claims of one name lose their labels, one after the other.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nsettle\npolicy InPlaceIfPossible\n" +
			"hook inPlaceUpdate 30 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nimage app:v3\nold-class growing\nforget-update\n" +
			"rewrite claims apps.rollset.dev/set-\ncordon-node a\nsettle", 22},
		// Two managers at once update more pods in place to a bad template than the limits allow.
		{"replicas 3\nclaims data\nreplicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nmanagers 2", 910},
		// Surge waits in its order while a member may be deleted already.
		{"identity Ordinal\nhistory 0\nreplicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nannotate team=a\n" +
			"cordon-node a\nsettle\nimage app:v4-mirror\ngate A False\nimage app:v2\nkill 2\nforget\nforge hash 1\ndelete-set Orphan\n" +
			"scatter zone=a\nunspecify 4\nsettle\nstart 1", 25658},
		// A pod that waits for its node goes to another revision, and the next one of its name gets a label and its gate too.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal! 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"defaults written\nmaxSurge 2\npodsToDelete a b\nrelabel b\nsettle", 5},
		// A revision is proven and the one before it no longer needed, no status can be written, and the next template takes effect.
		{"replicas 3\nclaims data\nhistory 0\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 1 Hold\nmark a b c 0 1 2\nimage app:v2\n" +
			"run 2s\npromote 1\nminReady 4\norphan xpb4r\nimage app:v2\nneighbors 0 0\nkeep-node a\nquota none\nstranger qdl8b\n" +
			"defaults written\nallow\nonStepFailed Hold\npartition 100%\nmark d\nresync\nsettle\nresync\ngrace 2\nhistory 0\n" +
			"image app:missing\ngate A False\nsettle", 17907},
		// A clock is set back while a hook holds a pod, and the note of when that began is garbled.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nhistory 0\nsettle\npolicy Recreate\nhook preDelete! 4 Proceed\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nskew -20s\nmisdate 0\nsettle", 0},
		// Surge is prepared for its deletion while the others are updated in place one after the other.
		{"replicas 5\nmaxUnavailable 1\nmaxSurge 1\nsettle\npolicy InPlaceIfPossible\nhook preDelete 30 Proceed\nimage app:v2\nrun 30s\n" +
			"mark a b c d e f\nimage app:v3\nmaxSurge 0\nsettle", 1},
		// Managers restart again and again while a pod whose update in place is never proven is prepared for its deletion.
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook preDelete! 30 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nneighbors 0 4\n" +
			"reject c\nrun 5.5s\nresize 300m b 1\nsettle\nimage app:v1\nimage app:v2-again\ndeadline 28\nsettle", 93},
		// Surge has become a member, and no pod has been available for a minute when the guard lets broken ones pass.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nhistory 0\nsettle\n" +
			"policy InPlaceIfPossible\nhook preNormal! 30 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nstart 3\nbusy 30s\nclass fixed\n" +
			"reject 3\ncordon-node a\nsettle", 13},
		// A clock that was ahead has seen a pod as available, and nothing happens until it is.
		{"identity Ordinal\nminReady 1\npolicy InPlaceIfPossible\nskew 1s\nsettle", 0},
		// The revision of an earlier set has the name of the one that a set, or what a manager takes for one, wants to record.
		{"identity Ordinal\nrun 1.5s\norphan 1\ndelete-set Orphan\nsettle\ncreate-set\nsettle", 2},
		{"replicas 3\nrun 4s\nmaxUnavailable 0\nimage app:v2\nfail b\nmanagers 2\ndeny\nsettle\nrewind 2\ndelete-set Orphan", 100},
		// A manager that does not see its last pod makes one of the new ordinals before it takes one of the old.
		{"identity Ordinal\nminReady 1\nreserve 0\nsettle\nrun 500ms\nreplicas 4\nrun 10s\nrewind 9 Pod\nreserve 1", 1048576},
		// A set that is deleted gives a revision away that the manager, behind, has no more need of.
		{"replicas 3\nsettle\nimage app:v2\nsettle\nhistory 0\ndelete-set Orphan", 4},
		{"replicas 3\nsettle\nimage app:v2\nsettle\nhistory 0\ndelete-set Orphan", 9},
		// A cache begins before it was noted that the first revision is complete, and shows the second one already.
		{"replicas 3\nrun 500ms\nimage app:v2\nrun 200ms\nimage app:v1\nsettle\npartition 2\nimage app:v2\nsettle\nrewind 20 ControllerRevision\nrun 1m", 4},
		// Surge that a quota refuses does not let more pods be broken.
		{"replicas 3\nclaims data\nmaxUnavailable 50%\norphan 12345\nquota 2\nmaxSurge 2\nsettle", 0},
		// Claims that were made for a pod whose name a foreign pod has are free when that leaves, while a pod is recreated.
		{"replicas 3\nclaims data\nreplicas 3\nstranger btr7l\nsettle\napi-default\nimage app:v1\nleave\nimage app:v2", 2},
		// A claim was made, and its answer lost, so no pod was made for it. A rollout recreates another pod with its own claim.
		{"replicas 3\nclaims data\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ndomains zone\nmaxUnavailable 2\nsettle\n" +
			"create-set\ncrash e 2s\nlabel zone=b e\nundate b\ndomains zone", 101063026},
		// In the midst of a rollout the API server refuses one pod, and is asked again although there are pods like it.
		{"replicas 4\nmaxSurge 1\nmaxUnavailable 0\nsettle\nimage app:v2\nrun 1s\ndeny-image app:v2\nrun 5s\nallow\nsettle", 0},
		// A set is deleted that no pod could be made for.
		{"replicas 3\nclaims data\nrewrite pods owner-\nrun 500ms\ndelete-set Foreground", 0},
		// A policy takes from surge what makes it surge: its mark, or its revision.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\nsettle\nrewrite pods apps.rollset.dev/surge-\nimage app:v2\nsettle", 0},
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\nsettle\npolicy Recreate\nhook preNormal! 1 Proceed\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nrewrite pods controller-revision-hash-\nsettle", 1},
		// The last of many refused deletes meets another fault.
		{"replicas 3\nsettle\nrun 1m\nimage app:v2\nrun 500ms\nweight 1 zone=a\ngarble-revisions\ndefaults written\nrefuse any a throttled\nsettle", 6},
		// Recreate deletes all old pods while surge, which has the new template, goes.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\nsettle\npolicy Recreate\nhook preNormal 1 Proceed\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nstrategy Recreate", 1},
		// A pod that was named as surge may serve on a node that does not answer.
		{"replicas 3\nsettle\npolicy Recreate\nhook preNormal 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nforge surge=true c\nzone-down c\nsettle", 1048576},
		// The only pod of a step was updated in place without a proof, and is recreated once surge has come.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preDelete 30 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"fail a\nimage app:v2-again\nlose-status\ndefaults written\nsteps 1,soak=2\nmaxSurge 1\nsettle", 6651},
		// A policy takes the set's revisions from it, and a patch of a pod gets no answer.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 30 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"rewrite revision owner-\nrefuse patch c hang\nscaleMaxUnavailable 0\nsettle", 20},
		// A policy takes pods from the set while they are updated in place.
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook preNormal 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nrewrite pods app=other\nsettle", 7},
		// The name of the only place was given to a pod that a policy took from the set, and no revision was ever proven.
		{"identity Ordinal\nsettle\npolicy Recreate\nhook preNormal 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nstart 1\nrewrite pods app=other\nsettle", 275},
		// A set is scaled to zero while it may not release a pod.
		{"replicas 3\nclaims data\nbudget Auto\nsettle\nrelabel a\nreplicas 0\nmaxSurge 0\nimage app:v1\nrefuse patch pods webhook\ndeny\nsettle\n" +
			"replicas 5\nimage app:v2\nstranger btr7l\nsettle\nforge-claims set a\nreplicas 0\nsettle", 7},
		// A manager that crashes again and again meets the pods that a policy took from the set.
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nsettle\n" +
			"garble-revisions\nundate c\nrewrite pods owner-\nmaxSurge 2\nminReady 3\npodsToDelete b c d\nsettle", 361629},
		// A set has lost a pod that it gave away, and others keep the manager busy.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nsettle\npolicy Recreate\n" +
			"hook preNormal! 30 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nreplicas 0\nforget-update\nstart 0\nrestart\nimage app:v1\n" +
			"garble-revisions\nneighbors 40 3\nuncordon\nlose 4\nreserve 0\npodsToDelete\nmake-budget other app=other\nimage app:v1\n" +
			"forge-claims set 0\ndelete 2\nimage app:quorum\ndelete-set Orphan\nsettle", 1},
		// Surge is refused after each crash of a manager, and others let it crash.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate 4 Proceed\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nmaxSurge 1%\nneighbors 0 4\ndeny-image app:v2\nsettle", 1},
		// Recreate deletes a pod whose template differs by what the API server adds.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\nrun 1m\npolicy InPlaceOnly\nreplicas 2\napi-default\nsettle\n" +
			"strategy Recreate\nstart 2\nmanagement OrderedReady\nsettle", 36},
		// A plan recreates the pod for which a revision is rejected.
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook preNormal 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nzone-down a\n" +
			"onDeadline Rollback\nsettle", 1},
		// A pod was named as surge, and other surge has just come.
		{"replicas 3\nsettle\npolicy Recreate\nhook preDelete! 4 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\npodsToDelete\nforge surge=true a\n" +
			"order rank\nmaxSurge 50%\nsettle", 21881},
		// An older CRD lacks a field of the status, and two managers write the others in turn.
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook preNormal 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nmanagers 2\n" +
			"rewrite status selector-\nsettle", 0},
		// A pod on a node that leaves waits for surge, and a policy refuses the template that it is to have.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\non-drain Replace\nsettle\ncordon-node a\nreplicas 1\n" +
			"orphan 0\nimage app:v1\ndefaults left-out:app:v3\nstorage 1Gi\ndeny-image app:v2\nquota 2\nneighbors 40 0\nquota none\n" +
			"specify 0\nrestart\ndeny-image app:v3\nquota none\nmanagers 2\nquota none\nclass growing\ndeadline 18\nrewrite pods app-\n" +
			"podsToDelete\nunspecify 6\nsettle", 4266},
		// Each pod that could be deleted is denied, and a hook has prepared the last one.
		{"replicas 3\nsettle\npolicy Recreate\nhook preDelete 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nrefuse delete pods forbidden\nsettle", 0},
		// A lost pod came at the current revision. To move it would leave no room for its successor at the update revision.
		{"replicas 3\nsettle\nhook preNormal! 30 Hold\nimage app:v2\nforge surge=true b\nmaxSurge 4\nsettle", 0},
		// A member that was refused takes no turn of one that a move has emptied.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\ndomains zone\nmaxUnavailable 2\nsettle\n" +
			"steps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nreplicas 4\nsettle", 3353},
		// A pause would bring a pod back at a revision whose template is lost.
		{"claims data\non-drain Replace\nsettle\ncordon-node a\nsettle\npaused true\nforget-update\nimage app:v2-again", 23},
		// The same for random names.
		{"replicas 3\nsettle\npolicy Recreate\nhook inPlaceUpdate! 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\npodsToDelete a\n" +
			"expensive a\npaused true\nrestart\nforget", 524},
		// A pod is added while another is recreated, so that the set never had all its pods at once.
		{"replicas 3\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\norphan 12345\n" +
			"image app:v2\nmaxUnavailable 3\norphan xpb4r", 415},
		// A pod below the partition goes back while one above it comes.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\npolicy Recreate\nhook preNormal 1 Proceed\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nbusy 5s\nreplicas 2\npartition 1\nsettle", 0},
		// A policy cannot change labels by a resize.
		{"replicas 3\nclaims data\non-drain Replace\nsettle\ncordon-node a\nrewrite pods app=other\nresize 300m a 0", 1048576},
		// The note that a revision is proven is refused.
		{"run 2s\npartition 2\nrefuse patch revision conflict\nimage app:v3-bare\nsettle", 1},
		// A status says what it said a moment ago, with another one between.
		{"replicas 3\npolicy InPlaceIfPossible\nrewrite status selector-\nquota 2\nsettle", 1},
		// Of two pods that go in one second, one leaves no place, and it is not known which.
		{"replicas 3\nclaims data\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ncordon-node a\n" +
			"defaults written\npodsToDelete b c d\nforget-claims\norphan 12345\nonStepFailed Rollback\nimage app:v1", 601404},
		// A set is created again beside the pods that it left, and keeps no history.
		{"identity Ordinal\nhistory 0\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"delete-set Orphan\nsettle\ncreate-set\nsettle", 0},
		// A pod that was never available is replaced, and its successor inherits whose place that is.
		{"replicas 3\non-drain Replace\nsettle\ncordon-node a\npartition 2\ndomains zone\nmaxUnavailable 100%\npodsToDelete b\n" +
			"image app:broken\nneighbors 40 3", 9045},
		// A pod that was never available is updated in place, in the place of another domain.
		{"replicas 3\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nrelabel e\n" +
			"scatter zone=b\nmisdate d\nreplicas 5", 391},
		// A pod is available again, and the cache of the manager does not show it yet.
		{"replicas 3\nhistory 0\nsettle\nrun 1m\nimage app:v2\nrun 500ms\nrestart\ncordon\nsettle\nrestart\nreplicas 1\nsettle\nreplicas 2", 11},
		// An update in place is given up beside a pod that waits for a hook.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preNormal 30 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"quota none\nzone-down c\nclass fixed\nkill a\ntolerate\nsettle", 56818},
		// A pause replaces pods at their revision, more of them than the partition allows.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 30 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"podsToDelete a b\npartition 50%\npaused true", 567076},
		// The same where the successors have other names.
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook preNormal 30 Proceed\nmark a b c 0 1 2\nimage app:v2\npaused true\n" +
			"podsToDelete a b\npartition 2", 29},
		// A pod that a user named waits for surge, and a policy refuses the template that its successor is to have.
		{"replicas 3\nmaxUnavailable 0\nmaxSurge 1\nsettle\nquota 3\npartition 2\ndeny-image app:v2\nimage app:v2\npodsToDelete b\nsettle", 1},
		// Dry runs of creates never answer, and those of two revisions take turns.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\nsettle\npolicy InPlaceIfPossible\nrun 2s\n" +
			"refuse create pods hang\ncpu 1\nforge hash 0\nsettle", 1048576},
		// A surge pod that starts becomes a member because the range of ordinals moves.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\ndomains zone\nmaxUnavailable 2\nsettle\n" +
			"steps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nspecify 1\nstart 1\nsettle", 1},
		// The key of the domains changes while a pod of the set has never been available.
		{"replicas 3\nclaims data\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\ndomains rank\nmanagers 2", 15955},
		// A manager whose cache is old is told by an answer to which revision another one has moved a pod.
		{"replicas 3\nclaims data\nhistory 0\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"managers 2\nsettle", 1},
		// Of two pods that terminate for long, one has its successor already.
		{"replicas 3\nhistory 0\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nlose d\n" +
			"annotate kubectl.kubernetes.io/restartedAt=1\nminReady 4\nrun 3.5s\nimage app:broken", 0},
		// A delete is not answered, and surge is no longer needed before the cache shows that it happened.
		{"replicas 3\nhistory 0\nbudget Auto\nsettle\nannotate kubectl.kubernetes.io/restartedAt=1\nimage app:v2\nmaxSurge 2\npodsToDelete b\n" +
			"forge state=Updating a\ndisown-budget web", 1},
		// A delete of surge met a conflict, and the surge is the only pod that stands in for a member.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nsettle\npolicy Recreate\n" +
			"hook inPlaceUpdate 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nimage app:quorum\nforget\nresize 300m a 0\non-drain Replace", 1},
		// A pod is released whose name its successor cannot have, and another one is added at the same time.
		{"replicas 3\nclaims data\nhistory 0\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\nabort\n" +
			"minReady 2\nrelabel f\nreplicas 5\ngarble-revisions\nenv A=1\ndomains zone 2\nreplicas 4\ngate A True\npodsToDelete b c d", 995249},
		// A user deletes the revision that is being rolled out, long after its deadline, and asks for rollbacks.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal! 4 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\ndelete a\npodsToDelete a b\n" +
			"settle\nimage app:v4-mirror\nimage app:v3-bare\nimage app:v4-mirror\npolicy InPlaceOnly\nsettle\nonDeadline Rollback\nforget-update\nrestart", 0},
		// A user names surge that comes in order, and a higher one comes at the same time.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\nhistory 0\nsettle\npolicy Recreate\nhook preDelete! 1 Hold\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nsettle\nmaxSurge 2\nspecify 3", 1749},
		// A delete is not answered, and then its pod becomes available and stays.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preDelete 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nsettle\n" +
			"image app:v2-again\nzone-down c\nmaxSurge 4\nsettle", 4},
		// A partition keeps the claims of two pods with random names, also when others would come first later.
		{"replicas 3\nclaims data\nsettle\nrun 1m\nattributes gold\npartition 2", 1},
		// A policy takes the owner off new pods. The first one is adopted, and waits for the second.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nrewrite pods owner- create\nreplicas 2\nimage app:quorum\nsettle", 4},
		// A partition keeps the claims of ordinals while the range moves and a place has no pod.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nhistory 0\nsettle\nrun 1m\nreserve 0\ndeny\nsettle\n" +
			"attributes silver\npartition 50%", 4},
		// The answer to an update of metadata shows that another manager has deleted the pod.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal 4 Hold\nimage app:v2\nrun 2s\nrewind 9 Pod\nsettle\nmanagers 2\n" +
			"annotate team=a\nbusy 5s\nneighbors 40 3\nlabel rank=2 b", 1},
		// One of two managers notes that the first revision serves, and the other one does not see that yet.
		{"settle\nhook preDelete 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nmanagers 2\nforget-update\npartition 100%\nreserve 1", 93859},
		// A pod of an update with surge is surplus, cannot be deleted, and is no longer surge under another policy.
		{"replicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nforget-update\nretry\nreplicas 1", 58125},
		// A pod is released that its manager never saw on its node as one of the set's, and its successor comes to another domain.
		{"replicas 3\ndomains zone\nmaxUnavailable 2\nsettle\nimage app:v2\nsettle\nrelabel b", 22},
		// The same after another domain has begun.
		{"replicas 6\ndomains zone\nmaxUnavailable 2\nsettle\nimage app:v2\nrun 500ms\nrelabel b\nrestart", 36},
		// Pods of two domains are missing at the same time, and nothing says which of the new ones takes whose place.
		{"replicas 6\ndomains zone\nmaxUnavailable 2\nsettle\nimage app:v2\nrun 5s\nrelabel b", 81},
		// A user marks a pod as surge whose claim is a member's, and names it among surplus pods.
		{"replicas 3\nclaims data\nsettle\nhook preNormal\nimage app:quorum\nstorage 2Gi\nforge surge=true b\norphan 12345\npodsToDelete a b\n" +
			"label zone=a a\nmaxSurge 1%", 12},
		// Of two pods that a user named one is to come at the update revision, and both wait for surge that a policy alters.
		{"replicas 3\nsettle\nimage app:v2\nmaxSurge 2\npartition 99%\npodsToDelete b c d\nrewrite pods controller-revision-hash=other\nsettle", 1},
		// A set whose revision was never proven is deleted, and its manager does not know that yet.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal! 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nclaims log\ndeny\n" +
			"image app:v3\ndelete b\nsettle\nenv A=2\nmaxSurge 1%\npodsToDelete\nsettle\ndelete-set Orphan", 1254},
		// The last try of a write that a policy refuses gets no answer.
		{"replicas 3\nsettle\nneighbors 0 4\ndeny\nkill a\nsettle", 101},
		// A partition keeps pods at a revision whose owner a policy has taken away.
		{"replicas 3\nsettle\nimage app:v2\nrun 2s\npartition 100%\nrewrite revision owner-\ngarble-revisions", 0},
		// A policy kept a revision from being the set's while it was proven, and the set has no replicas when it may be.
		{"replicas 3\nsettle\nrewrite revision owner-\nimage app:v2\nsettle\nenv A=1\nreplicas 0", 0},
		// The cache of a manager that starts shows an old template, of a revision that never worked.
		{"cordon\nreplicas 1\nsettle\nimage app:v2\nsettle\nreplicas 0\nrewind 16", 1},
		// A revision misses its deadline by the clock of a manager, which is behind.
		{"replicas 1\nonDeadline Rollback\nmaxUnavailable 1\npolicy InPlaceIfPossible\nsettle\nskew -20s\nimage app:broken\nsettle", 1},
		// A user names an updated pod in a pause, and it is replaced at its own revision beside surge that starts.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preNormal 30 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"podsToDelete b c d\nbusy 30s\npaused true\nmaxSurge 1%", 0},
		// A pod that is to be replaced in a pause cannot be deleted, and surge stays beside it.
		{"replicas 3\nhistory 0\non-drain Replace\nsettle\ncordon-node a\nmaxSurge 2\nrefuse any a invalid\npaused true\nsettle", 74},
		// A pod is moved in place, and the same plan deletes the surge that counts against that.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nsettle\npolicy InPlaceIfPossible\n" +
			"hook preNormal 30 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\npolicy InPlaceOnly\nsettle", 886863},
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nsettle\npolicy Recreate\n" +
			"hook preNormal 4 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nstart 2\nsettle\nreplicas 2\nmemory 128Mi\nsettle\nstart 1\nsettle", 195},
		// Surge at a revision that is no longer wanted goes, and is no member that moves.
		{"replicas 3\nclaims data\nhistory 0\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 30 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"maxSurge 50%\nrewrite pods app-\ncordon\nimage app:v4-mirror\nforget-claims\nlose a\nsettle", 10},
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preNormal! 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"maxSurge 50%\nimage app:quorum\npodsToDelete a b\nimage app:v2-again\nmaxSurge 3\nlose c\ncordon\nreplicas 6\nsettle", 83},
		// Pods have a revision that is lost, and its template was recorded again under another name.
		{"replicas 3\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 1 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"api-default\ndomains zone 2\nforget\nmislabel a\nsettle\n" +
			"settle", 1090},
		// A policy has taken the current revision from the set, so that lost pods come at that of the spec.
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook preNormal 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"rewrite revision owner-\nreplicas 6\ngarble-revisions\nsettle", 98895},
		{"replicas 3\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate 30 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"rewrite revision owner-\nenv A=2\nsettle\nenv A=1\nreplicas 6\nsettle", 16},
		// A fault of chance meets the first delete of a pod, whose hook it need not wait for, after a policy has ended.
		{"replicas 3\nsettle\npolicy Recreate\nhook preDelete 1 Proceed\nmark a b c\nimage app:v2\nrun 2s\nrefuse delete pods forbidden\n" +
			"run 2m\nsettle\npermit\nsettle", 174},
		// The clock of a manager is set ahead while it waits to label a claim once more.
		{"replicas 3\nclaims data\nrewrite claims apps.rollset.dev/set-\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 1 Hold\nmark a b c 0 1 2\n" +
			"image app:v2\nrun 2s\nclaims data\nskew 1s\nclaims data\nsettle", 0},
		// A delete is not answered and happens late. The template that the pod was to get is taken back, and a node is cordoned meanwhile.
		{"replicas 3\npartition 50%\non-drain Replace\nsettle\nleave\ncreate-set\nforget\nimage app:v1\ncordon-node a\nlose-status\ntolerate\nsettle", 2},
		// A delete is not answered, and the cache shows it later than the manager waits for it.
		{"replicas 3\nsettle\nrun 1m\nimage app:v2\nrun 500ms\nspecify a", 234},
		// A pod without claims is adopted in the place of a pod that has some. They do not go to the pods that are replaced then.
		{"replicas 3\nclaims data\nhistory 0\non-drain Replace\nsettle\ncordon-node a\ndomains zone 2\npaused true\ncordon-node b\nzone-down a\n" +
			"partition 1\nstranger qdl8b\nstranger btr7l\nkill c\nresync\norphan xpb4r", 1},
		// In a pause a user names the only pod of a revision that is not kept, and its successor comes at that revision.
		{"replicas 3\nclaims data\nhistory 0\nsettle\npolicy Recreate\nhook preNormal 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"paused true\nimage app:v1\npodsToDelete b c d", 0},
		// The clock of a manager is set back before the first look at a revision, whose deadline then passes.
		{"identity Ordinal\nclaims data\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate! 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"zone-down a\nonDeadline Rollback\ndefaults written\nretry\nskew -20s\nsettle", 1},
		// A broken template has surge, and the first member is released. Its name is taken, and the others come in order.
		{"identity Ordinal\nreplicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nrestart\nsettle\nrelabel 0", 1},
		// It cannot be seen later that a pod runs its new image, and it waits for the next one when its manager starts again.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\npolicy Recreate\nhook preNormal 1 Proceed\nmark a b c 0 1 2\n" +
			"image app:v2\nrun 2s\nlose-status\npolicy InPlaceOnly\npodsToDelete\nimage app:v2\nreplicas 3\norphan 0\nkeep-node b\n" +
			"on-drain Replace\nrewrite claims owner- create\nkill 3\nkill 6\ncordon-node b\ncordon\nimage app:v4-mirror\nreplicas 5\n" +
			"cordon\nsettle\nreplicas 2\ndeny-image app:v3\ncpu 64", 1},
		// A pod is adopted whose ordinal is above those of missing pods, and it is replaced.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\n" +
			"image app:v2\nsettle\norphan 3\nannotate team=a\nresync\nreplicas 4", 1237},
		// Two managers prepare a pod, and the clock of one is a second behind.
		{"replicas 3\nsettle\npolicy Recreate\nhook preDelete 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nskew -1s\nmanagers 2\nsettle", 304},
		// A pod of a quorum waits for others that no node takes.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nreplicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\n" +
			"run 30s\ncordon\npolicy InPlaceIfPossible\nstart 3\nimage app:quorum\nsettle", 1},
		// The cache of a new manager does not show the current revision, so that no lost pod can come back at it.
		{"identity Ordinal\nmanagement Parallel\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 2\nhistory 0\non-drain Replace\nsettle\n" +
			"cordon-node a\nrestart\nimage app:v2\nimage app:v3\nsettle\nrewind 36\nreplicas 4\nimage app:v1\nsettle", 725591},
		// A pod is prepared for its deletion because its update was not proven, and serves again. Surge comes before it goes.
		{"identity Ordinal\nsettle\npolicy InPlaceIfPossible\nhook preDelete 4 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nzone-down a\n" +
			"settle\nmaxSurge 1%", 9405},
		// Surge comes for a template with which no pod starts, beside a pod that has ended and that a hook holds.
		{"replicas 3\nsettle\npolicy Recreate\nhook preDelete 4 Hold\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nreject b\ncordon\nmaxSurge 4\nsettle", 641944},
		// A move takes a pod for a revision that is not kept, and another template comes before its successor, which a limit holds.
		{"replicas 3\nclaims data\nhistory 0\nsettle\npolicy Recreate\nhook preDelete 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"cpu 64\nscaleMaxUnavailable 0\nzone-down a\nreplicas 6", 41},
		// Pods at the current revision find no node, and the API server refuses the claims that the update revision adds.
		{"replicas 3\non-drain Replace\nsettle\ncordon-node a\nclaims data\nrefuse create claims throttled\nreplicas 6\ncordon\nsettle", 76},
		{"replicas 3\nsettle\nclaims data\nrefuse create claims quota\nreplicas 6\ncordon\nsettle", 1},
		// A pod that has ended keeps its place beside surge, and a rollback updates two others in place.
		{"replicas 3\nreplicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\nimage app:v1\ndelete a\nfail c", 2},
		// A pod that never was available is recreated in its predecessor's failure domain.
		{"replicas 3\nclaims data\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\n" +
			"delete a\nreplicas 3\norder rank\nzone-down a\nminReady 0\nrewrite pods apps.rollset.dev/instance-id-\nforge-claims left=true d\n" +
			"replicas 5\nstorage 3Gi\nsettle\ncordon\ndefaults left-out:app:v3\nlabel rank=2 c\nquota 2\nforget-update\nleave\n" +
			"hook inPlaceUpdate 4 Proceed\nimage app:broken\nresize 300m d 3\nsettle\n" +
			"settle", 1048576},
		// A cache that is more than a minute old shows a pod that has never been ready.
		{"identity Ordinal\nclaims data\nsettle\npolicy Recreate\nhook preNormal 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\n" +
			"replicas 3\nforge index=1 0\nresize 300m b 1\nmanagement Parallel\nimage app:v1\nimage app:v2\nrewind 14", 79},
		// All pods are lost while a template is broken, and no more may be unavailable than those that came at it.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\npolicy InPlaceIfPossible\nhook inPlaceUpdate! 30 Proceed\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nunspecify 2\npermit\ngate B Unknown\nimage app:broken\nreplicas 6\nfail 3\n" +
			"forge hash=none 6\ncrash a 0s\nunspecify 3\nrewrite pods app- create\nuncordon\nforge surge=true 3\nscaleMaxUnavailable 3\n" +
			"zone-up\nneighbors 40 3\nstorage 3Gi\nquota 2\nrewind 9 ControllerRevision\nweight 0 zone=a\nrelabel 0\nsettle", 25},
		// A patch of a pod has no answer, and the kubelet writes that pod before it arrives.
		{"identity Ordinal\nreplicas 3\nmaxUnavailable 1\nmaxSurge 2\nsettle\nimage app:broken\nrun 30s\npodsToDelete\nkill 0\nrewind 11", 100473},
		// A hook keeps the only pod back, and another one is added.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\npolicy Recreate\nhook preNormal! 1 Hold\nmark a b c 0 1 2\n" +
			"image app:v2\nrun 2s\nsettle\nreplicas 2\nsettle", 0},
		// A manager crashes just before an update in place has had its time.
		{"replicas 3\nhistory 0\nsettle\npolicy InPlaceIfPossible\nhook preDelete 4 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\nsettle\n" +
			"restart\nsettle\nmaxSurge 1\nrestart\nimage app:v2-again", 10},
		// A policy takes the label of their revision from all new pods, which find no node.
		{"replicas 3\nhistory 0\nsettle\nrun 1m\nimage app:v3-bare\ncordon\napi-default\ntamper a\n" +
			"rewrite pods controller-revision-hash-\nmaxSurge 4\nsettle", 93},
		// Surge that has become a member is broken at both revisions, and was created before the newer one.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\nsettle\npolicy InPlaceIfPossible\nhook preNormal! 4 Hold\n" +
			"mark a b c 0 1 2\nimage app:v2\nrun 2s\nforge state=nonsense 0\nstart 3\nimage app:slow\ndeny-image app:v2\nstart 2\nexpensive 1", 12},
		// A manager crashes again and again while the name of the only pod is taken.
		{"identity Ordinal\nclaims data\nbudget Auto\nsettle\nimage app:v1\nzone-up\nreserve 1-2\nzone-up\nrelabel 0\ngarble-revisions\nleave\n" +
			"neighbors 0 4\nspecify 4\nunmark 5\nabort\nforget-claims\nslow-collector 20s\nhistory 2\npartition 2\n" +
			"annotate kubectl.kubernetes.io/restartedAt=2\nforget\ncordon-node a\nundate 1\nfail 0\nsettle", 1},
		// Recreate takes a pod out of range whose revision is lost, and whose template gives another pod since the API server has a default.
		{"identity Ordinal\nreplicas 3\nclaims data\nmaxUnavailable 0\nmaxSurge 1\ndomains zone\nmaxUnavailable 2\nsettle\n" +
			"steps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\n" +
			"settle\nstrategy Recreate\nsettle\nreplicas 2\nabort\napi-default\n" +
			"forget-update\nstorage 1Gi\nresync\nrefuse delete claims quota\ndeny-image app:v2\ndeny-image app:v3\nrestart\n" +
			"management OrderedReady\nwhenDeleted Delete\nkill 0\nreserve 2,4\nforge surge=true 3\nstart 0\nzone-up", 1670},
		// All pods of a bad template were recreated at once, and are corrected under another strategy.
		{"replicas 3\nclaims data\nsettle\npolicy Recreate\nhook preDelete 1 Proceed\nmark a b c 0 1 2\nimage app:v2\nrun 2s\ndefaults left-out\n" +
			"settle\ndeny-image app:v3\nweight 1 zone=a\nsettle\n" +
			"settle\nquota none\nlabel-back b\nstranger btr7l\nstrategy Recreate\nreject j\nuncordon\nresize 300m b 1\nquota 2\n" +
			"rewind 9 ControllerRevision\nimage app:missing\norphan xpb4r\nresize 300m c 2\nquota none\nrestart", 25},
		// One member can never come, and the others are broken at both revisions.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\nrun 1m\nimage app:v2\nrun 500ms\nmaxUnavailable 0%\n" +
			"image app:v2-again\nrefuse any 2 forbidden\nreplicas 5\ncordon\nsettle", 1},
		// A manager that has started again meets empty places. It cannot know whose they were.
		{"identity Ordinal\nmanagement Parallel\nclaims data\nclaims log\nsettle\npolicy Recreate\nhook preNormal! 1 Proceed\nmark a b c 0 1 2\n" +
			"image app:v2\nrun 2s\ndeadline 8\nimage app:v2\nstart 3\ndefaults left-out\nstart 3\nreserve 1-2\nresync\nmark 0\n" +
			"management Parallel\nstranger 3\nrewrite pods app=other create\nstart 3\nsettle\ntaint-node a karpenter.sh/disrupted\n" +
			"slow-collector 2m\ndeadline 8\nreplicas 5\nrewind 9 ControllerRevision\nimage app:v3-bare\norphan 6\nsettle", 1},
		// A plan moves a pod that was added and has not been available yet, and one of another failure domain.
		{"replicas 3\ndomains zone\nmaxUnavailable 2\nsettle\nsteps 1 2 3,pause 100%,gate=B\nimage app:v2\nsettle\n" +
			"settle", 110786},
		// A pod ends while its claim is changed, and the next claim is asked for.
		{"replicas 3\nclaims data\non-drain Replace\nsettle\ncordon-node a\nbudget Auto\nsettle\ntaint-node a karpenter.sh/disrupted\n" +
			"reject d\nattributes gold\nsettle", 11901},
		// The revision of a pod is lost under OnDelete, and the pod gets the label of another one that would give the same.
		{"identity Ordinal\nsettle\nrun 1m\nstrategy OnDelete\nquota none\nreplicas 3\nreserve 1\nannotate kubectl.kubernetes.io/restartedAt=2\nweight 0 zone=a\n" +
			"uncordon\nsettle\nannotate team=b\ncrash c 3s\nabort\ngarble 6\nskew -20s\ndefaults left-out\ntolerate\ncordon-node b\ncrash b 2s\n" +
			"slow-collector 2s\nforget-update\ngarble 0\nsettle", 5},
	} {
		if w, err := live(t.Context(), h.text, h.seed); err != nil {
			t.Errorf("seed %d: %v\n%s\n%s", h.seed, err, h.text, w.Film.last(60))
		}
	}
}

// TestSameHistoryTwice plays histories twice: the same seed gives the same log, to the byte.
func TestSameHistoryTwice(t *testing.T) {
	t.Parallel()
	eachHistory(t, func(t *rapid.T, text string, seed uint64) {
		var logs [2]string
		for i := range logs {
			w, err := live(t.Context(), text, seed)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			logs[i] = w.Transcript()
		}
		if logs[0] != logs[1] {
			t.Fatalf("seed %d: two logs differ\n%s", seed, text)
		}
	})
}
