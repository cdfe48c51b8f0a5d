// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/revision"
)

// TestReserve checks when more ids are reserved, and how many.
func TestReserve(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		note   string
		issued int
		want   string
	}{
		"nothing is known":                  {note: "", issued: 0},
		"the first block":                   {note: "", issued: 3, want: "2051"},
		"most of the block is left":         {note: "2051", issued: 1027, want: "2051"},
		"the block is about to be used up":  {note: "2051", issued: 1028, want: "3076"},
		"far beyond the block":              {note: "2051", issued: 70_000, want: "72048"},
		"the status was lost":               {note: "2051", issued: 0, want: "2051"},
		"garbage":                           {note: `[{"`, issued: 3, want: "2051"},
		"negative":                          {note: "-9000", issued: 3, want: "2051"},
		"huge":                              {note: "1099511627777", issued: 3, want: "2051"},
		"more digits than a number has":     {note: "99999999999999999999999", issued: 3, want: "2051"},
		"high, and nothing contradicts it":  {note: "5000000", issued: 3, want: "5000000"},
		"more than there can be were given": {note: "7", issued: 1 << 40, want: "7"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rolledOut(t, 1)
			object := w.named("app:v1")
			metav1.SetMetaDataAnnotation(&object.ObjectMeta, revision.IssuedAnnotation, tt.note)
			was := object.DeepCopy()
			changed := revision.Reserve(object, tt.issued)
			if got := object.Annotations[revision.IssuedAnnotation]; got != tt.want {
				t.Errorf("annotation %q, want %q", got, tt.want)
			}
			if changed != (tt.note != tt.want) || revision.Reserve(object, tt.issued) || revision.Reserved(object) < revision.Reserved(was) {
				t.Errorf("changed: %t, and once more, or lowered", changed)
			}
		})
	}
}

// TestReservations checks which writes carry the number of reserved ids, and which are made for it.
func TestReservations(t *testing.T) {
	t.Parallel()
	scaled := func(w *world) { w.set.Spec.Replicas = new(int32(3)) }
	note := func(number string) func(*world) {
		return func(w *world) {
			object := w.named("app:v1")
			metav1.SetMetaDataAnnotation(&object.ObjectMeta, revision.IssuedAnnotation, number)
		}
	}
	tests := map[string]struct {
		change []func(*world)
		// issued is how many ids are known to be given out.
		issued int
		// written is the number that is written; empty if there is no write. from is where issuing starts without a status.
		written string
		from    int
	}{
		"a new set":                               {change: []func(*world){scaled}},
		"all replicas have their first pods":      {change: []func(*world){scaled}, issued: 3},
		"a name was left behind":                  {change: []func(*world){scaled}, issued: 4, written: "2052"},
		"a block is in use":                       {change: []func(*world){scaled, note("2051")}, issued: 900, from: 2051},
		"a block is about to be used up":          {change: []func(*world){scaled, note("2051")}, issued: 1500, written: "3548", from: 2051},
		"by a set that was scaled up":             {change: []func(*world){func(w *world) { w.set.Spec.Replicas = new(int32(1500)) }, note("2051")}, issued: 1500, written: "3548", from: 2051},
		"a new revision carries the number on":    {change: []func(*world){scaled, note("2051"), func(w *world) { w.image("app:v2") }}, issued: 6, written: "2051", from: 2051},
		"also if the status was lost":             {change: []func(*world){scaled, note("2051"), func(w *world) { w.image("app:v2") }}, written: "2051", from: 2051},
		"a new revision gets the first number":    {change: []func(*world){scaled, func(w *world) { w.image("app:v2") }}, issued: 3, written: "2051"},
		"so does one whose change cause is noted": {change: []func(*world){scaled, func(w *world) { w.set.Annotations = map[string]string{"kubernetes.io/change-cause": "x"} }}, issued: 3, written: "2051"},
		"an unreadable number is replaced":        {change: []func(*world){scaled, note("x")}, issued: 4, written: "2052"},
		"a set with ordinals has none": {change: []func(*world){scaled, note("2051"), func(w *world) {
			w.set.Spec.PodIdentity = v1alpha1.OrdinalIdentity
			w.image("app:v2")
		}}, issued: 9},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rolledOut(t, 1)
			w.complete()
			for _, change := range tt.change {
				change(w)
			}
			in := w.input()
			in.IssuedIDs = tt.issued
			r, err := revision.Resolve(in)
			if err != nil {
				t.Fatal(err)
			}
			written := ""
			switch {
			case r.Create != nil:
				written = r.Create.Annotations[revision.IssuedAnnotation]
			case r.Bump != nil:
				written = r.Bump.Annotations[revision.IssuedAnnotation]
			}
			if written != tt.written || r.Issued != tt.from {
				t.Errorf("%q is written and %d read, want %q and %d", written, r.Issued, tt.written, tt.from)
			}
			w.apply(t, r)
			in = w.input()
			in.IssuedIDs = tt.issued
			if r, err = revision.Resolve(in); err != nil || !writesNothing(r) {
				t.Errorf("there is still something to write: %v", err)
			}
		})
	}
}
