// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"
)

// lateBy is the delay of a write that its client gave up, unless chance draws another one.
const lateBy = 2 * time.Second

// network holds the writes that are still under way although their clients gave up waiting for them.
type network struct {
	world *World
	sent  []sent
}

type sent struct {
	at     time.Time
	commit func()
}

// send schedules a write to be committed later.
func (n *network) send(commit func()) {
	delay := lateBy
	if n.world.Chance != nil {
		delay = nap(n.world.Chance)
	}
	n.sent = append(n.sent, sent{at: n.world.Now().Add(delay), commit: commit})
}

func (n *network) turns(add func(turn)) {
	if len(n.sent) == 0 {
		return
	}
	first := n.sent[0]
	add(turn{who: networkActor, at: first.at, take: func(context.Context) error {
		n.sent = n.sent[1:]
		first.commit()
		return nil
	}})
}
