// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import "math"

// maxCollisions bounds how many names of old collisions are tried. Each of them has cost a write.
const maxCollisions = 100

// namer finds names for revisions.
type namer struct{ *resolver }

// name returns the name for the spec's content, which no revision holds yet, with the collision count that is part of it. If
// the set has already named that content, it returns the same name, because pods may carry it. Otherwise it returns the
// first name that stands for no other content, counting collisions on from the status.
func (r namer) name() (name string, collisions int32) {
	for _, known := range []string{r.Set.Status.UpdateRevision, r.Set.Status.CurrentRevision} {
		if n, ok := r.collisionsOf(known); ok && !r.occupied(known) {
			return known, n
		}
	}
	collisions = r.collisions()
	name = r.nameWith(collisions)
	// Every iteration tries another name, and an occupied one stays occupied, so there are no more iterations than names.
	for range len(r.intact) + len(r.Taken) {
		if !r.occupied(name) {
			break
		}
		collisions = nextCollision(collisions)
		r.out.CollisionCount = new(collisions)
		name = r.nameWith(collisions)
	}
	return name, collisions
}

// nameWith returns the name of the spec's content after a number of collisions.
func (r namer) nameWith(collisions int32) string {
	return r.Set.Name + "-" + r.digest(r.wanted.canonical, collisions)
}

// occupied reports whether a name stands for another content than the spec's, or belongs to another owner.
func (r namer) occupied(name string) bool {
	_, ok := r.intact[name]
	return ok || r.Taken.Has(name)
}

// collisionsOf returns the collision count under which the spec's content has the given name, if there is one.
func (r namer) collisionsOf(name string) (int32, bool) {
	if name == "" {
		return 0, false
	}
	last := r.collisions()
	for collisions := last; collisions >= 0 && collisions > last-maxCollisions; collisions-- {
		if r.nameWith(collisions) == name {
			return collisions, true
		}
	}
	return 0, false
}

// collisions returns the collision count of the status, at least 0.
func (r namer) collisions() int32 {
	if count := r.Set.Status.CollisionCount; count != nil {
		return max(*count, 0)
	}
	return 0
}

// nextCollision counts a collision. The count only makes another name, so it may start again.
func nextCollision(n int32) int32 {
	if n == math.MaxInt32 {
		return 0
	}
	return n + 1
}
