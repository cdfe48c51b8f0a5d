// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// All writes in these tests have this user and namespace.
const (
	user      = "user"
	namespace = "default"
)

// desk is a store with a hand on its clock.
type desk struct {
	*Store
	t   *testing.T
	now time.Time
}

// newYear returns the time at which these tests begin.
func newYear() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 300_000_000, time.UTC) }

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, now: newYear()}
	d.Store = NewStore(func() time.Time { return d.now })
	return d
}

func (d *desk) create(obj client.Object) client.Object {
	d.t.Helper()
	created, err := d.Create(Write{Actor: user}, obj)
	if err != nil {
		d.t.Fatal(err)
	}
	return Clone(created)
}

func (d *desk) update(obj client.Object, subresource string) client.Object {
	d.t.Helper()
	updated, err := d.Update(Write{Actor: user, Subresource: subresource}, obj)
	if err != nil {
		d.t.Fatal(err)
	}
	return Clone(updated)
}

func (d *desk) delete(key Key, options client.DeleteOptions) error {
	return d.Delete(Write{Actor: user, Key: key, DeleteOptions: options})
}

func (d *desk) collect() {
	d.t.Helper()
	for d.HasGarbage() {
		if err := d.Collect(); err != nil {
			d.t.Fatal(err)
		}
	}
}

func aPod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}}
	pod.Labels = map[string]string{"app": "web"}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:v1"}}
	return pod
}

func aSet() *v1beta1.RollSet {
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec = aPod("").Spec
	return set
}

func ownedBy(owner client.Object) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind("RollSet"))
}

func podKey(name string) Key { return Key{Kind: Pods, Namespace: namespace, Name: name} }

// running binds a pod to a node, so that it takes time to go.
func (d *desk) running(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName = "node-0"
	return MustBe[*corev1.Pod](d.update(pod, "binding"))
}

func TestCreateSetsWhatTheServerSets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	set := MustBe[*v1beta1.RollSet](d.create(aSet()))
	pod := MustBe[*corev1.Pod](d.create(aPod("a")))
	want := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if !pod.CreationTimestamp.Equal(&want) {
		t.Errorf("creationTimestamp = %v, want whole seconds: %v", pod.CreationTimestamp, want)
	}
	if set.UID == "" || set.UID == pod.UID {
		t.Errorf("UIDs are %q and %q, want two", set.UID, pod.UID)
	}
	got := []any{set.ResourceVersion, pod.ResourceVersion, set.Generation, pod.Generation, set.Status.ObservedGeneration, *set.Spec.Replicas, pod.Status.Phase, *pod.Spec.TerminationGracePeriodSeconds}
	if diff := cmp.Diff([]any{"2", "3", int64(1), int64(1), int64(-1), int32(1), corev1.PodPending, int64(30)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSinceAVersion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create(aPod("a")) // version 2
	d.create(aSet())    // version 3
	d.create(aPod("b")) // version 4
	if err := d.delete(podKey("a"), client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int64][]int64{0: {2, 4, 5}, 1: {2, 4, 5}, 2: {4, 5}, 3: {4, 5}, 4: {5}, 5: nil, 9: nil} {
		var got []int64
		for e := range d.Since(Pods, version) {
			got = append(got, e.Version)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after version %d (-want +got):\n%s", version, diff)
		}
	}
}

func TestObjectsOfAKind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.create(aPod("b"))
	d.create(aSet())
	d.create(aPod("a"))
	var got []string
	for _, kind := range []Kind{Pods, RollSets, Claims} {
		for _, obj := range d.Of(kind) {
			got = append(got, KeyOf(obj).String())
		}
	}
	if diff := cmp.Diff([]string{"Pod default/a", "Pod default/b", "RollSet default/web"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func hasNoReason(err error) bool { return apierrors.ReasonForError(err) == "" }

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*desk)
		pod     func(*corev1.Pod)
		is      func(error) bool
	}{
		"a name that is taken":     {is: apierrors.IsAlreadyExists, prepare: func(d *desk) { d.create(aPod("a")) }},
		"a full quota":             {is: apierrors.IsForbidden, prepare: func(d *desk) { d.MaxPods = 0 }},
		"an invalid pod":           {is: apierrors.IsInvalid, pod: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "" }},
		"a resource version":       {is: hasNoReason, pod: func(p *corev1.Pod) { p.ResourceVersion = "7" }},
		"a terminating namespace":  {is: isNamespaceTerminating, prepare: func(d *desk) { d.TerminateNamespace(namespace) }},
		"what admission refuses":   {is: apierrors.IsForbidden, prepare: func(d *desk) { d.Admission = []Admission{func(Verb, client.Object) error { return errDeniedForTest }} }},
		"a pod without containers": {is: apierrors.IsInvalid, pod: func(p *corev1.Pod) { p.Spec.Containers = nil }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, pod := newDesk(t), aPod("a")
			if tc.prepare != nil {
				tc.prepare(d)
			}
			if tc.pod != nil {
				tc.pod(pod)
			}
			before := d.Version()
			if _, err := d.Create(Write{}, pod); !tc.is(err) {
				t.Errorf("Create: %v", err)
			}
			if d.Version() != before {
				t.Error("something was written")
			}
		})
	}
}

