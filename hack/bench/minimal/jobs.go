// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package minimal

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// retryAfter is how long a failed job is left alone.
const retryAfter = 100 * time.Millisecond

// job is one or more requests for one pod. It is repeated until it succeeds.
type job func(context.Context) error

// jobs is the work of the workers, in order.
type jobs struct {
	mu     sync.Mutex // guards the two below
	queue  []job
	closed bool
	more   *sync.Cond
}

func newJobs() *jobs {
	j := &jobs{}
	j.more = sync.NewCond(&j.mu)
	return j
}

func (j *jobs) add(do job) {
	j.mu.Lock()
	j.queue = append(j.queue, do)
	j.mu.Unlock()
	j.more.Signal()
}

func (j *jobs) close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.more.Broadcast()
}

// next waits for a job; nil if no more will come.
func (j *jobs) next() job {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) == 0 && !j.closed {
		j.more.Wait()
	}
	if j.closed {
		return nil
	}
	do := j.queue[0]
	j.queue[0], j.queue = nil, j.queue[1:]
	return do
}

func (j *jobs) work(ctx context.Context) {
	for do := j.next(); do != nil; do = j.next() {
		for err := do(ctx); err != nil && ctx.Err() == nil; err = do(ctx) {
			fmt.Fprintln(os.Stderr, "minimal client:", err)
			time.Sleep(retryAfter)
		}
	}
}
