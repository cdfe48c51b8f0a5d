// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan composes the sub-controllers.
//
// The rule: scale and update are planned on the same observation, update in the knowledge of what scale creates. While
// scale takes pods away update leaves pods in service alone, so that availability is given up for one reason at a time: what
// is on its way out counts as gone, also where a lifecycle hook still holds it. What becomes of claims follows from what
// becomes of their pods after the hooks, and is written first.
package plan

import (
	"rollset.dev/rollset/internal/adoption"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/scale"
	"rollset.dev/rollset/internal/update"
)

// Next is what to write now, and what waits for what.
func Next(o *snapshot.Set) action.Plan {
	if p := adoption.Plan(o); !p.Empty() {
		return p // what a pod is comes before what becomes of it
	}
	w := desired.Of(o)
	hooks := lifecycle.New(o)
	scaling := scale.Plan(o, w)
	p := hooks.Apply(scaling)
	moves := update.Plan(o, w, scaling)
	hooks.Keep(w, scaling, moves)
	p.Join(hooks.Apply(moves))
	p.Join(hooks.Settle())
	all := claims.Plan(o, w, p)
	all.Join(p)
	return all
}