var errDeniedForTest = apierrors.NewBadRequest("denied")

func isNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if _, err := d.Create(Write{DryRun: true}, aPod("a")); err != nil {
		t.Fatal(err)
	}
	if len(d.Log()) != 0 || d.Get(podKey("a")) != nil {
		t.Error("a dry run wrote")
	}
}

func TestUpdateTellsSubresourcesApart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	set := MustBe[*v1beta1.RollSet](d.create(aSet()))
	set.Spec.Replicas, set.Status.Replicas = new(int32(7)), 3
	status := MustBe[*v1beta1.RollSet](d.update(Clone(set), "status"))
	if *status.Spec.Replicas != 1 || status.Status.Replicas != 3 || status.Generation != 1 {
		t.Errorf("status update: %d replicas wanted, %d reported, generation %d; want 1, 3, 1",
			*status.Spec.Replicas, status.Status.Replicas, status.Generation)
	}
	set.ResourceVersion, set.Status.Replicas = status.ResourceVersion, 9
	spec := MustBe[*v1beta1.RollSet](d.update(set, ""))
	if *spec.Spec.Replicas != 7 || spec.Status.Replicas != 3 || spec.Generation != 2 {
		t.Errorf("update: %d replicas wanted, %d reported, generation %d; want 7, 3, 2",
			*spec.Spec.Replicas, spec.Status.Replicas, spec.Generation)
	}
}

func TestUpdateRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*corev1.Pod)
		is     func(error) bool
	}{
		"an old resource version": {is: apierrors.IsConflict, change: func(p *corev1.Pod) { p.ResourceVersion = "77" }},
		"another UID":             {is: apierrors.IsConflict, change: func(p *corev1.Pod) { p.UID = "other" }},
		"another command":         {is: apierrors.IsInvalid, change: func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"x"} }},
		"another node":            {is: apierrors.IsInvalid, change: func(p *corev1.Pod) { p.Spec.NodeName = "x" }},
		"a pod that is not there": {is: apierrors.IsNotFound, change: func(p *corev1.Pod) { p.Name = "b" }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			pod := MustBe[*corev1.Pod](d.create(aPod("a")))
			tc.change(pod)
			if _, err := d.Update(Write{}, pod); !tc.is(err) {
				t.Errorf("Update: %v", err)
			}
		})
	}
}

func TestUpdateWithoutChangeWritesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	pod := d.create(aPod("a"))
	if got := d.update(Clone(pod), "").GetResourceVersion(); got != pod.GetResourceVersion() || d.Version() != 2 {
		t.Errorf("resource version is %s", got)
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind types.PatchType
		body string
		is   func(error) bool
		want string
	}{
		"merge":                       {kind: types.MergePatchType, body: `{"metadata":{"labels":{"x":"y"}}}`, want: "app=web,x=y"},
		"merge removes":               {kind: types.MergePatchType, body: `{"metadata":{"labels":{"app":null}}}`, want: ""},
		"strategic":                   {kind: types.StrategicMergePatchType, body: `{"metadata":{"labels":{"x":"y"}}}`, want: "app=web,x=y"},
		"the right resource version":  {kind: types.MergePatchType, body: `{"metadata":{"resourceVersion":"2","labels":{"x":"y"}}}`, want: "app=web,x=y"},
		"an old resource version":     {kind: types.MergePatchType, body: `{"metadata":{"resourceVersion":"0"}}`, is: apierrors.IsConflict},
		"another UID":                 {kind: types.MergePatchType, body: `{"metadata":{"uid":"other"}}`, is: apierrors.IsInvalid},
		"what cannot be changed":      {kind: types.MergePatchType, body: `{"spec":{"hostname":"x"}}`, is: apierrors.IsInvalid},
		"status is another resource":  {kind: types.MergePatchType, body: `{"status":{"phase":"Running"}}`, want: "app=web"},
		"what is no patch":            {kind: types.MergePatchType, body: `[`, is: apierrors.IsBadRequest},
		"an image, strategic by name": {kind: types.StrategicMergePatchType, body: `{"spec":{"containers":[{"name":"app","image":"app:v2"}]}}`, want: "app=web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.create(aPod("a"))
			obj, err := d.Patch(Write{Key: podKey("a"), Body: []byte(tc.body)}, tc.kind)
			if tc.is != nil {
				if !tc.is(err) {
					t.Errorf("Patch: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pod := MustBe[*corev1.Pod](obj)
			if got := labelsOf(pod).String(); got != tc.want || pod.Status.Phase != corev1.PodPending || len(pod.Spec.Containers) != 1 {
				t.Errorf("labels %q, phase %s, %d containers; want labels %q", got, pod.Status.Phase, len(pod.Spec.Containers), tc.want)
			}
		})
	}
}

// A patch of the status may name parts that it cannot change, as kubectl does if other fields differ.
func TestPatchOfStatusNamesAContainer(t *testing.T) {
	t.Parallel()
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		d := newDesk(t)
		d.create(aPod("a"))
		body := `{"spec":{"$setElementOrder/containers":[{"name":"app"}],"containers":[{"name":"app","image":"app:v2"}]},"status":{"phase":"Running"}}`
		obj, err := d.Patch(Write{Key: podKey("a"), Subresource: "status", Body: []byte(body)}, kind)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		pod := MustBe[*corev1.Pod](obj)
		if image := pod.Spec.Containers[0].Image; pod.Status.Phase != corev1.PodRunning || image != "app:v1" {
			t.Errorf("%s: phase %s, image %s", kind, pod.Status.Phase, image)
		}
	}
}

func TestGenerationOfPods(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	pod := d.running(MustBe[*corev1.Pod](d.create(aPod("a"))))
	if pod.Generation != 1 {
		t.Errorf("generation %d after binding, want 1", pod.Generation)
	}
	pod.Spec.Containers[0].Image = "app:v2"
	pod = MustBe[*corev1.Pod](d.update(pod, ""))
	if pod.Generation != 2 {
		t.Errorf("generation %d after an update, want 2", pod.Generation)
	}
	if err := d.delete(podKey("a"), client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := d.Get(podKey("a")).GetGeneration(); got != 3 {
		t.Errorf("generation %d after a delete, want 3", got)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	zero := client.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	tests := map[string]struct {
		bound      bool
		finalizers []string
		deletes    []client.DeleteOptions
		wantGone   bool
		wantAfter  time.Duration // until the deadline
	}{
		"an unscheduled pod goes at once":      {deletes: []client.DeleteOptions{{}}, wantGone: true},
		"a running pod has its grace period":   {bound: true, deletes: []client.DeleteOptions{{}}, wantAfter: 30 * time.Second},
		"the kubelet ends it":                  {bound: true, deletes: []client.DeleteOptions{{}, zero}, wantGone: true},
		"a second delete changes nothing":      {bound: true, deletes: []client.DeleteOptions{{}, {}}, wantAfter: 30 * time.Second},
		"a second delete can shorten":          {bound: true, deletes: []client.DeleteOptions{{}, {GracePeriodSeconds: new(int64(5))}}, wantAfter: 5 * time.Second},
		"a second delete cannot prolong":       {bound: true, deletes: []client.DeleteOptions{{GracePeriodSeconds: new(int64(5))}, {GracePeriodSeconds: new(int64(50))}}, wantAfter: 5 * time.Second},
		"a finalizer holds an unbound pod":     {finalizers: []string{"x/y"}, deletes: []client.DeleteOptions{{}}},
		"a finalizer holds it to the end":      {bound: true, finalizers: []string{"x/y"}, deletes: []client.DeleteOptions{{}, zero}},
		"force deletes it without the kubelet": {bound: true, deletes: []client.DeleteOptions{zero}, wantGone: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, pod := newDesk(t), aPod("a")
			pod.Finalizers = tc.finalizers
			pod = MustBe[*corev1.Pod](d.create(pod))
			if tc.bound {
				d.running(pod)
			}
			for _, options := range tc.deletes {
				if err := d.delete(podKey("a"), options); err != nil {
					t.Fatal(err)
				}
			}
			obj := d.Get(podKey("a"))
			if gone := obj == nil; gone != tc.wantGone {
				t.Fatalf("gone: %v, want %v", gone, tc.wantGone)
			}
			if obj == nil {
				return
			}
			if after := obj.GetDeletionTimestamp().Sub(d.now.Truncate(time.Second)); after != tc.wantAfter {
				t.Errorf("deletionTimestamp is %v away, want %v", after, tc.wantAfter)
			}
		})
	}
}

func TestDeletePreconditions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	pod := d.create(aPod("a"))
	for _, p := range []metav1.Preconditions{{UID: new(types.UID("other"))}, {ResourceVersion: new("0")}} {
		if err := d.delete(podKey("a"), client.DeleteOptions{Preconditions: &p}); !apierrors.IsConflict(err) {
			t.Errorf("%v: %v, want a conflict", p, err)
		}
	}
	p := metav1.Preconditions{UID: new(pod.GetUID()), ResourceVersion: new(pod.GetResourceVersion())}
	if err := d.delete(podKey("a"), client.DeleteOptions{Preconditions: &p}); err != nil {
		t.Error(err)
	}
}

