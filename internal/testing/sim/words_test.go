// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestWordsStay lets sets wait for an hour and expects that they say one thing all the time, though kubelets say one thing
// in several ways, retry, and count.
func TestWordsStay(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]string{
		"never ready":         "image app:broken",
		"image is missing":    "image app:missing",
		"crashes":             "image app:broken-crash",
		"too large":           "cpu 64",
		"denied":              "deny\nimage app:v2",
		"quota":               "quota 2\nimage app:v2",
		"a pod does not end":  "strategy Recreate\nlose a\nimage app:v2",
		"waits to be deleted": "strategy OnDelete\nimage app:v2",
		"paused":              "paused true\nimage app:v2",
		"cannot be resized":   "policy InPlaceOnly\nnode-cpu 1\ncpu 2",
		"refuses the resize":  "policy InPlaceOnly\nrefuse-cpu 1\ncpu 2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := played(t, "replicas 3\nmaxUnavailable 1\ndeadline 2147483647\nsettle\n"+trouble+"\nrun 10m")
			told := []string{w.told()}
			w.Store.OnWrite(func(e *apiserver.Entry) {
				if e.Key.Kind == apiserver.RollSets && told[len(told)-1] != w.told() {
					told = append(told, w.told())
				}
			})
			if err := w.Run(t.Context(), time.Hour); err != nil {
				t.Fatal(err)
			}
			if len(told) > 1 {
				t.Errorf("changed its words %d times:\n%s", len(told)-1, strings.Join(told[:min(len(told), 6)], "\n"))
			}
			if len(told[0]) > 1024 || strings.ContainsFunc(told[0], func(r rune) bool { return r < ' ' }) {
				t.Errorf("not fit to be printed: %q", told[0])
			}
		})
	}
}

// told returns the messages of the set about its progress.
func (w *World) told() string {
	set, ok := w.Store.Get(apiserver.Key{Kind: apiserver.RollSets, Namespace: Namespace, Name: SetName}).(*v1beta1.RollSet)
	if !ok {
		return ""
	}
	if c := meta.FindStatusCondition(set.Status.Conditions, "Progressing"); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}
