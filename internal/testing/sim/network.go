// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// lateBy is the delay of a write that its client gave up, unless chance draws another one.
const lateBy = 2 * time.Second

// These times follow an outage of the API server: it refuses everything until it knows the roles, and clients try to watch again
// only after a while.
const (
	refusesFor  = time.Second
	rewatchesIn = 3 * time.Second
)

// network is the network between the managers and the API server.
type network struct {
	world *World
	// sent are the writes that are still under way although their clients gave up waiting for them.
	sent []sent
	// outage is when the last outage ends. cut is true until it has cut off a write.
	outage time.Time
	cut    bool
}

type sent struct {
	at     time.Time
	commit func()
}

// fault returns the fault of a write of a manager.
func (n *network) fault(apiserver.Write) apiserver.Fault {
	switch now := n.world.Now(); {
	case now.Before(n.outage) && n.cut:
		n.cut = false
		return apiserver.TimeoutWritten
	case now.Before(n.outage):
		return apiserver.Unreachable
	case now.Before(n.outage.Add(refusesFor)):
		return apiserver.NoRights
	default:
		return apiserver.NoFault
	}
}

// unreadable returns why a manager cannot read past its caches; nil if it can.
func (n *network) unreadable() error {
	if n.world.Now().Before(n.outage.Add(refusesFor)) {
		return fmt.Errorf("sim: %s", apiserver.Unreachable)
	}
	return nil
}

// delivers returns the time at which what is due now reaches a cache.
func (n *network) delivers(now time.Time) time.Time {
	if resumes := n.outage.Add(rewatchesIn); now.Before(resumes) {
		return resumes
	}
	return now
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
