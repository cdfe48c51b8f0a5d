// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"time"

	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// addedLast moves identities behind the others if only the update revision mounts their claims. The first ones get their pods at
// the current revision.
func addedLast(snap *snapshot.Set, ids []string) {
	templates := added(snap)
	if len(templates) == 0 {
		return
	}
	have := make(map[string]int)
	for r := range snap.Unsteady() {
		if slices.ContainsFunc(templates, claimsOf(snap, r)) {
			have[r.ID] = 1
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return have[a] - have[b] })
}

// identities returns the identities of new pods, surge last: first those whose claims are free, then unused ids of the set's
// sequence. Claims that a scale-down left behind come after those of pods that come back. Claims that surge left behind are used
// for surge, and surge uses no others.
func identities(snap *snapshot.Set, missing, surge int) []string {
	taken := make(map[string]bool, len(snap.Replicas))
	for id := range snap.Blocked {
		taken[id] = true
	}
	var left, extra []string
	for i := range snap.Replicas {
		switch r := &snap.Replicas[i]; {
		case r.Pod != nil || taken[r.ID]:
		case r.Surge && len(extra) < surge:
			extra = append(extra, r.ID)
		case !r.Surge && slices.ContainsFunc(r.Claims, snapshot.Left):
			left = append(left, r.ID)
		}
		taken[snap.Replicas[i].ID] = true
	}
	back := returning(snap)
	members := slices.Clone(back[:min(len(back), missing)])
	members = append(members, left[:min(len(left), missing-len(members))]...)
	fresh := identity.NewSequence(snap.UID).Next(snap.Issued, missing-len(members)+surge-len(extra), func(id string) bool { return taken[id] })
	next := min(len(fresh), missing-len(members))
	return slices.Concat(members, fresh[:next], extra, fresh[next:])
}

// returning returns the identities of a set with random names that have only claims, and whose pods come back, in the order in
// which they do. The oldest come first: the others may be ones for which no pod was ever made.
func returning(snap *snapshot.Set) []string {
	var back []*snapshot.Replica
	for r := range snap.Unsteady() {
		if _, blocked := snap.Blocked[r.ID]; r.Pod != nil || r.Surge || blocked {
			continue
		}
		if !slices.ContainsFunc(r.Claims, snapshot.Left) && slices.ContainsFunc(r.Claims, snapshot.Stays) {
			back = append(back, r)
		}
	}
	slices.SortStableFunc(back, func(a, b *snapshot.Replica) int { return oldestClaim(a).Compare(oldestClaim(b)) })
	ids := make([]string, len(back))
	for i, r := range back {
		ids[i] = r.ID
	}
	return ids
}

// oldestClaim returns when the first claim of an identity without a pod was created.
func oldestClaim(r *snapshot.Replica) time.Time {
	var oldest time.Time
	for _, claim := range r.Claims {
		if created := claim.CreationTimestamp.Time; oldest.IsZero() || created.Before(oldest) {
			oldest = created
		}
	}
	return oldest
}
