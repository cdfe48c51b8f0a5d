// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"slices"
)

// replacing returns the revisions of the pods that are replaced in a pause and are on their way out, or are gone and have no
// successor yet. A pause freezes the mix of revisions, so their successors get the same ones.
func (o *observer) replacing() map[string]string {
	m := o.memory
	if !o.out.Paused() {
		m.replacing = nil
		return nil
	}
	going, gone := map[string]string{}, maps.Clone(m.replacing)
	known := map[string]string{}
	for i := range o.out.Replicas {
		r := &o.out.Replicas[i]
		if r.Pod == nil {
			continue
		}
		delete(gone, r.ID)
		switch revision, was := m.replacing[r.ID]; {
		case r.Terminating && m.replacing == nil && r.ToReplace() && !r.Surge: // it was being replaced before the first look in this pause
			going[r.ID], known[r.ID] = r.Revision, r.Revision
		case r.Terminating && was:
			going[r.ID], known[r.ID] = revision, revision
		case r.Active() && r.ToReplace() && !r.Surge:
			known[r.ID] = r.Revision
		}
	}
	ids := slices.Sorted(maps.Keys(gone))
	for _, id := range ids[:min(len(ids), o.out.Limits.Replicas-o.out.Placed())] {
		going[id], known[id] = gone[id], gone[id]
	}
	m.replacing = known
	return going
}
