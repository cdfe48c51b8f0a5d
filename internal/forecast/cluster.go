// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/actors"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
)

// kubeletActor is the name under which kubelets write.
const kubeletActor = "kubelet"

// Surroundings are the assumptions about everything around the controller.
type Surroundings struct {
	// Kubelet decides what happens to pods that have a node.
	Kubelet kubelet.Stepper
	// Refuses returns why no node takes a pod, in the scheduler's words; empty if one does.
	Refuses func(*corev1.Pod) string
	// Nodes are the nodes that pods can be bound to. There must be one.
	Nodes []string
	// Labels holds the labels that a pod gets from its node, by the names of nodes.
	Labels map[string]map[string]string
	// Prepare changes the API server before anything happens; nil leaves it unchanged.
	Prepare func(*apiserver.Store)
	// Judged is true if each step of a rollout that waits for a gate or a person continues at once. Otherwise it waits.
	Judged bool
	// NewestFirst is true if, of the pods about which something is due at the same moment, the newest comes first. Otherwise the oldest
	// does.
	NewestFirst bool
}

// cluster is the simulated cluster: the API server with its objects, and everything that acts on them. Each actor has
// fields of its own; one clock and one queue of events order them all.
type cluster struct {
	Surroundings

	// owner is the UID of the set.
	owner   types.UID
	store   *apiserver.Store
	clock   *simulator.Clock
	manager *simulator.Solo

	tracked map[types.UID]*tracked
	seen    int
	due     visits
	// scheduler counts the pods of the set on each node.
	scheduler *actors.Scheduler
	claims    *actors.Claims
	// wrote is when the manager last wrote anything but a status.
	wrote time.Time
	// onWork is called before each reconcile.
	onWork func()
	// onIdle is called when nothing is left to do now. It reports whether it has changed that.
	onIdle func() (acted bool, err error)
}

// tracked is a pod with the memory of its kubelet.
type tracked struct {
	key    apiserver.Key
	uid    types.UID
	number int
	memory kubelet.Memory
	// planned distinguishes the visit that counts from those that were planned earlier.
	planned int
	lost    bool
}

// newCluster returns a cluster with objects as they were at a time.
func newCluster(around Surroundings, owner types.UID, objects []client.Object, now time.Time) *cluster {
	c := &cluster{
		Surroundings: around,
		owner:        owner,
		clock:        simulator.NewClock(now),
		tracked:      map[types.UID]*tracked{},
		wrote:        now,
		onWork:       func() {},
		onIdle:       func() (bool, error) { return false, nil },
	}
	c.store = apiserver.NewStore(c.clock.Now)
	c.store.Load(objects...)
	c.claims = &actors.Claims{Store: c.store}
	c.scheduler = &actors.Scheduler{
		Store: c.store, Fit: c.fit, Counts: func(pod *corev1.Pod) bool { return isOf(pod, c.owner) },
		Labels: func(node string) map[string]string { return c.Labels[node] },
	}
	for _, claim := range among[*corev1.PersistentVolumeClaim](objects) {
		c.claims.Add(apiserver.KeyOf(claim))
	}
	pods := among[*corev1.Pod](objects)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	for _, pod := range pods {
		c.takeOver(pod)
	}
	for _, observe := range []func(*apiserver.Entry){c.observe, c.claims.Observe, c.scheduler.Observe} {
		c.store.OnWrite(observe)
	}
	return c
}

// takeOver continues a pod's life from its current state.
func (c *cluster) takeOver(pod *corev1.Pod) {
	c.scheduler.Load(pod)
	c.claims.Load(pod)
	t := c.track(pod)
	switch {
	case isLost(pod), c.isForeign(pod): // what others do with their pods is not known
		t.lost = true
	case isUnschedulable(pod) && c.Refuses(pod) != "":
		c.scheduler.Refuse(t.key)
	case pod.Spec.NodeName == "":
		c.scheduler.Add(t.key)
	default:
		memory, next, due := kubelet.Resume(c.Kubelet, pod, c.clock.Now())
		t.memory = memory
		if due {
			c.visit(t, next)
		}
	}
}

