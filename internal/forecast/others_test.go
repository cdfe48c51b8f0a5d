// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
)

// others returns what other workloads have in the namespace of the set web: pods in any state, and claims. Its
// selector matches two of the pods.
func others() []client.Object {
	var objects []client.Object
	for i, name := range []string{"other-0", "other-1", "web-x7k2p", "web-canary-0", "job-a", "job-b", "waits-0"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(fmt.Sprintf("other-%d", i)), CreationTimestamp: metav1.NewTime(now().Add(-time.Hour)),
			Labels:          map[string]string{"app": "other", v1beta1.RevisionLabel: "other-1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "other", UID: "other", Controller: new(true)}},
		}}
		pod.Spec = corev1.PodSpec{NodeName: "node-other", Containers: []corev1.Container{{Name: "app", Image: "other:1"}}}
		ready := corev1.ConditionTrue
		switch name {
		case "other-1":
			ready = corev1.ConditionFalse
		case "web-x7k2p", "web-canary-0":
			pod.Labels["app"] = "web"
		case "job-a":
			pod.Status.Phase = corev1.PodSucceeded
		case "job-b":
			pod.DeletionTimestamp, pod.Finalizers = new(metav1.NewTime(now())), []string{"example.com/hold"}
		case "waits-0":
			pod.Spec.NodeName = ""
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(now().Add(-time.Minute))}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-" + name, UID: types.UID(fmt.Sprintf("claim-%d", i))}}
		objects = append(objects, pod, claim)
	}
	return objects
}

// Pods and claims of other workloads in the namespace change no figure.
func TestOthersChangeNoFigure(t *testing.T) {
	t.Parallel()
	random := func(s *v1beta1.RollSetSpec) { s.PodIdentity = v1beta1.RandomIdentity }
	surge := func(s *v1beta1.RollSetSpec) {
		s.UpdateStrategy.RollingUpdate.MaxSurge, s.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt(2)), new(intstr.FromInt(0))
	}
	fewer := func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(2)) }
	more := func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(7)) }
	for name, test := range map[string]struct{ before, after *v1beta1.RollSet }{
		"an image":             {web(), web(image("web:2"))},
		"an image, in place":   {web(inPlace), web(inPlace, image("web:2"))},
		"an image, with surge": {web(random, surge), web(random, surge, image("web:2"))},
		"fewer pods":           {web(random), web(random, fewer)},
		"more pods":            {web(storage("1Gi")), web(storage("1Gi"), more)},
		"more storage":         {web(storage("1Gi")), web(storage("2Gi"))},
		"a new set":            {nil, web(storage("1Gi"))},
	} {
		in, err := Offline(t.Context(), test.before, test.after, now())
		if err != nil {
			t.Fatal(err)
		}
		alone := printed(t, in)
		in.Objects = append(in.Objects, others()...)
		if diff := gocmp.Diff(alone, printed(t, in)); diff != "" {
			t.Errorf("%s (-alone +among others):\n%s", name, diff)
		}
	}
}

