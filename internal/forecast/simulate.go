// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Input holds the objects and facts of a forecast.
type Input struct {
	// Before is the set as it is; nil if it does not exist yet.
	Before *v1beta1.RollSet
	// After is the set as it will be, with the defaults of the API server.
	After *v1beta1.RollSet
	// Objects are the pods, claims, revisions and storage classes that the controller may see.
	Objects []client.Object
	// Sample is a pod of the new template as the API server would store it; nil if unknown.
	Sample *corev1.Pod
	// Refusal is why the API server refuses pods of the new template; empty if it does not.
	Refusal string
	// Offline is true if no cluster was asked.
	Offline bool
	// Now is the time at which all of this was read.
	Now time.Time
}

// run is the result of one run of the controller.
type run struct {
	record *record
	lanes  []Lane
	end    time.Time
	store  *apiserver.Store
	set    *v1beta1.RollSet
	waits  []Wait
}

// anyUID stands for the UID that a set gets when it is created.
const anyUID types.UID = "00000000-0000-4000-8000-000000000001"

// restAfter is how long the controller must write nothing until the run ends. It is longer than its longest back-off.
const restAfter = 12 * time.Minute

// simulate runs the controller on the input until it has nothing more to write.
func simulate(ctx context.Context, in Input, around Surroundings) (r *run, err error) {
	defer func() {
		if what := recover(); what != nil { // the simulator panics at what it does not know
			r, err = nil, fmt.Errorf("this cannot be simulated: %v", what)
		}
	}()
	set := cmp.Or(in.Before, in.After)
	objects := slices.Clone(in.Objects)
	if in.Before == nil {
		created := in.After.DeepCopy()
		created.UID = cmp.Or(created.UID, anyUID)
		created.Generation, created.CreationTimestamp = 1, metav1.NewTime(in.Now)
		created.Status = v1beta1.RollSetStatus{ObservedGeneration: -1}
		set = created
	}
	objects = append([]client.Object{set}, objects...)
	c := newCluster(around, set.UID, objects, in.Now)
	c.store.Elsewhere = ownersElsewhere(objects)
	if in.Before != nil {
		if err := c.edit(in.After); err != nil {
			return nil, err
		}
	}
	c.store.Admission = admission(in)
	if around.Prepare != nil {
		around.Prepare(c.store)
	}
	minReady := time.Duration(in.After.Spec.MinReadySeconds) * time.Second
	record := newRecord(in.Now, minReady, set.UID, among[*corev1.Pod](objects))
	record.domainKey = domainKey(in.After)
	c.store.OnWrite(record.observe)
	record.actor = simulator.ManagerActor
	c.onWork = func() { record.since = len(record.writes) }
	j := &judge{cluster: c, record: record, key: apiserver.KeyOf(set)}
	if around.Judged {
		c.onIdle = j.act
	}
	ctx = logr.NewContext(ctx, record.reasons())
	if err := c.run(ctx, restOf(&in.After.Spec)); err != nil {
		return nil, err
	}
	end := c.clock.Now()
	if available := c.wrote.Add(minReady); available.After(end) {
		end = available
	}
	after, _ := c.store.Get(apiserver.KeyOf(set)).(*v1beta1.RollSet)
	return &run{record: record, lanes: record.finish(end), end: end, store: c.store, set: after, waits: j.waits}, nil
}

// edit changes the set as the user is about to.
func (c *cluster) edit(after *v1beta1.RollSet) error {
	now, ok := c.store.Get(apiserver.KeyOf(after)).(*v1beta1.RollSet)
	if !ok {
		return fmt.Errorf("rollset %s/%s is not among the objects", after.Namespace, after.Name)
	}
	edited := now.DeepCopy()
	edited.Labels, edited.Annotations, edited.Spec = after.Labels, after.Annotations, *after.Spec.DeepCopy()
	if _, err := c.store.Update(apiserver.Write{Actor: "user"}, edited); err != nil {
		return fmt.Errorf("edit rollset %s: %w", after.Name, err)
	}
	return nil
}

// restOf returns how long the controller of a set must write nothing until the run ends.
func restOf(spec *v1beta1.RollSetSpec) time.Duration {
	rest := restAfter + time.Duration(spec.MinReadySeconds)*time.Second
	if d := spec.ProgressDeadlineSeconds; d != nil && *d != math.MaxInt32 {
		rest += time.Duration(*d) * time.Second
	}
	soak := int32(0)
	for _, step := range spec.UpdateStrategy.RollingUpdate.Steps {
		soak = max(soak, step.SoakSeconds)
	}
	return rest + time.Duration(soak)*time.Second
}

// ownersElsewhere returns the owners that are not among the objects. The garbage collector would take them for deleted.
func ownersElsewhere(objects []client.Object) map[types.UID]bool {
	known, elsewhere := map[types.UID]bool{}, map[types.UID]bool{}
	for _, obj := range objects {
		known[obj.GetUID()] = true
	}
	for _, obj := range objects {
		for _, ref := range obj.GetOwnerReferences() {
			if !known[ref.UID] {
				elsewhere[ref.UID] = true
			}
		}
	}
	return elsewhere
}

// among returns the objects of one type.
func among[T client.Object](objects []client.Object) []T {
	var found []T
	for _, obj := range objects {
		if o, ok := obj.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// waitsFor returns what the set waits for at the end, by its own message; empty if it is complete. A paused set, and one whose pods
// wait to be deleted, are Ready although old pods are left.
func (r *run) waitsFor() string {
	if r.set == nil {
		return ""
	}
	c := meta.FindStatusCondition(r.set.Status.Conditions, v1beta1.ConditionProgressing)
	rests := c != nil && c.Reason == v1beta1.ReasonPaused ||
		r.set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategy && r.set.Status.UpdatedReplicas < r.set.Status.Replicas
	if c == nil || meta.IsStatusConditionTrue(r.set.Status.Conditions, v1beta1.ConditionReady) && !rests {
		return ""
	}
	return c.Message
}

// update returns the name of the update revision; empty if there is none.
func (r *run) update() string {
	if r.set == nil {
		return ""
	}
	return r.set.Status.UpdateRevision
}
