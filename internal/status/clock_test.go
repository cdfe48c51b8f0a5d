// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/status"
)

// film is a set over time, as reported by a controller that never restarts.
type film struct {
	config     string
	deadline   *int32
	policy     v1beta1.DeadlinePolicy
	generation int64
	now        time.Time
	previous   *v1beta1.RollSetStatus
	progress   status.Progress
}

// shoot observes the set after a while and returns the report.
func (m *film) shoot(after time.Duration, state string) status.Report {
	m.now = m.now.Add(after)
	snap := snapshottest.Parse(m.config, state)
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; !r.ReadySince.IsZero() { // only a reconstruction reads it
			r.ReadySince = m.now
		}
	}
	snap.Now, snap.Spec.ProgressDeadlineSeconds = m.now, m.deadline
	snap.Spec.UpdateStrategy.RollingUpdate.OnDeadlineExceeded = m.policy
	r := status.Compute(status.Input{
		Snap: snap, Generation: m.generation, Previous: m.previous, Plan: plan.Next(snap), Progress: m.progress,
	})
	m.previous, m.progress = &r.Status, r.Progress
	return r
}

// TestDeadline plays films. Each line is seconds, state, and the expected reason of Progressing. In between, "config …"
// changes the spec, and "restart" loses the controller's memory.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"nothing moves": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			599 a:v1+ b:v2.   RollingUpdate
			1   a:v1+ b:v2.   ProgressDeadlineExceeded
			999 a:v1+ b:v2.   ProgressDeadlineExceeded`,
		"a lost pod does not make the revision a new one": `
			config random R=2 v1>v2
			0   a:v1+ b:v1x   NewRevision
			1   a:v1+ c:v2.   RollingUpdate
			1   a:v1+ c:v2x   RollingUpdate`,
		"every step starts the clock again": `
			config random R=2 v1>v2
			0   a:v1+ b:v1x        NewRevision
			500 a:v1+              NewRevision
			500 a:v1+ c:v2.        RollingUpdate
			500 a:v1+ c:v2r        RollingUpdate
			500 a:v1+ c:v2+        RollingUpdate
			500 a:v1x c:v2+        RollingUpdate
			500 c:v2+              RollingUpdate
			500 c:v2+ d:v2.        RollingUpdate
			599 c:v2+ d:v2.        RollingUpdate
			1   c:v2+ d:v2.        ProgressDeadlineExceeded
			0   c:v2+ d:v2r        RollingUpdate
			9   c:v2+ d:v2+        Complete`,
		"a pod that is ready for a moment after every crash is no progress": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			100 a:v1+ b:v2r   RollingUpdate
			100 a:v1+ b:v2.   RollingUpdate
			200 a:v1+ b:v2r   RollingUpdate
			200 a:v1+ b:v2.   RollingUpdate
			100 a:v1+ b:v2.   ProgressDeadlineExceeded
			10  a:v1+ b:v2r   ProgressDeadlineExceeded`,
		"a new revision starts the clock again": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			600 a:v1+ b:v2.   ProgressDeadlineExceeded
			config random R=2 v1>v3
			0   a:v1+ b:v2.   NewRevision
			599 a:v1+ b:v2.   NewRevision
			1   a:v1+ b:v2.   ProgressDeadlineExceeded`,
		"a finished set": `
			config random R=2 v2
			0     a:v2+ b:v2+ Complete
			9     a:v2+ b:v2. Complete
			99999 a:v2+ b:v2. Complete
			0     a:v2+ b:v2x Complete
			99999 a:v2+       Complete
			0     a:v2+ c:v2. Complete
			99999 a:v2+ c:v2. Complete`,
		"scaling a finished set starts the clock": `
			config random R=2 v2
			0     a:v2+ b:v2+      Complete
			99999 a:v2+ b:v2+      Complete
			config random R=3 v2
			0     a:v2+ b:v2+      Scaling
			599   a:v2+ b:v2+ c:v2. Scaling
			599   a:v2+ b:v2+ c:v2. Scaling
			1     a:v2+ b:v2+ c:v2. ProgressDeadlineExceeded
			0     a:v2+ b:v2+ c:v2+ Complete`,
		"other numbers do not start the clock again": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			config random R=1 v1>v2
			500 a:v1+ b:v2.   RollingUpdate
			config random R=2 v1>v2
			100 a:v1+ b:v2.   ProgressDeadlineExceeded`,
		"a pause stops the clock": `
			config random R=2 v1>v2
			0     a:v1+ b:v2.   RollingUpdate
			config random R=2 paused v1>v2
			500   a:v1+ b:v2.   Paused
			99999 a:v1+ b:v2.   Paused
			config random R=2 v1>v2
			99999 a:v1+ b:v2.   RollingUpdate
			599   a:v1+ b:v2.   RollingUpdate
			1     a:v1+ b:v2.   ProgressDeadlineExceeded`,
		"at the partition the clock stands still": `
			config ordinal R=2 p=1 v1>v2
			0     0:v1+ 1:v2.   RollingUpdate
			500   0:v1+ 1:v2+   PartitionReached
			99999 0:v1. 1:v2+   PartitionReached
			99999 0:v1. 1:v2.   PartitionReached
			config ordinal R=2 p=0 v1>v2
			99999 0:v1+ 1:v2+   RollingUpdate
			600   0:v1+ 1:v2+   ProgressDeadlineExceeded`,
		"a broken pod at the partition is not the new revision's fault": `
			config ordinal R=2 p=2 v1>v2
			0     0:v1+ 1:v1.   PartitionReached
			99999 0:v1+ 1:v1.   PartitionReached`,
		"an old pod that does not go is not the new revision's fault": `
			config random R=2 v1>v2
			0     a:v2+ b:v2. c:v1x RollingUpdate
			0     a:v2+ b:v2+ c:v1x Complete
			99999 a:v2+ b:v2+ c:v1X Complete
			99999 a:v2+ b:v2. c:v1X Complete
			0     a:v2+ b:v2+       Complete`,
		"back to an older revision": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			599 a:v1+ b:v2.   RollingUpdate
			config random R=2 v1
			1   a:v1+ b:v2.   RollingUpdate
			99  a:v1+ c:v1+   Complete`,
		"OnDelete waits for a user": `
			config random R=2 ondelete v1>v2
			0     a:v1+ b:v2.   RollingUpdate
			9     a:v1+ b:v2+   RollingUpdate
			99999 a:v1+ b:v2+   RollingUpdate
			599   a:v1+ b:v2.   RollingUpdate
			599   a:v1+ b:v2.   RollingUpdate
			1     a:v1+ b:v2.   ProgressDeadlineExceeded`,
		"a longer deadline takes the verdict back": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			600 a:v1+ b:v2.   ProgressDeadlineExceeded
			deadline 700
			0   a:v1+ b:v2.   RollingUpdate
			100 a:v1+ b:v2.   ProgressDeadlineExceeded`,
		"without a deadline": `
			deadline 2147483647
			config random R=2 v1>v2
			0      a:v1+ b:v2.   RollingUpdate
			999999 a:v1+ b:v2.   RollingUpdate`,
		"a restart of the controller knows the past by its dates": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			400 a:v1+ b:v2.   RollingUpdate
			restart
			0   a:v1+ b:v2.   RollingUpdate
			199 a:v1+ b:v2.   RollingUpdate
			1   a:v1+ b:v2.   ProgressDeadlineExceeded
			restart
			0   a:v1+ b:v2.   ProgressDeadlineExceeded
			9   a:v1+ b:v2+   RollingUpdate`,
		"a restart of the controller before the first pod": `
			config random R=2 v1>v2
			0   a:v1+ b:v1+   NewRevision
			400 a:v1+ b:v1+   NewRevision
			restart
			599 a:v1+ b:v1+   NewRevision
			599 a:v1+ b:v1+   NewRevision
			1   a:v1+ b:v1+   ProgressDeadlineExceeded
			restart
			0   a:v1+ b:v1+   ProgressDeadlineExceeded`,
		"a restart of the controller with a new revision": `
			config random R=2 v1>v2
			0   a:v1+ b:v2.   RollingUpdate
			restart
			config random R=2 v1>v3
			900 a:v1+ b:v2.   NewRevision`,
		"a restart of the controller over a finished set": `
			config random R=2 v2
			0     a:v2+ b:v2+ Complete
			restart
			99999 a:v2+ b:v2. Complete
			99999 a:v2+ b:v2. Complete`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &film{now: snapshottest.Now(), generation: 1}
			for line := range strings.Lines(script) {
				m.play(t, strings.TrimSpace(line))
			}
		})
	}
}

// play plays one line of a script.
func (m *film) play(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	switch {
	case line == "":
	case line == "restart":
		m.progress = status.Progress{}
	case words[0] == "config":
		m.config = strings.Join(words[1:], " ")
		m.generation++
	case words[0] == "deadline":
		m.deadline = new(number(t, words[1]))
	default:
		last := len(words) - 1
		r := m.shoot(time.Duration(number(t, words[0]))*time.Second, strings.Join(words[1:last], " "))
		if got := progressing(&r.Status); got.Reason != words[last] {
			t.Errorf("%s\n\tgot %s: %s", line, got.Reason, got.Message)
		}
		if want := words[last] == v1beta1.ReasonProgressDeadlineExceeded; r.DeadlineExceeded != want {
			t.Errorf("%s\n\tDeadlineExceeded = %t, want %t", line, r.DeadlineExceeded, want)
		}
	}
}

func number(t *testing.T, s string) int32 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		t.Fatalf("script: %v", err)
	}
	return int32(n)
}

func progressing(s *v1beta1.RollSetStatus) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == v1beta1.ConditionProgressing {
			return c
		}
	}
	return metav1.Condition{}
}

func stalled(s *v1beta1.RollSetStatus) string {
	for _, c := range s.Conditions {
		if c.Type == v1beta1.ConditionStalled {
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return ""
}

func TestRollback(t *testing.T) {
	t.Parallel()
	m := &film{config: "random R=2 v1>v2", now: snapshottest.Now(), generation: 1, policy: v1beta1.RollbackOnDeadline}
	m.shoot(0, "a:v1+ b:v2.")
	for _, step := range []struct {
		config      string
		after       time.Duration
		state       string
		wantBack    bool
		wantReason  string
		wantStalled string
	}{
		{"random R=2 v1>v2", 599 * time.Second, "a:v1+ b:v2.", false, v1beta1.ReasonRollingUpdate, ""},
		{"random R=2 v1>v2", time.Second, "a:v1+ b:v2.", true, v1beta1.ReasonProgressDeadlineExceeded, ""},
		{"random R=2 rejected v1>v2", time.Second, "a:v1+ b:v2.", false, v1beta1.ReasonRolledBack, ""},
		{"random R=2 rejected v1>v2", time.Second, "a:v1+ c:v1.", false, v1beta1.ReasonRolledBack, ""},
		{"random R=2 rejected v1>v2", 600 * time.Second, "a:v1+ c:v1.", false, v1beta1.ReasonRolledBack, "True ProgressDeadlineExceeded"},
		{"random R=2 rejected v1>v2", time.Second, "a:v1+ c:v1+", false, v1beta1.ReasonRolledBack, "True RolledBack"},
		{"random R=2 rejected v1>v2", time.Second, "a:v1. c:v1+", false, v1beta1.ReasonRolledBack, "True RolledBack"},
		{"random R=2 rejected v1>v2", time.Hour, "a:v1. c:v1+", false, v1beta1.ReasonRolledBack, "True RolledBack"},
		{"random R=2 v1>v3", time.Second, "a:v1+ c:v1+", false, v1beta1.ReasonNewRevision, ""},
		{"random R=2 v1>v3", time.Second, "a:v3+ c:v3+", false, v1beta1.ReasonComplete, ""},
	} {
		m.config = step.config
		r := m.shoot(step.after, step.state)
		if got := progressing(&r.Status).Reason; got != step.wantReason || (r.Verdict != "") != step.wantBack || stalled(&r.Status) != step.wantStalled {
			t.Errorf("%s, %s:\n\tgot  %s, RollsBack %t, Stalled %q\n\twant %s, RollsBack %t, Stalled %q", step.config, step.state,
				got, r.Verdict != "", stalled(&r.Status), step.wantReason, step.wantBack, step.wantStalled)
		}
	}
}

func TestRollbackNeedsSomewhereToGo(t *testing.T) {
	t.Parallel()
	m := &film{config: "random R=1 v2", now: snapshottest.Now(), generation: 1, policy: v1beta1.RollbackOnDeadline}
	m.shoot(0, "a:v2.")
	r := m.shoot(time.Hour, "a:v2.")
	if !r.DeadlineExceeded || r.Verdict != "" || stalled(&r.Status) != "True ProgressDeadlineExceeded" {
		t.Errorf("DeadlineExceeded %t, RollsBack %t, Stalled %q: the first revision has none before it, a human must help",
			r.DeadlineExceeded, r.Verdict != "", stalled(&r.Status))
	}
}

func TestRequeueAfter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, state string
		edit          func(*status.Input)
		want          time.Duration
	}{
		"until the deadline":        {config: "random R=2 v1>v2", state: "a:v1+ b:v2.", want: 600 * time.Second},
		"the deadline of the spec":  {config: "random R=2 v1>v2", state: "a:v1+ b:v2.", edit: deadline(40), want: 40 * time.Second},
		"no deadline":               {config: "random R=2 v1>v2", state: "a:v1+ b:v2.", edit: deadline(math.MaxInt32)},
		"nothing is waited for":     {config: "random R=2 v2", state: "a:v2+ b:v2+"},
		"until a pod is available":  {config: "random R=2 v1>v2", state: "a:v1+ b:v2r", edit: minReady(31), want: 30 * time.Second},
		"whichever comes first":     {config: "random R=2 v1>v2", state: "a:v1+ b:v2r", edit: minReady(900), want: 600 * time.Second},
		"available in a paused set": {config: "random R=2 paused v1>v2", state: "a:v1+ b:v2r", edit: minReady(31), want: 30 * time.Second},
		"a kubelet ahead of our time": {config: "random R=2 paused v1>v2", state: "a:v1+ b:v2r", edit: func(in *status.Input) {
			minReady(31)(in)
			in.Snap.Replicas[1].ReadySince = in.Snap.Now.Add(time.Hour)
		}, want: 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(snapshottest.Parse(tc.config, tc.state))
			if tc.edit != nil {
				tc.edit(&in)
			}
			if got := status.Compute(in).RequeueAfter; got != tc.want {
				t.Errorf("RequeueAfter = %v, want %v", got, tc.want)
			}
		})
	}
}

func deadline(seconds int32) func(*status.Input) {
	return func(in *status.Input) { in.Snap.Spec.ProgressDeadlineSeconds = &seconds }
}

func minReady(seconds int32) func(*status.Input) {
	return func(in *status.Input) { in.Snap.Spec.MinReadySeconds = seconds }
}

// TestClockIsRebuilt restarts the controller during a rollout and checks how much of the deadline is left.
func TestClockIsRebuilt(t *testing.T) {
	t.Parallel()
	ago := func(minutes int) time.Time { return snapshottest.Now().Add(-time.Duration(minutes) * time.Minute) }
	for name, tc := range map[string]struct {
		ready, progressing int // how many minutes ago the condition changed
		edit               func(*status.Input)
		want               time.Duration
	}{
		"Progressing changed last": {ready: 9, progressing: 3, want: 7 * time.Minute},
		"Ready changed last":       {ready: 2, progressing: 9, want: 8 * time.Minute},
		"a pod was created last": {ready: 9, progressing: 9, want: 9 * time.Minute, edit: func(in *status.Input) {
			in.Snap.Replicas[1].Pod.CreationTimestamp = metav1.NewTime(ago(1))
		}},
		"a pod became ready last": {ready: 9, progressing: 9, want: 6 * time.Minute, edit: func(in *status.Input) {
			in.Snap.Replicas[1].Ready, in.Snap.Replicas[1].ReadySince = true, ago(4)
		}},
		"a pod that is to go does not count": {ready: 9, progressing: 9, want: time.Minute, edit: func(in *status.Input) {
			in.Snap.Replicas[0].Pod.CreationTimestamp = metav1.NewTime(ago(1))
		}},
		"a date in our future": {ready: 9, progressing: -1, want: 10 * time.Minute},
		"another revision": {ready: 9, progressing: 9, want: 10 * time.Minute, edit: func(in *status.Input) {
			in.Previous.UpdateRevision = "v0"
		}},
		"rejected a moment ago": {ready: 9, progressing: 9, want: 10 * time.Minute, edit: func(in *status.Input) {
			in.Snap.Rejected = true
		}},
		"no pod at the update revision": {ready: 9, progressing: 9, want: 10 * time.Minute, edit: func(in *status.Input) {
			in.Snap.Replicas = in.Snap.Replicas[:1]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(snapshottest.Parse("random R=2 v1>v2", "a:v1+ b:v2."))
			in.Previous = before(v1beta1.ReasonRollingUpdate)
			in.Previous.Conditions[0].LastTransitionTime = metav1.NewTime(ago(tc.progressing))
			in.Previous.Conditions = append(in.Previous.Conditions, metav1.Condition{
				Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(ago(tc.ready)),
			})
			if tc.edit != nil {
				tc.edit(&in)
			}
			if got := status.Compute(in).RequeueAfter; got != tc.want {
				t.Errorf("the deadline strikes in %v, want %v", got, tc.want)
			}
		})
	}
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	m := &film{config: "random R=2 v1>v2", now: snapshottest.Now(), generation: 1}
	m.shoot(0, "a:v1+ b:v2.")
	if r := m.shoot(-time.Hour, "a:v1+ b:v2."); r.RequeueAfter != 600*time.Second {
		t.Errorf("RequeueAfter = %v; an hour that never was must not be waited for", r.RequeueAfter)
	}
}
