// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/snapshot"
)

// limit gives the only hook of a set a limit of 60 seconds, without finalizers.
func limit(snap *snapshot.Set, policy v1beta1.HookTimeoutPolicy) *v1beta1.LifecycleHook {
	for _, h := range []*v1beta1.LifecycleHook{snap.Spec.Lifecycle.PreNormal, snap.Spec.Lifecycle.InPlaceUpdate, snap.Spec.Lifecycle.PreDelete} {
		if h != nil {
			h.TimeoutSeconds, h.OnTimeout, h.FinalizersHandler = new(int32(60)), policy, nil
			return h
		}
	}
	return nil
}

// dated writes when the only pod entered its state: as the controller writes it, if the text is a duration before now.
func dated(snap *snapshot.Set, since string) {
	pod := snap.Replicas[0].Pod
	ago, err := time.ParseDuration(since)
	if err == nil {
		since = lifecycle.Record(v1beta1.LifecycleState(pod.Labels[v1beta1.LifecycleStateLabel]), snap.Now.Add(-ago), snapshot.Passed{})
		pod.CreationTimestamp = metav1.NewTime(snap.Now.Add(-ago))
	}
	if since != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1beta1.LifecycleSinceAnnotation, since)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	const (
		proceed = v1beta1.ProceedOnTimeout
		hold    = v1beta1.HoldOnTimeout
		waits   = "lifecycle hook preDelete waits until label example.com/hook=on is gone"
		again   = "set web-a to PreparingDelete (" + waits + ")\nhold web-a: " + waits + "\n"
	)
	tests := map[string]struct {
		hook, state, marks string
		policy             v1beta1.HookTimeoutPolicy
		// since is when the pod entered its state, before now, or the annotation as it is.
		since    string
		edit     func(h *v1beta1.LifecycleHook)
		do, want string
		wantWake time.Duration
	}{
		"before the limit, a pod waits": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "59s", do: "delete",
			want: "hold web-a: " + waits + ", at most until <-59s+60s>\n", wantWake: time.Second,
		},
		"at the limit, it goes": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "60s", do: "delete",
			want: "delete web-a (why; without lifecycle hook preDelete, whose limit of 60 seconds has passed: label example.com/hook=on is still there)\n",
		},
		"or stays, if the hook says so": {
			hook: "preDelete", policy: hold, state: "PreparingDelete", marks: "L", since: "60s", do: "delete",
			want: "hold web-a: lifecycle hook preDelete has waited since <-60s>, longer than its limit of 60 seconds, until label example.com/hook=on is gone: remove it, or set onTimeout to Proceed\n",
		},
		"Hold is the default": {
			hook: "preDelete", state: "PreparingDelete", marks: "L", since: "61s", do: "delete",
			want: "hold web-a: lifecycle hook preDelete has waited since <-61s>, longer than its limit of 60 seconds, until label example.com/hook=on is gone: remove it, or set onTimeout to Proceed\n",
		},
		"and wakes at the limit to say so": {
			hook: "preDelete", policy: hold, state: "PreparingDelete", marks: "L", since: "20s", do: "delete",
			want: "hold web-a: " + waits + "\n", wantWake: 40 * time.Second,
		},
		"no finalizer is passed over": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "F", since: "1h", do: "delete",
			edit: func(h *v1beta1.LifecycleHook) { h.FinalizersHandler = []string{"example.com/hook"} },
			want: "hold web-a: lifecycle hook preDelete has waited since <-1h>, longer than its limit of 60 seconds, until finalizer example.com/hook is gone: remove it, or take the hook out of the spec\n",
		},
		"a limit that is not one does not count": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "1h", do: "delete",
			edit: func(h *v1beta1.LifecycleHook) { h.TimeoutSeconds = new(int32(0)) },
			want: "hold web-a: " + waits + "\n",
		},
		"a pod that was not prepared has not waited": {
			hook: "preDelete", policy: proceed, state: "Normal", marks: "L", since: "1h", do: "delete", want: again,
		},
		"a wait without a date begins now": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", do: "delete", want: again,
		},
		"as does one with a date of another state": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "Normal 2020-01-01T00:00:00Z", do: "delete", want: again,
		},
		"with an unreadable date": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "PreparingDelete yesterday", do: "delete", want: again,
		},
		"with unreadable words behind the date": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "PreparingDelete 2020-01-01T00:00:00Z preDelete soon", do: "delete", want: again,
		},
		"with a date that is too long": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "PreparingDelete 2020-01-01T00:00:00Z" + strings.Repeat(" ", 128), do: "delete", want: again,
		},
		"or with one far in the future": {
			hook: "preDelete", policy: proceed, state: "PreparingDelete", marks: "L", since: "-2m", do: "delete", want: again,
		},
		"a date in the near future is that of another clock": {
			hook: "preDelete", policy: hold, state: "PreparingDelete", marks: "L", since: "-30s", do: "delete",
			want: "hold web-a: " + waits + "\n", wantWake: 90 * time.Second,
		},
		"without a limit, no date is needed": {
			hook: "preDelete", state: "PreparingDelete", marks: "L", do: "delete",
			edit: func(h *v1beta1.LifecycleHook) { h.TimeoutSeconds = nil },
			want: "hold web-a: " + waits + "\n",
		},
		"an update closes the gate first": {
			hook: "inPlaceUpdate", policy: proceed, state: "PreparingUpdate", marks: "L", since: "1h", do: "close",
			want: "close gate of web-a (why)\n",
		},
		"and is then made": {
			hook: "inPlaceUpdate", policy: proceed, state: "PreparingUpdate", marks: "L", since: "1h", do: "update",
			want: "update web-a in place to v2 (images of app; without lifecycle hook inPlaceUpdate, whose limit of 60 seconds has passed: label example.com/hook=on is still there)\n",
		},
		"an updated pod goes on": {
			hook: "inPlaceUpdate", policy: proceed, state: "Updated", since: "1h",
			want: "set web-a to Normal (without lifecycle hook inPlaceUpdate, whose limit of 60 seconds has passed: label example.com/hook=on is missing)\n",
		},
		"or waits": {
			hook: "inPlaceUpdate", policy: hold, state: "Updated", since: "1h",
			want: "hold web-a: lifecycle hook inPlaceUpdate has waited since <-1h>, longer than its limit of 60 seconds, for label example.com/hook=on: add it, or set onTimeout to Proceed\n",
		},
		"an updated pod without a date gets one": {
			hook: "inPlaceUpdate", policy: proceed, state: "Updated",
			want: "set web-a to Updated (lifecycle hook inPlaceUpdate waits for label example.com/hook=on)\n",
		},
		"a new pod waits": {
			hook: "preNormal", policy: proceed, state: "PreparingNormal", since: "20s",
			want: "hold web-a: lifecycle hook preNormal waits for label example.com/hook=on, at most until <-20s+60s>\n", wantWake: 40 * time.Second,
		},
		"from its creation": {
			hook: "preNormal", policy: proceed, state: "PreparingNormal",
			want: "set web-a to Normal (without lifecycle hook preNormal, whose limit of 60 seconds has passed: label example.com/hook=on is missing)\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe(tt.hook, tt.state, tt.marks)
			h := limit(snap, tt.policy)
			if tt.edit != nil {
				tt.edit(h)
			}
			dated(snap, tt.since)
			show(snap)
			p := planned(snap, tt.do)
			if diff := cmp.Diff(at(snap.Now, tt.want), p.String()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if p.RequeueAfter != tt.wantWake {
				t.Errorf("looks again after %s, want %s", p.RequeueAfter, tt.wantWake)
			}
		})
	}
}