func TestLastFinalizerLetsGo(t *testing.T) {
	t.Parallel()
	d, pod := newDesk(t), aPod("a")
	pod.Finalizers = []string{"x/y"}
	d.create(pod)
	if err := d.delete(podKey("a"), client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Patch(Write{Key: podKey("a"), Body: []byte(`{"metadata":{"finalizers":null}}`)}, types.MergePatchType); err != nil {
		t.Fatal(err)
	}
	if d.Get(podKey("a")) != nil {
		t.Error("the pod is still there")
	}
}

func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	policy := func(p metav1.DeletionPropagation) client.DeleteOptions {
		return client.DeleteOptions{PropagationPolicy: &p}
	}
	tests := map[string]struct {
		options  client.DeleteOptions
		wantPods []string
		wantSet  bool
	}{
		"background":            {options: policy(metav1.DeletePropagationBackground), wantPods: []string{"other", "running"}},
		"background is default": {wantPods: []string{"other", "running"}},
		"orphan":                {options: policy(metav1.DeletePropagationOrphan), wantPods: []string{"other", "pending", "running"}},
		"foreground waits":      {options: policy(metav1.DeletePropagationForeground), wantPods: []string{"other", "running"}, wantSet: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			set := d.create(aSet())
			d.create(aPod("other"))
			d.create(aPod("pending", ownedBy(set)))
			d.running(MustBe[*corev1.Pod](d.create(aPod("running", ownedBy(set)))))
			if err := d.delete(KeyOf(set), tc.options); err != nil {
				t.Fatal(err)
			}
			d.collect()
			var pods []string
			for key := range d.objects {
				if key.Kind == Pods {
					pods = append(pods, key.Name)
				}
			}
			slices.Sort(pods)
			if diff := cmp.Diff(tc.wantPods, pods); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if got := d.Get(KeyOf(set)) != nil; got != tc.wantSet {
				t.Errorf("the set exists: %v, want %v", got, tc.wantSet)
			}
			deleted := d.Get(podKey("running")).GetDeletionTimestamp() != nil
			if want := !strings.HasPrefix(name, "orphan"); deleted != want {
				t.Errorf("the running pod is being deleted: %v, want %v", deleted, want)
			}
			if err := d.delete(podKey("running"), client.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Fatal(err)
			}
			d.collect()
			if d.Get(KeyOf(set)) != nil {
				t.Error("the set is still there after its last pod")
			}
		})
	}
}

func TestGarbageOfAnOwnerThatNeverWas(t *testing.T) {
	t.Parallel()
	d, set := newDesk(t), aSet()
	set.UID = "gone"
	d.create(aPod("a", ownedBy(set)))
	d.collect()
	if d.Get(podKey("a")) != nil {
		t.Error("the pod is still there")
	}
}

