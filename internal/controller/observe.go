// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
)

// observe freezes what the view shows into the observation that everything is decided on. Of a spec that cannot be
// understood it holds what can; nothing is decided on that.
func (r *Reconciler) observe(ctx context.Context, v *view, found revision.Resolution) *snapshot.Set {
	o := observe.Snapshot(observe.Input{
		Objects: &v.Objects, Spec: v.spec, Replicas: v.replicas, Resolution: found,
		Gone:         r.router.TakeGone(v.Set.UID),
		Sighting:     r.router.Sighting,
		FinishedWait: v.memory.attempts.Wait(action.Key{Verb: replacing}, found.Update.Name, "", v.Now),
		Preflights:   v.answers(found.Update.Name),
		Refusals:     v.refusals(),
	}, &v.memory.seen)
	maps.Copy(o.Blocked, r.blocked(ctx, v, o))
	r.seeStrangers(ctx, v, o)
	return o
}
