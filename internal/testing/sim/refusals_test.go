// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// slack is how much later a write may be than without a refusal: the one that is refused is a look of its own.
const slack = time.Second

// TestARefusalDelaysNoOther lets the API server refuse every write of one pod of a hundred, and compares all writes of the
// others with those of a set that does not have that pod.
func TestARefusalDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Recreate", "InPlaceIfPossible"} {
		r := refusal{pods: 100, refused: 42, maxUnavailable: 10, policy: policy, edits: "image app:v2\nrun 5m"}
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			without, err := r.writesWithout(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, answer := range []string{"forbidden", "conflict", "invalid", "throttled", "webhook"} {
				t.Run(answer, func(t *testing.T) {
					t.Parallel()
					r := r
					r.answer = answer
					if err := r.check(t.Context(), without); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// TestARefusalDelaysNoOtherInHistories does the same with small sets and several edits.
func TestARefusalDelaysNoOtherInHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.IntRange(2, 8).Draw(t, "pods")
		r := refusal{
			pods:           pods,
			refused:        rapid.IntRange(0, pods-1).Draw(t, "refused"),
			maxUnavailable: rapid.IntRange(1, pods).Draw(t, "maxUnavailable"),
			policy:         among("Recreate", "InPlaceIfPossible", "InPlaceOnly").Draw(t, "policy"),
			answer:         among("forbidden", "conflict", "invalid", "throttled", "webhook").Draw(t, "answer"),
			edits:          strings.Join(rapid.SliceOfN(among("image app:v2", "image app:v3", "image app:broken", "annotate team=a", "cpu 1", "run 3s", "run 1m", "paused true", "paused false"), 1, 6).Draw(t, "edits"), "\n") + "\nrun 3m",
		}
		without, err := r.writesWithout(t.Context())
		if err == nil {
			err = r.check(t.Context(), without)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// refusal is a set with one pod that must not be written.
type refusal struct {
	pods, refused, maxUnavailable int
	policy, answer, edits         string
}

// writesWithout plays the edits of a set without the pod.
func (r refusal) writesWithout(ctx context.Context) (map[string]time.Duration, error) {
	return r.writes(ctx, strconv.Itoa(r.pods-1)+"\nreserve "+strconv.Itoa(r.refused), "")
}

// check plays the edits of a set with the pod, and compares its writes with those without it.
func (r refusal) check(ctx context.Context, without map[string]time.Duration) error {
	with, err := r.writes(ctx, strconv.Itoa(r.pods), fmt.Sprintf("refuse any %d %s\n", r.refused, r.answer))
	if err != nil {
		return err
	}
	for write, at := range with {
		if before, ok := without[write]; !ok {
			return fmt.Errorf("%s is not written without the refusal", write)
		} else if at-before > slack {
			return fmt.Errorf("%s at %s, without the refusal at %s", write, at, before)
		}
	}
	for write := range maps.Keys(without) {
		if _, ok := with[write]; !ok {
			return fmt.Errorf("%s is not written with the refusal", write)
		}
	}
	return nil
}

// writes returns the writes of pods that the manager made after it was refused one, and when.
func (r refusal) writes(ctx context.Context, replicas, refuse string) (map[string]time.Duration, error) {
	script, err := ParseScript(fmt.Sprintf("identity Ordinal\nmanagement Parallel\nreplicas %s\nmaxUnavailable %d\npolicy %s\ndeadline 2147483647\nrun 1m\n%s%s",
		replicas, r.maxUnavailable, r.policy, refuse, r.edits))
	if err != nil {
		return nil, err
	}
	w := NewWorld(ctx, 0)
	if err := w.Play(ctx, script); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, w.Film.last(60))
	}
	writes, times := map[string]time.Duration{}, map[string]int{}
	for _, e := range w.Store.Log() {
		if e.Actor == managerActor && e.Key.Kind == apiserver.Pods {
			name := e.String()
			times[name]++
			writes[fmt.Sprintf("%s, %d", name, times[name])] = e.At.Sub(epoch())
		}
	}
	own := fmt.Sprintf("%s-%d", SetName, r.refused)
	maps.DeleteFunc(writes, func(write string, _ time.Duration) bool {
		return strings.Contains(write, "/"+own+",") || strings.Contains(write, "/"+own+"/")
	})
	return writes, nil
}