// isForeign reports whether another controller has a pod that is not about to end.
func (c *cluster) isForeign(pod *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(pod) != nil && !isOf(pod, c.owner) && pod.DeletionTimestamp == nil
}

func (c *cluster) track(pod *corev1.Pod) *tracked {
	t := &tracked{key: apiserver.KeyOf(pod), uid: pod.UID, number: c.seen}
	c.seen++
	if c.NewestFirst {
		t.number = -t.number
	}
	c.tracked[pod.UID] = t
	return t
}

// visit plans the next visit of a kubelet to a pod, in place of any other.
func (c *cluster) visit(t *tracked, at time.Time) {
	t.planned++
	heap.Push(&c.due, visit{at: at, pod: t, planned: t.planned})
}

// observe shows a write to the kubelets.
func (c *cluster) observe(e *apiserver.Entry) {
	if e.Actor == simulator.ManagerActor && (e.Subresource != "status" || e.Key.Kind != apiserver.RollSets) {
		c.wrote = e.At
	}
	if e.Key.Kind != apiserver.Pods {
		return
	}
	old, _ := e.Old.(*corev1.Pod)
	pod, ok := e.New.(*corev1.Pod)
	if !ok {
		delete(c.tracked, old.UID)
		return
	}
	t, ok := c.tracked[pod.UID]
	if !ok {
		t = c.track(pod)
	}
	if pod.Spec.NodeName != "" && !t.lost {
		c.visit(t, e.At)
	}
}

// run advances time until the manager has written nothing for as long as quiet, or nothing is due. It fails when the context
// ends.
func (c *cluster) run(ctx context.Context, quiet time.Duration) error {
	c.manager = simulator.NewSolo(ctx, c.store, c.clock)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		acted, err := c.turn(ctx)
		if !acted && err == nil {
			acted, err = c.onIdle()
		}
		if err != nil {
			return err
		}
		if acted {
			continue
		}
		next, ok := c.next()
		if !ok || next.After(c.wrote.Add(quiet)) {
			return nil
		}
		c.clock.SetTime(next)
	}
}

// next returns when the next event is due.
func (c *cluster) next() (at time.Time, ok bool) {
	at, ok = c.manager.Next()
	if v, due := c.due.first(); due && (!ok || v.at.Before(at)) {
		return v.at, true
	}
	return at, ok
}

// turn lets one part of the cluster do one thing. The manager comes first, as one that is never late.
func (c *cluster) turn(ctx context.Context) (acted bool, err error) {
	now := c.clock.Now()
	if c.manager.Deliver(ctx) {
		return true, nil
	}
	if at, ok := c.manager.Next(); ok && !at.After(now) {
		c.onWork()
		return true, c.manager.Work(ctx)
	}
	switch {
	case c.store.HasGarbage():
		return true, c.store.Collect()
	case c.scheduler.Waits():
		return true, c.scheduler.Step()
	case c.claims.Waits():
		return true, c.claims.Step()
	}
	if v, ok := c.due.first(); ok && !v.at.After(now) {
		heap.Pop(&c.due)
		return true, c.step(v.pod)
	}
	return false, nil
}

// step lets a kubelet look at a pod.
func (c *cluster) step(t *tracked) error {
	pod, ok := c.store.Get(t.key).(*corev1.Pod)
	if !ok || pod.UID != t.uid {
		return nil
	}
	now := c.clock.Now()
	out := c.Kubelet.Step(pod, t.memory, now)
	if out.Next > 0 {
		c.visit(t, now.Add(out.Next))
	}
	if out.Status != nil {
		reported := *pod
		reported.Status = *out.Status
		if _, err := c.store.Update(apiserver.Write{Actor: kubeletActor, Subresource: "status"}, &reported); err != nil {
			return fmt.Errorf("report the status of pod %s: %w", pod.Name, err)
		}
	}
	t.memory = out.Memory
	if !out.Remove {
		return nil
	}
	err := c.store.Delete(apiserver.Write{Actor: kubeletActor, Key: t.key, DeleteOptions: client.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &t.uid},
	}})
	return client.IgnoreNotFound(err)
}
