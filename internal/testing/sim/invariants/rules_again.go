// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"maps"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// lives is what is known of the managers, and of what they have done since they started.
type lives struct {
	// managers holds the names of all managers that were ever started.
	managers map[string]bool
	// born are the versions of the store at which the managers last started.
	born map[string]int64
	// done holds what each manager knows to be done.
	done map[string]done
}

// done remembers which pods a manager has created and deleted in its present life, and when.
type done struct {
	created map[creation]time.Time
	deleted map[types.UID]time.Time
}

// creation is a pod and the set that it was created for.
type creation struct{ pod, set types.UID }

// again returns what is wrong with a write that repeats an earlier one of the same manager. A manager may repeat a
// write only when its cache has not shown it for some time. It may also reuse the names of pods that were released, or
// that belonged to an earlier set of the same name.
func (d done) again(c *Checker, w apiserver.Write, err error) string {
	if w.Key.Kind != apiserver.Pods || w.Subresource != "" || w.DryRun {
		return ""
	}
	recent := func(t time.Time) bool { return !t.IsZero() && c.world.now().Sub(t) < answerTimeout }
	pod, set := c.world.Store.Get(w.Key), c.reconcile.set()
	if w.Verb == apiserver.Create && pod != nil {
		made := creation{pod.GetUID(), OwnerOf(pod)}
		switch {
		case err == nil:
			d.created[made] = c.world.now()
		case apierrors.IsAlreadyExists(err) && set != nil && set.UID == made.set && recent(d.created[made]):
			return "I11 again: " + w.Key.Name + " is created by who created it before"
		}
	}
	if p := w.DeleteOptions.Preconditions; w.Verb == apiserver.Delete && p != nil && p.UID != nil {
		switch {
		case recent(d.deleted[*p.UID]):
			return "I11 again: " + w.Key.Name + " is deleted by who deleted it before"
		case err == nil:
			d.deleted[*p.UID] = c.world.now()
		}
	}
	return ""
}

// answers holds the writes of managers whose answers are late or lost.
type answers struct {
	// latest is the last write of a manager.
	latest *apiserver.Entry
	// sent is when a manager gave up waiting for writes that are still under way. unanswered is the same for writes that were
	// committed, by their versions. A manager counts on them for a while only.
	sent       map[attempt]time.Time
	unanswered map[int64]time.Time
	// lost holds the errors of writes whose last try got no answer.
	lost map[attempt]string
}

// attempt identifies a write while it is under way.
type attempt struct {
	actor string
	verb  apiserver.Verb
	key   apiserver.Key
}

func attemptOf(w apiserver.Write) attempt { return attempt{w.Actor, w.Verb, w.Key} }

// arrives records a write outside of reconciles. If a manager sent it, the manager has given up on the answer.
func (a *answers) arrives(e *apiserver.Entry) {
	since, ok := a.sent[attemptOf(e.Write)]
	if !ok {
		since = e.At
	}
	delete(a.sent, attemptOf(e.Write))
	a.unanswered[e.Version] = since
}

// lose records a write that a manager tried and that got no answer. It may have been committed.
func (a *answers) lose(w apiserver.Write, err *url.Error, now time.Time) {
	a.lost[attemptOf(w)] = err.Error()
	if a.latest != nil && a.latest.Key == w.Key && a.latest.Verb == w.Verb {
		a.unanswered[a.latest.Version] = a.latest.At
	} else {
		a.sent[attemptOf(w)] = now
	}
}

// Unanswered returns the errors of the writes whose last try got no answer.
func (a *answers) Unanswered() []string { return slices.Collect(maps.Values(a.lost)) }
