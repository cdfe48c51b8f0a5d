// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/kubelet"
)

// podKey names a pod; podQueue holds the pods to handle, now or at a given time. It never hands out one pod to two
// workers.
type (
	podKey   = types.NamespacedName
	podQueue = workqueue.TypedDelayingInterface[podKey]
)

// SilentAnnotation on a pod, with any value, makes its node silent for this pod alone, as Fleet.Silence does for all.
const SilentAnnotation = "nodes.sim/silent"

// sighting is the fleet's memory of a pod from one look to the next.
type sighting struct {
	uid    types.UID
	node   string
	memory kubelet.Memory
	// written is the pod as the last write of its status returned it: the cache may lag behind it.
	written *corev1.Pod
}

// podKeeper runs the pods of a fleet.
type podKeeper struct{ *Fleet }

func (f podKeeper) watchPods(factory informers.SharedInformerFactory) error {
	f.pods = factory.Core().V1().Pods().Lister()
	look := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			f.looks.Add(podKey{Namespace: key.Namespace, Name: key.Name})
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, object any) { look(object) },
		DeleteFunc: look,
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	return nil
}

// work looks at pods until the queue shuts down.
func (f podKeeper) work(ctx context.Context) {
	for {
		key, shutdown := f.looks.Get()
		if shutdown {
			return
		}
		again, err := f.look(ctx, key)
		if err != nil {
			again = retryDelay
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				f.log.Error(err, "pod not updated", "pod", key)
			}
		}
		if again > 0 {
			f.looks.AddAfter(key, again)
		}
		f.looks.Done(key)
	}
}

// look does for one pod what its node would do now, and returns when to look again; 0: when it changes.
func (f podKeeper) look(ctx context.Context, key podKey) (time.Duration, error) {
	pod, err := f.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		f.mu.Lock()
		delete(f.seen, key)
		f.mu.Unlock()
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read pod %s: %w", key, err)
	}
	if pod.Spec.NodeName == "" && f.options.Bind {
		return binder(f).bind(ctx, pod)
	}
	if _, silent := pod.Annotations[SilentAnnotation]; silent || !f.owns(pod) || f.isSilent(pod.Spec.NodeName) {
		return 0, nil
	}
	s, memory := f.sight(key, pod)
	pod = newest(pod, s.written)
	outcome := f.options.Model.Step(pod, memory, time.Now())
	if outcome.Status != nil {
		written, err := f.writeStatus(ctx, pod, outcome.Status)
		if err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		s.written = written
	}
	f.mu.Lock()
	s.memory = outcome.Memory
	f.mu.Unlock()
	if outcome.Remove {
		return 0, client.IgnoreNotFound(f.remove(ctx, pod))
	}
	return outcome.Next, nil
}

// sight returns the memory of a pod. A pod with the same name and another UID is another pod.
func (f podKeeper) sight(key podKey, pod *corev1.Pod) (*sighting, kubelet.Memory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.seen[key]
	if s == nil || s.uid != pod.UID {
		s = &sighting{uid: pod.UID, node: pod.Spec.NodeName}
		f.seen[key] = s
	}
	return s, s.memory
}

// newest returns the later one of the pod in the cache and the pod as it was last written.
func newest(cached, written *corev1.Pod) *corev1.Pod {
	if written == nil {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion); err != nil || order >= 0 {
		return cached
	}
	return written
}

func (f podKeeper) writeStatus(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) (*corev1.Pod, error) {
	patch, err := statusPatch(pod, status)
	if err != nil {
		return nil, err
	}
	written, err := f.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name,
		types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("patch status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return written, nil
}

// remove lets go of the object of a pod that has ended.
func (f podKeeper) remove(ctx context.Context, pod *corev1.Pod) error {
	err := f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
