// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"bytes"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"rollset.dev/rollset/api/v1beta1"
)

// FuzzDecode looks for content that crashes. Every content gets its matching name, so that decoding goes beyond the check of
// the name.
func FuzzDecode(f *testing.F) {
	first, err := Resolve(Input{Set: &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(first.Create.Data.Raw, int32(0))
	f.Add(append([]byte(`{"spec":{"template":{"spec":{"hostNetwork":true}}},`), first.Create.Data.Raw[1:]...), int32(1))
	f.Add([]byte(`{"spec":{"template":{"spec":{"containers":[null,{"resources":{"limits":{"cpu":1}}}]}}}}`), int32(2))
	f.Add([]byte(`{"spec":{"template":null,"volumeClaimTemplates":[{},null]}}`), int32(-1))
	f.Add([]byte(`[[1.0,1e400],{"a":[null,[]]}]`), int32(0))
	f.Add([]byte(`null`), int32(0))
	f.Fuzz(func(t *testing.T, data []byte, collisions int32) {
		object := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name:        "web",
				Annotations: map[string]string{CollisionAnnotation: strconv.Itoa(int(collisions))},
			},
			Data: runtime.RawExtension{Raw: data},
		}
		if canonical, err := canonicalize(data); err == nil {
			again, err := canonicalize(canonical)
			if err != nil || !bytes.Equal(canonical, again) {
				t.Fatalf("canonical form of %s is not stable: %s, then %s (%v)", data, canonical, again, err)
			}
			object.Name = "web-" + digest(canonical, collisions)
		}
		template, claims, err := Decode(object)
		if err != nil && (template != nil || claims != nil) {
			t.Fatalf("an error and content: %v %v", template, claims)
		}
		if err == nil && template == nil {
			t.Fatal("neither an error nor a template")
		}
	})
}
