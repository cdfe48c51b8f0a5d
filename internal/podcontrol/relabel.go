// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/go-logr/logr"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
)

// relabelAll gives pods the label of the revision whose pods they equal.
func (w *writer) relabelAll(ctx context.Context, relabels []action.Relabel) {
	relabels = relabels[:min(len(relabels), MaxWrites)]
	outcomes := make([]outcome, len(relabels))
	w.Run(len(relabels), func(i int) { outcomes[i] = w.relabel(ctx, relabels[i]) })
	for i, out := range outcomes {
		w.result.Stale = w.result.Stale || out.stale
		switch {
		case out.err != nil:
			w.result.Relabels.fail(out.err)
		case out.done:
			w.result.Relabels.Done++
			logr.FromContextOrDiscard(ctx).Info("labeled pod", "pod", relabels[i].Pod.Name, "revision", relabels[i].Revision)
		}
	}
}

// relabel labels one pod, if it is still as it was judged.
func (w *writer) relabel(ctx context.Context, a action.Relabel) outcome {
	labels := map[string]string{v1alpha1.RevisionLabel: a.Revision}
	if id := w.observation.IDOf(a.Pod.Name); w.observation.PodName(id) == a.Pod.Name {
		maps.Copy(labels, identityLabels(w.set, id))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": a.Pod.UID, "resourceVersion": a.Pod.ResourceVersion, "labels": labels,
	}})
	if err != nil {
		return outcome{err: fmt.Errorf("label pod %s: %w", a.Pod.Name, err)}
	}
	return w.update(ctx, change{pod: a.Pod, patch: patch})
}
