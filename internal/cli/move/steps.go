// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
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

// carryOut runs the steps one after the other, and repeats a step that failed for a reason that passes. A closed output does
// not stop it half-way.
func (m *mover) carryOut(ctx context.Context, steps []step, command string) error {
	signal.Ignore(syscall.SIGPIPE)
	for i, s := range steps {
		fmt.Fprintf(m.session.Out, "%d/%d %s\n", i+1, len(steps), s.what)
		err := m.awaitFor(ctx, m.timeout+time.Second, s.what, func(ctx context.Context) (bool, error) { // what the step waits for ends first
			err := s.do(ctx)
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("%w; step %d of %d is not done, %s goes on there", err, i+1, len(steps), command)
		}
	}
	return nil
}

// await waits until holds, also while it fails for reasons that pass; what says what for.
func (m *mover) await(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	return m.awaitFor(ctx, m.timeout, what, holds)
}

func (m *mover) awaitFor(ctx context.Context, limit time.Duration, what string, holds func(context.Context) (bool, error)) error {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := m.session.Clock.NewTicker(poll)
	defer ticker.Stop()
	for {
		ok, err := holds(within)
		if ok || err != nil && within.Err() == nil && !passes(err) {
			return err
		}
		select {
		case <-ticker.C():
			continue
		case <-within.Done():
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		timeout := fmt.Errorf("waited %v for %s", limit, what)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			timeout = fmt.Errorf("%w: %w", timeout, err)
		}
		return &session.ExitError{Code: session.ExitTimeout, Err: timeout}
	}
}

// passes reports whether a request may succeed when it is repeated: someone else wrote the object, or the API server is not
// well. All steps may be repeated.
func passes(err error) bool {
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return true
	}
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsProbableEOF(err)
}

// uncontrolled returns an error if another object controls a workload. It would make the workload again.
func uncontrolled(o *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil
	}
	return fmt.Errorf("%s is controlled by %s/%s, which would make it again: change it through that object, or take it away from there first",
		describe(o), strings.ToLower(owner.Kind), owner.Name)
}

// acceptLoss prints what has no counterpart, or returns it as an error.
func acceptLoss(s *session.Session, lost []string, lossy bool) error {
	if len(lost) > 0 && !lossy {
		return fmt.Errorf("no counterpart for %s; --lossy leaves it out", strings.Join(lost, "; "))
	}
	for _, what := range lost {
		fmt.Fprintln(s.ErrOut, "warning: left out:", what)
	}
	return nil
}

// tryOut tries what can be tried of a move: it creates an object as a dry run, and lists autoscalers. A field that the API
// server leaves out, because it does not know or enable it, is an error too.
func (m *mover) tryOut(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	judged := o.DeepCopy()
	judged.SetNamespace(m.namespace)
	if err := m.client.Create(ctx, judged, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("the API server refuses the %s: %w", o.GetKind(), err)
	}
	if field := missing("spec", o.Object["spec"], judged.Object["spec"]); field != "" {
		return nil, fmt.Errorf("the API server leaves out %s of the %s: it does not support the field", field, o.GetKind())
	}
	if _, err := m.autoscalers(ctx); err != nil { // a right that is missing is not to be found out half-way
		return nil, err
	}
	return judged, nil
}

// missing returns the path of the first field of one value that another does not have; empty if there is none. Zero values
// may be missing.
func missing(path string, sent, got any) string {
	if items, ok := sent.([]any); ok {
		others, _ := got.([]any)
		for i := range min(len(items), len(others)) {
			if field := missing(fmt.Sprintf("%s[%d]", path, i), items[i], others[i]); field != "" {
				return field
			}
		}
	}
	fields, _ := sent.(map[string]any)
	others, _ := got.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		item, ok := others[key]
		if !ok && !empty(fields[key]) {
			return path + "." + key
		}
		if field := missing(path+"."+key, fields[key], item); ok && field != "" {
			return field
		}
	}
	return ""
}

// empty reports whether a value of an object says nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if !empty(item) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return value == nil || reflect.ValueOf(value).IsZero()
	}
}

// free returns an error if there is an object of the kind and name of one that this move deleted.
func (m *mover) free(ctx context.Context, like *unstructured.Unstructured) error {
	o, err := m.get(ctx, like)
	if err != nil || o == nil || o.GetUID() == m.UID {
		return err
	}
	return fmt.Errorf("%s was made again while it was moved: keep whatever manages it, such as Argo CD, Flux or an operator, from doing so", describe(like))
}

// letGo deletes an object if it is still the one that was recorded, and orphans what it owns. A generation of 0 means any.
func (m *mover) letGo(ctx context.Context, gvk schema.GroupVersionKind, name string, uid types.UID, generation int64) error {
	err := m.await(ctx, fmt.Sprintf("%s %s to let go of what it owns", gvk.Kind, name), func(ctx context.Context) (bool, error) {
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
	if err != nil {
		return err
	}
	return m.orphaned(ctx, uid)
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

// orphaned waits until an object that is gone owns neither pods nor claims.
func (m *mover) orphaned(ctx context.Context, old types.UID) error {
	return m.await(ctx, "the pods and claims to be let go", func(ctx context.Context) (bool, error) {
		pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
		err := errors.Join(m.client.List(ctx, pods, client.InNamespace(m.namespace)), m.client.List(ctx, claims, client.InNamespace(m.namespace)))
		if err != nil {
			return false, err
		}
		owned := func(o metav1.Object) bool {
			return slices.ContainsFunc(o.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == old })
		}
		for i := range pods.Items {
			if owned(&pods.Items[i]) {
				return false, nil
			}
		}
		for i := range claims.Items {
			if owned(&claims.Items[i]) {
				return false, nil
			}
		}
		return true, nil
	})
}

// label labels the pods of the revision that is moved back, also those that were made after the move was recorded.
func (m *mover) label(ctx context.Context, key, value string) error {
	pods := &corev1.PodList{}
	if err := m.client.List(ctx, pods, client.InNamespace(m.namespace), client.MatchingLabels{v1beta1.RevisionLabel: m.Revision}); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOf(pod)
		if owner != nil && (owner.Kind != m.Old.GetKind() || owner.Name != m.Old.GetName()) || pod.Labels[key] == value {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, pod.UID, key, value)
		if err := m.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// tellPods prints how many of the pods keep running. It leaves out a deleted pod, because the controller of the pods replaces it.
func (m *mover) tellPods(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := m.client.List(ctx, pods, client.InNamespace(m.namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	kept, restarts := 0, int32(0)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if uid, ok := m.Pods[pod.Name]; !ok || uid != pod.UID {
			continue
		}
		kept++
		for _, status := range pod.Status.ContainerStatuses {
			restarts += status.RestartCount
		}
	}
	_, err := fmt.Fprintf(m.session.Out, "%d of %d pods run on; their containers have been restarted %d times in all\n", kept, len(m.Pods), restarts)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
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
