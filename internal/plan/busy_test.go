// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
)

// TestBudgetIsKeptFilled rolls a thousand pods, each with its own start time, with a tenth of them unavailable. At no moment
// does an old pod wait while budget is left. Hence the rollout takes no longer than the total work, divided by the number of
// pods that may be unavailable, plus the time of one pod. There is no serial tail.
func TestBudgetIsKeptFilled(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		"random R=1000 mu=100 v1",
		"ordinal R=1000 mu=100 v1",
		"random R=1000 mu=50 surge=50 v1",
	} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			r := newRollout(config)
			r.toRest(t)
			began := r.now
			r.snap.Update = snapshot.Revision{Name: "v2", Template: &corev1.PodTemplateSpec{}}
			r.toRest(t)
			l := r.snap.Limits
			bound := r.work/time.Duration(l.MaxUnavailable+l.MaxSurge) + r.longest
			if took := r.now.Sub(began); took > bound {
				t.Errorf("took %s, want at most %s", took, bound)
			} else {
				t.Logf("took %s of at most %s", took, bound)
			}
		})
	}
}

// rollout is a set whose plans are applied at once. Its pods take from one second to a minute to start, and one to ten
// seconds to end.
type rollout struct {
	snap   *snapshot.Set
	now    time.Time
	chance *rand.Rand
	made   int
	// due is when a replica's pod becomes ready or, if it is terminating, is gone.
	due map[types.UID]time.Time
	// work is the total time that the set waited for pods of the last rollout, and longest is the time of one of them.
	work, longest time.Duration
}

func newRollout(config string) *rollout {
	snap := snapshottest.Parse(config, "")
	snap.Preflights = map[string]snapshot.Preflight{"v2": {}}
	return &rollout{
		snap: snap, now: snap.Now, due: map[types.UID]time.Time{},
		chance: rand.New(rand.NewPCG(1, 1)),
	}
}

// toRest runs the planner and the pods in turns until nothing is due.
func (r *rollout) toRest(t *testing.T) {
	t.Helper()
	r.work, r.longest = 0, 0
	for {
		r.snap.Now = r.now
		for p := plan.Next(r.snap); !p.Empty(); p = plan.Next(r.snap) {
			r.apply(t, p)
		}
		r.check(t)
		next := time.Time{}
		for _, at := range r.due {
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
		if next.IsZero() {
			return
		}
		r.now = next
		r.happen()
	}
}

// apply applies a plan.
func (r *rollout) apply(t *testing.T, p action.Plan) {
	t.Helper()
	for _, a := range p.Actions {
		if create, ok := a.(action.Create); ok {
			r.create(create)
		} else if deletion, ok := a.(action.Delete); ok {
			r.delete(deletion.Pod.UID)
		} else {
			t.Fatalf("planned %s", a)
		}
	}
}

func (r *rollout) delete(uid types.UID) {
	i := slices.IndexFunc(r.snap.Replicas, func(x snapshot.Replica) bool { return x.Pod.UID == uid })
	going := &r.snap.Replicas[i]
	going.Pod = going.Pod.DeepCopy()
	going.Pod.DeletionTimestamp = &metav1.Time{Time: r.now.Add(30 * time.Second)}
	going.Terminating, going.Available = true, false
	r.take(uid, 1+r.chance.IntN(10), r.snap.Ordinal())
}

func (r *rollout) create(a action.Create) {
	r.made++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: r.snap.PodName(a.ID), UID: types.UID(strconv.Itoa(r.made)), CreationTimestamp: metav1.NewTime(r.now),
	}}
	created := snapshot.Replica{Content: snapshot.Content{
		Identity: snapshot.Identity{ID: a.ID, Ordinal: -1}, Pod: pod, Revision: a.Revision, Scheduled: true, Created: r.now.Unix(),
	}}
	if r.snap.Ordinal() {
		created.Ordinal, _ = strconv.Atoi(a.ID)
	}
	r.snap.Replicas = append(r.snap.Replicas, created)
	slices.SortFunc(r.snap.Replicas, func(a, b snapshot.Replica) int { return a.Ordinal - b.Ordinal })
	r.take(pod.UID, 1+r.chance.IntN(60), true)
}

// take sets how long a pod takes to start or to end, and whether the set waits for it.
func (r *rollout) take(uid types.UID, seconds int, awaited bool) {
	d := time.Duration(seconds) * time.Second
	r.due[uid] = r.now.Add(d)
	if awaited {
		r.work += d
		r.longest = max(r.longest, d)
	}
}

// happen starts and ends the pods that are due.
func (r *rollout) happen() {
	kept := r.snap.Replicas[:0]
	for _, x := range r.snap.Replicas {
		due, ok := r.due[x.Pod.UID]
		over := ok && !due.After(r.now)
		if over {
			delete(r.due, x.Pod.UID)
		}
		switch {
		case over && x.Terminating:
			continue
		case over:
			x.Ready, x.Available, x.ReadySince = true, true, r.now
		}
		kept = append(kept, x)
	}
	r.snap.Replicas = kept
}

// check fails if an old pod waits although budget is left.
func (r *rollout) check(t *testing.T) {
	t.Helper()
	old, available := 0, r.snap.Available()
	for i := range r.snap.Replicas {
		if x := &r.snap.Replicas[i]; x.Active() && x.Revision != r.snap.Update.Name {
			old++
		}
	}
	l := r.snap.Limits
	if old > 0 && available > l.Replicas-l.MaxUnavailable {
		t.Fatalf("%d old pods wait although %d are available:\n%s", old, available, fmt.Sprint(plan.Next(r.snap).Held))
	}
}
