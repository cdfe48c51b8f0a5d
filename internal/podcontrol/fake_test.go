// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

// server implements as much of an API server as the writer needs. It keeps objects by name, and logs every request.
type server struct {
	client.Client

	objects map[string]client.Object
	log     []string
	version int
	// fail is called before each write.
	fail func(verb string, object client.Object) error
	// rewrite stands for an admission policy that changes each object before it is stored.
	rewrite func(object client.Object)
	// lose is called after each write that succeeded, and may lose its answer.
	lose func(verb string, object client.Object) error
}

func (s *server) write(verb string, object client.Object, do func() error) error {
	s.log = append(s.log, verb+" "+object.GetName())
	if s.fail != nil {
		if err := s.fail(verb, object); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if s.lose != nil {
		return s.lose(verb, object)
	}
	return nil
}

// Create implements client.Writer.
func (s *server) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	verb := "create"
	if slices.Contains(options, client.CreateOption(client.DryRunAll)) {
		verb = "dry-run"
	}
	return s.write(verb, object, func() error {
		if _, ok := s.objects[object.GetName()]; ok {
			return apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
		}
		if s.rewrite != nil {
			s.rewrite(object)
		}
		if verb == "create" {
			s.store(object)
		}
		return nil
	})
}

func (s *server) store(object client.Object) {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + object.GetName()))
	}
	s.objects[object.GetName()] = object
}

// changePod changes a pod as another client would.
func (s *server) changePod(name string, change func(*corev1.Pod)) {
	pod := s.objects[name].(*corev1.Pod).DeepCopy() //nolint:forcetypeassert // a test may panic
	change(pod)
	s.store(pod)
}

// Patch implements client.Writer. It takes every patch for a merge patch.
func (s *server) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	return s.write("patch", object, func() error {
		found, ok := s.objects[object.GetName()]
		if !ok {
			found = object
		}
		before, err := json.Marshal(found)
		if err != nil {
			return err
		}
		after, err := jsonpatch.MergePatch(before, data)
		if err != nil {
			return err
		}
		empty := reflect.ValueOf(object).Elem()
		empty.Set(reflect.Zero(empty.Type())) // the answer replaces what was sent
		if err := json.Unmarshal(after, object); err != nil {
			return err
		}
		if s.rewrite != nil {
			s.rewrite(object)
		}
		s.store(object)
		return nil
	})
}

// Delete implements client.Writer.
func (s *server) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	return s.write("delete", object, func() error {
		o := (&client.DeleteOptions{}).ApplyOptions(options)
		found, ok := s.objects[object.GetName()]
		switch {
		case !ok:
			return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
		case o.Preconditions == nil || o.Preconditions.UID == nil || o.Preconditions.ResourceVersion == nil:
			return apierrors.NewBadRequest("a delete without the UID or the resource version of what was judged")
		case *o.Preconditions.UID != found.GetUID(), *o.Preconditions.ResourceVersion != found.GetResourceVersion():
			return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), nil)
		}
		delete(s.objects, object.GetName())
		return nil
	})
}

// Get implements client.Reader.
func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.log = append(s.log, "get "+key.Name)
	found, ok := s.objects[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	switch into := into.(type) {
	case *corev1.Pod:
		*into = *found.(*corev1.Pod).DeepCopy() //nolint:forcetypeassert // a test may panic
	case *v1beta1.RollSet:
		*into = *found.(*v1beta1.RollSet).DeepCopy() //nolint:forcetypeassert // a test may panic
	case *corev1.PersistentVolumeClaim:
		*into = *found.(*corev1.PersistentVolumeClaim).DeepCopy() //nolint:forcetypeassert // a test may panic
	}
	return nil
}

// notes records events as "reason: note".
type notes struct{ all []string }

// Eventf implements events.EventRecorder.
func (n *notes) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	n.all = append(n.all, reason+": "+fmt.Sprintf(note, args...))
}

// world is a set with everything that its writer uses.
type world struct {
	server  *server
	notes   *notes
	store   *expectations.Store
	set     *v1beta1.RollSet
	control *Control
	// batches holds the sizes of the batches that were run.
	batches []int
	snap    snapshot.Set
}

const revision = "web-1"

func newWorld(identity v1beta1.PodIdentity) *world {
	w := &world{
		server: &server{objects: map[string]client.Object{}},
		notes:  &notes{},
		store:  expectations.New(clocktesting.NewFakePassiveClock(time.Unix(1000, 0))),
		set: &v1beta1.RollSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "set"},
			Spec: v1beta1.RollSetSpec{
				PodIdentity: identity,
				Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		},
	}
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	w.snap = snapshot.Set{
		Settings:  snapshot.Settings{Name: "web", UID: "set", Spec: &w.set.Spec},
		Revisions: snapshot.Revisions{Update: snapshot.Revision{Name: revision, Template: template}},
	}
	w.control = &Control{
		Client: w.server, Live: w.server, Expectations: w.store, Events: w.notes,
		Run: func(_ string, n int, f func(int)) {
			if n > 0 {
				w.batches = append(w.batches, n)
			}
			for i := range n {
				f(i)
			}
		},
	}
	return w
}

func (w *world) apply(t *testing.T, actions ...action.Action) Result {
	t.Helper()
	return w.control.Apply(t.Context(), w.set, &w.snap, action.Plan{Actions: actions})
}

// creates returns n creates, of identities 0 … n−1.
func creates(n int) []action.Action {
	all := make([]action.Action, n)
	for i := range all {
		all[i] = action.Create{ID: strconv.Itoa(i), Revision: revision, Reason: "missing"}
	}
	return all
}

// pod adds a pod to the server, and returns its deletion.
func (w *world) pod(name string) action.Delete {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", OwnerReferences: []metav1.OwnerReference{{Kind: "RollSet", Name: "web", UID: "set"}},
	}}
	w.server.store(pod)
	return action.Delete{Pod: pod.DeepCopy(), Reason: "above spec.replicas", Cause: action.ScaleDown}
}
