// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/cli/session"
)

// poll is how often to check for something that is waited for.
const poll = 200 * time.Millisecond

// mover runs the steps of a move in a namespace. Each step is a method or two, with what it prints.
type mover struct {
	session   *session.Session
	client    client.WithWatch
	namespace string
	timeout   time.Duration
	*record
}

// step is a part of a move. It does nothing if it was done before.
type step struct {
	what string
	do   func(context.Context) error
}

// list prints the steps of a dry run.
func (m *mover) list(steps []step) {
	for i, s := range steps {
		fmt.Fprintf(m.session.Out, "%d. %s\n", i+1, s.what)
	}
}

// carryOut runs the steps one after the other. A closed output does not stop it half-way.
func (m *mover) carryOut(ctx context.Context, steps []step, command string) error {
	signal.Ignore(syscall.SIGPIPE)
	for i, s := range steps {
		fmt.Fprintf(m.session.Out, "%d/%d %s\n", i+1, len(steps), s.what)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%w; step %d of %d is not done, %s goes on there", err, i+1, len(steps), command)
		}
	}
	return nil
}

// await waits until holds; what says what for.
func (m *mover) await(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	timer := m.session.Clock.NewTimer(m.timeout)
	defer timer.Stop()
	ticker := m.session.Clock.NewTicker(poll)
	defer ticker.Stop()
	for {
		ok, err := holds(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
			return &session.ExitError{Code: session.ExitTimeout, Err: fmt.Errorf("waited %v for %s", m.timeout, what)}
		}
	}
}

// letGo deletes an object if it is still the one that was recorded, and orphans what it owns. A generation of 0 means any.
func (m *mover) letGo(ctx context.Context, gvk schema.GroupVersionKind, name string, uid types.UID, generation int64) error {
	return m.await(ctx, fmt.Sprintf("%s %s to let go of what it owns", gvk.Kind, name), func(ctx context.Context) (bool, error) {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		err := m.client.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: name}, o)
		switch {
		case apierrors.IsNotFound(err), err == nil && o.GetUID() != uid:
			return true, nil
		case err != nil:
			return false, err
		case o.GetDeletionTimestamp() != nil:
			return false, nil
		case generation != 0 && o.GetGeneration() != generation:
			return false, fmt.Errorf("%s was changed meanwhile; it was not deleted", describe(o))
		}
		version := o.GetResourceVersion()
		err = m.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &uid, ResourceVersion: &version})
		if apierrors.IsConflict(err) { // its status was written
			err = nil
		}
		return false, client.IgnoreNotFound(err)
	})
}

// create creates an object unless it exists.
func (m *mover) create(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	o.SetNamespace(m.namespace)
	err := m.client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// runOn reads the pods that keep running. It leaves out a deleted pod, because the controller of the pods replaces it.
func (m *mover) runOn(ctx context.Context) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var found []*corev1.Pod
	for i := range list.Items {
		if uid, ok := m.Pods[list.Items[i].Name]; ok && uid == list.Items[i].UID {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

// orphaned waits until no controller owns the pods.
func (m *mover) orphaned(ctx context.Context, old types.UID) error {
	return m.await(ctx, "the pods to be let go", func(ctx context.Context) (bool, error) {
		pods, err := m.runOn(ctx)
		for _, pod := range pods {
			if owner := metav1.GetControllerOf(pod); owner != nil && owner.UID == old {
				return false, err
			}
		}
		return err == nil, err
	})
}

// label labels the pods.
func (m *mover) label(ctx context.Context, key, value string) error {
	pods, err := m.runOn(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Labels[key] == value {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, pod.UID, key, value)
		if err := m.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// tellPods prints how many of the pods keep running.
func (m *mover) tellPods(ctx context.Context) error {
	pods, err := m.runOn(ctx)
	if err != nil {
		return err
	}
	restarts := int32(0)
	for _, pod := range pods {
		for i := range pod.Status.ContainerStatuses {
			restarts += pod.Status.ContainerStatuses[i].RestartCount
		}
	}
	_, err = fmt.Fprintf(m.session.Out, "%d of %d pods run on; their containers have been restarted %d times in all\n", len(pods), len(m.Pods), restarts)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// retargetAll points the autoscalers of one workload to another.
func (m *mover) retargetAll(ctx context.Context, from, to *unstructured.Unstructured) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscalerList"})
	if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
		return fmt.Errorf("list autoscalers: %w", err)
	}
	for i := range list.Items {
		before := &list.Items[i]
		after := before.DeepCopy()
		if !retarget(after, from, to) {
			continue
		}
		if err := m.client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("point autoscaler %s to %s: %w", after.GetName(), describe(to), err)
		}
	}
	return nil
}

// get reads an object of the kind and name of another; nil if there is none.
func (m *mover) get(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(like.GroupVersionKind())
	err := m.client.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: like.GetName()}, o)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return o, nil
}