// The store imitates the interfaces through which a manager writes, and every method must pass the plan of faults. A
// verb that is added to them must not slip past it.
func TestEveryWritePassesTheFaultPlan(t *testing.T) {
	t.Parallel()
	hooked := map[string]func(client.Client){
		"Writer.Apply":             func(c client.Client) { _ = c.Apply(t.Context(), nil) },
		"Writer.Create":            func(c client.Client) { _ = c.Create(t.Context(), aPod("a")) },
		"Writer.Delete":            func(c client.Client) { _ = c.Delete(t.Context(), aPod("a")) },
		"Writer.DeleteAllOf":       func(c client.Client) { _ = c.DeleteAllOf(t.Context(), aPod("a")) },
		"Writer.Patch":             func(c client.Client) { _ = c.Patch(t.Context(), aPod("a"), client.RawPatch(types.MergePatchType, nil)) },
		"Writer.Update":            func(c client.Client) { _ = c.Update(t.Context(), aPod("a")) },
		"SubResourceWriter.Apply":  func(c client.Client) { _ = c.Status().Apply(t.Context(), nil) },
		"SubResourceWriter.Create": func(c client.Client) { _ = c.Status().Create(t.Context(), aPod("a"), aPod("a")) },
		"SubResourceWriter.Patch": func(c client.Client) {
			_ = c.Status().Patch(t.Context(), aPod("a"), client.RawPatch(types.MergePatchType, nil))
		},
		"SubResourceWriter.Update": func(c client.Client) { _ = c.Status().Update(t.Context(), aPod("a")) },
	}
	var methods []string
	for _, face := range []reflect.Type{reflect.TypeFor[client.Writer](), reflect.TypeFor[client.SubResourceWriter]()} {
		for method := range face.Methods() {
			methods = append(methods, face.Name()+"."+method.Name)
		}
	}
	for _, method := range methods {
		call, ok := hooked[method]
		if !ok {
			t.Errorf("%s is a new way to write", method)
			continue
		}
		faults := 0
		d := newDesk(t)
		c := NewClient(NewView(d.Store), "manager", nil)
		c.Faults = func(Write) Fault { faults++; return Failed500 }
		call(c)
		if faults != 1 || len(d.Log()) != 0 {
			t.Errorf("%s: %d faults injected, %d writes", method, faults, len(d.Log()))
		}
	}
	if len(hooked) != len(methods) {
		t.Errorf("%d methods hooked, %d exist", len(hooked), len(methods))
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []Fault{NoFault, Refused403, Refused409, Refused429, Failed500, TimeoutLost, TimeoutWritten, CrashBefore, CrashAfter} {
		d := newDesk(t)
		c := NewClient(NewView(d.Store), "manager", nil)
		c.Faults = func(Write) Fault { return fault }
		died := false
		var err error
		pod := aPod("a")
		func() {
			defer func() { died = recover() != nil }()
			err = c.Create(t.Context(), pod)
		}()
		if died != fault.Crashes() {
			t.Errorf("%q: died %v", fault, died)
		}
		if written := d.Get(podKey("a")) != nil; written != fault.commits() {
			t.Errorf("%q: written %v", fault, written)
		}
		if heard := err == nil && !died; heard != (fault == NoFault) || heard != (pod.UID != "") {
			t.Errorf("%q: error %v, UID %q", fault, err, pod.UID)
		}
	}
}

func BenchmarkCreateGetDelete(b *testing.B) {
	s := NewStore(newYear)
	pod := aPod("a")
	for b.Loop() {
		if _, err := s.Create(Write{}, pod); err != nil {
			b.Fatal(err)
		}
		if err := s.Delete(Write{Key: podKey("a")}); err != nil {
			b.Fatal(err)
		}
		s.log, s.byKind = s.log[:0], map[Kind][]int{}
	}
}

func BenchmarkStatusUpdate(b *testing.B) {
	s := NewStore(newYear)
	obj, err := s.Create(Write{}, aPod("a"))
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; b.Loop(); n++ {
		pod := MustBe[*corev1.Pod](Clone(obj))
		pod.Status.ObservedGeneration = int64(n)
		if obj, err = s.Update(Write{Subresource: "status"}, pod); err != nil {
			b.Fatal(err)
		}
		s.log, s.byKind = s.log[:0], map[Kind][]int{}
	}
}

func BenchmarkMergePatch(b *testing.B) {
	s := NewStore(newYear)
	if _, err := s.Create(Write{}, aPod("a")); err != nil {
		b.Fatal(err)
	}
	bodies := [][]byte{[]byte(`{"metadata":{"labels":{"x":"y"}}}`), []byte(`{"metadata":{"labels":{"x":"z"}}}`)}
	for n := 0; b.Loop(); n++ {
		if _, err := s.Patch(Write{Key: podKey("a"), Body: bodies[n%2]}, types.MergePatchType); err != nil {
			b.Fatal(err)
		}
		s.log, s.byKind = s.log[:0], map[Kind][]int{}
	}
}
