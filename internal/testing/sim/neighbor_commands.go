// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

const (
	// hangs is how long a request without an answer holds a worker of a manager.
	hangs = 15 * time.Second
	// hangingSets is how many sets a namespace has in which creates of pods get no answer.
	hangingSets = 12
	// edits is how often neighbors edit all their sets after each command of a script, and editEvery the time between two times.
	edits     = 2
	editEvery = 300 * time.Millisecond
	// mostPassed and mostLostPassed are how many sets of one other namespace a manager may look at while the set waits: at most, and
	// when it has lost a pod. Events of the set count for a few looks less than edits.
	mostPassed, mostLostPassed = 12, 3
)

// neighborCommands returns the commands about sets in other namespaces.
func neighborCommands() []command {
	return []command{{"neighbors", 2, inviteNeighbors}}
}

// neighbors are sets in other namespaces. They have no pods.
type neighbors struct {
	world *World
	// noisy is how many sets are edited all the time, and edited how many edits there were. hanging is how many sets have creates
	// that hang.
	noisy, edited, hanging int
	// due are the times at which they are edited next.
	due []time.Time
}

// inviteNeighbors creates sets of another namespace that are edited all the time, and sets in namespaces in which creates of pods
// get no answer: "neighbors 40 3" for 40 of the first and 3 of the last. "neighbors 0 0" deletes them all.
func inviteNeighbors(_ context.Context, w *World, args []string) error {
	noisy, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	hanging, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	w.createSet() // it has the first UID in every history
	w.note("neighbors " + args[0] + " " + args[1])
	sets := slices.Collect(apiserver.Each[*v1beta1.RollSet](w.Store))
	slices.SortFunc(sets, func(a, b *v1beta1.RollSet) int { return cmp.Compare(a.UID, b.UID) })
	for _, set := range sets {
		if set.Namespace != Namespace {
			if err := w.Store.Delete(apiserver.Write{Actor: strangerActor, Verb: apiserver.Delete, Key: apiserver.KeyOf(set)}); err != nil {
				return err
			}
		}
	}
	w.neighbors.noisy, w.neighbors.hanging = noisy, hanging*hangingSets
	for n := range noisy {
		if err := w.neighbors.make("noisy", n, 0); err != nil {
			return err
		}
	}
	for n := range w.neighbors.hanging {
		if err := w.neighbors.make(fmt.Sprintf("slow-%d", n%hanging), n/hanging, 1); err != nil {
			return err
		}
	}
	return nil
}

func neighborName(namespace string, n int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("%s-%d", SetName, n)}
}

func (n *neighbors) make(namespace string, nth int, replicas int32) error {
	set := draft()
	name := neighborName(namespace, nth)
	set.Namespace, set.Name, set.Spec.Replicas = name.Namespace, name.Name, &replicas
	if _, err := n.world.Store.Create(apiserver.Write{Actor: strangerActor}, set); err != nil {
		return fmt.Errorf("make set %s: %w", name, err)
	}
	return nil
}

// act edits the noisy sets a few times, from now on.
func (n *neighbors) act() {
	n.due = nil
	for i := range edits {
		n.due = append(n.due, n.world.Now().Add(time.Duration(i)*editEvery))
	}
}

func (n *neighbors) turns(add func(turn)) {
	if n.noisy > 0 && len(n.due) > 0 {
		add(turn{who: strangerActor, at: n.due[0], take: func(context.Context) error { return n.edit() }})
	}
}

// edit changes the template of each set.
func (n *neighbors) edit() error {
	n.due = n.due[1:]
	n.edited++
	for i := range n.noisy {
		name := neighborName("noisy", i)
		set, ok := n.world.Store.Get(apiserver.Key{Kind: apiserver.RollSets, Namespace: name.Namespace, Name: name.Name}).(*v1beta1.RollSet)
		if !ok {
			continue
		}
		edited := apiserver.Clone(set)
		metav1.SetMetaDataAnnotation(&edited.Spec.Template.ObjectMeta, "example.com/edit", strconv.Itoa(n.edited))
		if _, err := n.world.Store.Update(apiserver.Write{Actor: strangerActor}, edited); err != nil {
			return fmt.Errorf("edit set %s: %w", name, err)
		}
	}
	return nil
}

// waiting counts whom a manager looks at while the set waits.
type waiting struct {
	// lost is true from the event of a pod that is gone until the set is looked at.
	lost bool
	// held is true while a request of the set itself hangs.
	held bool
	// passed counts the sets of other namespaces that were taken meanwhile.
	passed map[string]int
}

// judge judges whom a manager takes: while the set waits, only so many of any other namespace. It also judges whether the set can be
// taken at all: whatever hangs elsewhere, there is a worker for it.
func (m *Manager) judge() error {
	own := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: Namespace, Name: SetName}}
	if m.Working == own {
		m.waits = waiting{held: m.waits.held}
		return nil
	}
	if !m.Queue.Order.Waits(own) || m.waits.held {
		return nil
	}
	if m.waits.passed == nil {
		m.waits.passed = map[string]int{}
	}
	m.waits.passed[m.Working.Namespace]++
	most := mostPassed
	if m.waits.lost {
		most = mostLostPassed
	}
	if n := m.waits.passed[m.Working.Namespace]; n > most {
		return fmt.Errorf("%s took %d sets of namespace %s while the set waits, which has lost a pod: %t", m.Name, n, m.Working.Namespace, m.waits.lost)
	}
	return nil
}

// starved returns what is wrong if the set waits in line, no request of its own hangs, and no worker is free.
func (m *Manager) starved() error {
	own := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: Namespace, Name: SetName}}
	if m.Queue.Order.Waits(own) && !m.waits.held && m.Queue.Len() == 0 {
		return fmt.Errorf("%s has no worker for the set, because of requests of others that hang", m.Name)
	}
	return nil
}