// at replaces <-1h> by the time an hour before now, and <-20s+60s> by that of 40 seconds after it.
func at(now time.Time, text string) string {
	before, rest, ok := strings.Cut(text, "<")
	if !ok {
		return text
	}
	sum, after, _ := strings.Cut(rest, ">")
	shift := time.Duration(0)
	for part := range strings.SplitSeq(strings.ReplaceAll(sum, "+", " +"), " ") {
		d, err := time.ParseDuration(part)
		if err != nil {
			panic(err)
		}
		shift += d
	}
	return before + now.Add(shift).UTC().Format(time.RFC3339) + after
}

// TestPassed shows for how long a pod is reported as one that went on without a hook.
func TestPassed(t *testing.T) {
	t.Parallel()
	passed := snapshot.Passed{Hook: "preNormal", Seconds: 60}
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	tests := map[string]struct {
		hook, state, marks string
		since              string
		// deleted is when the pod was deleted, with a grace period of 30 seconds; zero if it was not.
		deleted time.Time
		want    snapshot.Passed
	}{
		"a pod without the mark":          {hook: "preNormal", state: "Normal", since: lifecycle.Record("Normal", now, passed), want: passed},
		"not one with a garbled record":   {hook: "preNormal", state: "Normal", since: "Normal 2026-01-01T00:01:00Z preNormal soon"},
		"nor one with a garbled time":     {hook: "preNormal", state: "Normal", since: "Normal yesterday preNormal 60"},
		"until it has the mark":           {hook: "preNormal", state: "Normal", marks: "L", since: lifecycle.Record("Normal", now, passed)},
		"until it is in another state":    {hook: "preNormal", state: "PreparingDelete", since: lifecycle.Record("Normal", now, passed)},
		"until the hook is gone":          {hook: "preDelete", state: "Normal", since: lifecycle.Record("Normal", now, passed)},
		"a pod that has got its mark":     {hook: "preNormal", state: "Normal", since: lifecycle.Record("Normal", now, snapshot.Passed{})},
		"a pod that is updated":           {hook: "inPlaceUpdate", state: "Updating", marks: "L", since: "Updating 2026-01-01T00:00:00Z inPlaceUpdate 60", want: snapshot.Passed{Hook: "inPlaceUpdate", Seconds: 60}},
		"until its mark is taken off":     {hook: "inPlaceUpdate", state: "Updating", since: "Updating 2026-01-01T00:00:00Z inPlaceUpdate 60"},
		"a pod that terminates":           {hook: "preDelete", state: "PreparingDelete", marks: "L", since: "PreparingDelete 2026-01-01T00:00:00Z", deleted: now, want: snapshot.Passed{Hook: "preDelete", Seconds: 60, Why: "label example.com/hook=on is still there"}},
		"unless a user deleted it before": {hook: "preDelete", state: "PreparingDelete", marks: "L", since: "PreparingDelete 2026-01-01T00:00:00Z", deleted: now.Add(-time.Second)},
		"a pod that waits":                {hook: "preDelete", state: "PreparingDelete", marks: "L", since: "PreparingDelete 2026-01-01T00:00:00Z"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe(tt.hook, tt.state, tt.marks)
			limit(snap, v1beta1.ProceedOnTimeout)
			dated(snap, tt.since)
			pod := snap.Replicas[0].Pod
			if !tt.deleted.IsZero() {
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(tt.deleted.Add(30*time.Second))), new(int64(30))
			}
			if diff := cmp.Diff(tt.want, lifecycle.Passed(snap.Spec, pod)); diff != "" {
				t.Errorf("Passed() (-want +got):\n%s", diff)
			}
		})
	}
}