// printed returns the plan as text and as JSON, and the pods with which its picture begins.
func printed(t *testing.T, in Input) string {
	t.Helper()
	f, err := Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := errors.Join(f.Text(&b, true), f.JSON(&b)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s%+v %d lanes", &b, f.Curve[0], len(f.Lanes))
}

// The class follows from the writes, whatever the policy and the template promise.
func TestClassFollowsFromTheWrites(t *testing.T) {
	t.Parallel()
	labeled := func(s *v1beta1.RollSetSpec) { s.Template.Labels["rev"] = "b" }
	reader := func(p *corev1.PodSpec) {
		p.Containers = append(p.Containers, corev1.Container{Name: "proxy", Image: "proxy:1", Env: []corev1.EnvVar{{
			Name: "REV", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['rev']"}},
		}}})
	}
	for name, test := range map[string]struct {
		before, after *v1beta1.RollSet
		injected      bool
		class         Class
		field         string
	}{
		"a label that an injected container reads": {web(inPlace), web(inPlace, labeled), true, Recreate, "spec.template.metadata.labels"},
		"a label that nobody reads":                {web(inPlace), web(inPlace, labeled), false, Metadata, "spec.template.metadata.labels"},
		"an image in a pause": {
			web(), web(image("web:2"), func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.RollingUpdate.Paused = true }),
			false, Nothing, "spec.updateStrategy.rollingUpdate.paused",
		},
		"an image under OnDelete": {
			web(func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.Type = v1beta1.OnDeleteStrategy }),
			web(image("web:2"), func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.Type = v1beta1.OnDeleteStrategy }),
			false, Nothing, "spec.template.spec.containers[app].image",
		},
		"an image and fewer pods": {
			web(), web(image("web:2"), func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(3)) }),
			false, Recreate, "spec.template.spec.containers[app].image",
		},
		"a label and more pods": {
			web(inPlace), web(inPlace, labeled, func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(6)) }),
			false, Scale, "spec.replicas",
		},
		"other ordinals":           {web(), web(func(s *v1beta1.RollSetSpec) { s.Ordinals = &v1beta1.Ordinals{Start: 2} }), false, Scale, "spec.ordinals"},
		"more storage and a label": {web(inPlace, storage("1Gi")), web(inPlace, storage("2Gi"), labeled), false, Claims, "spec.volumeClaimTemplates"},
		"a limit":                  {web(), web(unavailable(3)), false, Nothing, "spec.updateStrategy.rollingUpdate.maxUnavailable"},
		"a new set":                {nil, web(), false, Scale, "spec.replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := Offline(t.Context(), test.before, test.after, now())
			if err != nil {
				t.Fatal(err)
			}
			in.Objects = append(in.Objects, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard", UID: "class"}, AllowVolumeExpansion: new(true)})
			if test.injected {
				for _, pod := range among[*corev1.Pod](in.Objects) {
					reader(&pod.Spec)
				}
				in.Sample = SamplePod(in.After)
				reader(&in.Sample.Spec)
			}
			f, err := Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if f.Class != test.class || f.Field != test.field {
				t.Errorf("class %s (%s), want %s (%s); writes %s", f.Class, f.Field, test.class, test.field, verbsOf(f))
			}
		})
	}
}

// A set that rests with old pods says why, though it is Ready.
func TestRestsSayWhy(t *testing.T) {
	t.Parallel()
	onDelete := func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.Type = v1beta1.OnDeleteStrategy }
	paused := func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.RollingUpdate.Paused = true }
	for want, rest := range map[string]func(*v1beta1.RollSetSpec){"updateStrategy OnDelete: it is updated when it is deleted": onDelete, "paused": paused} {
		if f := forecastOf(t, web(rest), web(rest, image("web:2"))); !strings.Contains(f.WaitsFor, want) {
			t.Errorf("it waits for %q, want %q", f.WaitsFor, want)
		}
	}
	if f := forecastOf(t, web(onDelete), web(onDelete)); f.WaitsFor != "" {
		t.Errorf("a set with nothing to update waits for %q", f.WaitsFor)
	}
}

// The curve begins with the pods that are available now, whatever the clocks of the nodes, of the API server and of the user.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for _, minReady := range []int32{0, 1, 10} {
		for _, ahead := range []time.Duration{-2 * time.Second, -time.Second, 0, time.Second, 2 * time.Second, time.Minute} {
			spec := func(s *v1beta1.RollSetSpec) { s.MinReadySeconds = minReady }
			in, err := Offline(t.Context(), web(spec), web(spec, image("web:2")), now())
			if err != nil {
				t.Fatal(err)
			}
			in.Now = in.Now.Add(400 * time.Millisecond)
			at := metav1.NewTime(in.Now.Add(ahead).Truncate(time.Second))
			available := 0
			for _, pod := range among[*corev1.Pod](in.Objects) {
				for i := range pod.Status.Conditions {
					pod.Status.Conditions[i].LastTransitionTime = at
				}
				if podstate.Available(at.Time, time.Duration(minReady)*time.Second, in.Now) {
					available++
				}
			}
			f, err := Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if f.Curve[0].Available != available || f.LowestAvailable > available || available == f.Replicas && f.LowestAvailable < f.Floor {
				t.Errorf("minReadySeconds %d, ready %s from now: %d available, at least %d; want %d now", minReady, ahead, f.Curve[0].Available, f.LowestAvailable, available)
			}
		}
	}
}

func TestTooLargePlansAreRefused(t *testing.T) {
	t.Parallel()
	for replicas, refused := range map[int32]bool{MaxPods + 1: true, 1<<31 - 1: true, 3: false} {
		in, err := Offline(t.Context(), nil, web(func(s *v1beta1.RollSetSpec) { s.Replicas = &replicas }), now())
		if err != nil {
			t.Fatal(err)
		}
		_, err = Run(t.Context(), in)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "the plan is too large: rollset web has up to") {
			t.Errorf("%d pods: %v", replicas, err)
		}
	}
}
