// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan composes the sub-controllers.
//
// The rule: scale and update are planned on the same observation, update in the knowledge of what scale creates. While
// scale takes pods away update rests, so that availability is given up for one reason at a time. What becomes of claims
// follows from what becomes of their pods, and is written first. What lifecycle hooks hold is taken out of each plan before
// anything follows from it.
package plan

import (
	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/adoption"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/scale"
	"rollset.dev/rollset/internal/update"
	"rollset.dev/rollset/internal/wanted"
)

// Next is what to write now, and what waits for what.
func Next(o *observed.Set) action.Plan {
	if p := adoption.Plan(o); !p.Empty() {
		return p // what a pod is comes before what becomes of it
	}
	w := wanted.Of(o)
	hooks := lifecycle.New(o)
	p := hooks.Apply(scale.Plan(o, w))
	hooks.Keep(w, p)
	p.Join(hooks.Apply(update.Plan(o, w, p)))
	p.Join(hooks.Settle())
	all := claims.Plan(o, w, p)
	all.Join(p)
	return all
}
