// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/attempt"
)

func TestCheckPatch(t *testing.T) {
	t.Parallel()
	const told = "the API server accepted the write and "
	before := &metav1.ObjectMeta{ResourceVersion: "1"}
	for name, tt := range map[string]struct {
		patch string
		after metav1.ObjectMeta
		want  string
	}{
		"as it was sent":               {`{"metadata":{"labels":{"a":"1"}}}`, metav1.ObjectMeta{ResourceVersion: "2", Labels: map[string]string{"a": "1", "more": "2"}}, ""},
		"nothing of metadata":          {`{"spec":{"nodeName":"n"}}`, metav1.ObjectMeta{ResourceVersion: "2"}, ""},
		"no change at all":             {`{"spec":{"nodeName":"n"}}`, metav1.ObjectMeta{ResourceVersion: "1"}, told + "changed nothing"},
		"a label that stays":           {`{"metadata":{"labels":{"a":null}}}`, metav1.ObjectMeta{ResourceVersion: "2", Labels: map[string]string{"a": "1"}}, told + "kept label a"},
		"a label that is taken away":   {`{"metadata":{"labels":{"a":null}}}`, metav1.ObjectMeta{ResourceVersion: "2"}, ""},
		"an annotation that is lost":   {`{"metadata":{"annotations":{"n":"1"}}}`, metav1.ObjectMeta{ResourceVersion: "2"}, told + "dropped annotation n"},
		"an owner that is lost":        {`{"metadata":{"ownerReferences":[{"uid":"s","controller":true}]}}`, metav1.ObjectMeta{ResourceVersion: "2"}, told + "changed whom the object belongs to"},
		"an owner that is no issue":    {`{"metadata":{"labels":{}}}`, metav1.ObjectMeta{ResourceVersion: "2", OwnerReferences: []metav1.OwnerReference{{UID: "s", Controller: new(true)}}}, ""},
		"more than can be told of all": {`{"metadata":{"labels":{"a":"1","b":"1","c":"1","d":"1","e":"1"}}}`, metav1.ObjectMeta{ResourceVersion: "2"}, told + "dropped label a, dropped label b, dropped label c, and 2 more changes"},
		"a patch that is none":         {`[`, metav1.ObjectMeta{ResourceVersion: "2"}, "read the patch that was sent: unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := attempt.CheckPatch([]byte(tt.patch), before, &tt.after); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnAlteredWriteIsRefusedAndHappened(t *testing.T) {
	t.Parallel()
	err := error(&attempt.AlteredError{What: "changed nothing"})
	if !attempt.Refused(err) || attempt.MayHaveHappened(err) || attempt.InTrouble(err) || attempt.LacksRights(err) {
		t.Error("an altered write does not count as a refusal of its own")
	}
}
