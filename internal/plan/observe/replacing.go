// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"slices"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
)

// Planned remembers which pods a plan takes so that successors come at a revision.
func (m *Memory) Planned(p *action.Plan) {
	for _, a := range p.Actions {
		d, ok := a.(action.Delete)
		i, known := m.at[d.Pod]
		if !ok || !known || d.To == "" || m.paused {
			continue
		}
		if m.replacing == nil {
			m.replacing = map[string]string{}
		}
		m.replacing[m.replicas[i].ID] = d.To
	}
}

// replacing returns the revisions of the successors of pods that were taken for them, and that are terminating or are gone. A pause
// freezes the mix of revisions: there, each pod that is to be replaced has a successor of its own revision, even if a user deletes it.
func (o *observer) replacing() map[string]string {
	m := o.memory
	first := m.paused != o.snap.Paused()
	if m.paused = o.snap.Paused(); first {
		m.replacing = nil
	}
	taken, next := map[string]string{}, map[string]string{}
	maps.Copy(taken, m.replacing)
	for i := range o.snap.Replicas {
		r := &o.snap.Replicas[i]
		replaced := m.paused && r.Pod != nil && !r.Finished && r.ToReplace() && !r.Surge
		switch {
		case r.Pod == nil:
		case !r.Terminating:
			delete(taken, r.ID)
			if replaced {
				next[r.ID] = r.Revision
			}
		case first && replaced: // it was being replaced before the first look in this pause
			taken[r.ID] = r.Revision
		}
	}
	maps.DeleteFunc(taken, func(id, _ string) bool { return o.snap.Ordinal() && !homes{o}.inUse(id) })
	if len(taken) > 0 {
		ids, vacant := slices.Sorted(maps.Keys(taken)), max(0, o.snap.Limits.Replicas+desired.StandIns(o.snap)-o.snap.Placed())
		for _, id := range ids[min(len(ids), vacant):] {
			delete(taken, id)
		}
	}
	maps.Copy(next, taken)
	m.replacing = next
	return taken
}

// unseen returns how many of the places without a pod may have been emptied by a move before the first look.
func (o *observer) unseen() int {
	m := o.memory
	empty := max(0, o.snap.Reached-o.snap.Placed())
	if m.looked {
		empty = min(empty, m.unseen)
	}
	m.unseen = empty
	return empty
}
