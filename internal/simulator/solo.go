// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// ManagerActor is the name under which a manager writes.
const ManagerActor = "manager"

// Solo is one manager on a store that the caller drives. It never crashes, and its writes meet no faults.
type Solo struct{ process *Process }

// NewSolo starts a manager whose caches show the store as it is.
func NewSolo(ctx context.Context, store *apiserver.Store, c clock.PassiveClock) *Solo {
	p := &Process{Name: ManagerActor, Clock: c, Queue: NewQueue(c)}
	p.Client = apiserver.NewClient(apiserver.NewView(store), p.Name, apiserver.NewScheme())
	p.Live = apiserver.NewLive(store)
	p.Wire(ctx, Runner(nil), func() time.Duration { return 0 })
	for _, kind := range apiserver.Kinds() {
		for _, e := range p.Client.Relist(kind, store.Version()) {
			p.Dispatch(ctx, e)
		}
	}
	return &Solo{process: p}
}

// Deliver delivers one event to the caches, and reports whether there was one. After that, the log keeps no objects of
// that write.
func (s *Solo) Deliver(ctx context.Context) bool {
	for _, kind := range apiserver.Kinds() {
		if entry := s.process.Client.Next(kind); entry != nil {
			s.process.Dispatch(ctx, s.process.Client.Deliver(kind))
			entry.Old, entry.New = nil, nil
			return true
		}
	}
	return false
}

// Next returns the time at which the next request is due. It is not ok if there is none.
func (s *Solo) Next() (at time.Time, ok bool) { return s.process.Queue.Next() }

// Work lets the manager reconcile the request that is due first. There must be one.
func (s *Solo) Work(ctx context.Context) error {
	s.process.Take()
	again, err := s.process.Work(ctx)
	again()
	return err
}
