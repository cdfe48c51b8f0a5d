// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

// deed does something to a side of a pair that is no edit of the spec.
type deed func(context.Context, *side, string) error

const (
	withheld     = kubelet.WithholdReadyAnnotation
	strangerName = "stranger"
	quotaName    = "pods"
)

// side is one set of a pair, with a namespace and a node of its own.
type side struct {
	client.Client
	namespace, node string
	write           func(wish, *side) client.Object
	wish            wish
	set             client.Object
	film            *film
}

// onPod does something to the pod at a place. There may be none.
func (s *side) onPod(ctx context.Context, place string, do func(*corev1.Pod) error) error {
	name := s.film.place(number(place))
	if name == "" {
		return nil
	}
	pod := &corev1.Pod{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(do(pod))
}

// onPods does something to all pods of the namespace.
func (s *side) onPods(ctx context.Context, do func(*corev1.Pod) error) error {
	list := &corev1.PodList{}
	if err := s.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if err := client.IgnoreNotFound(do(&list.Items[i])); err != nil {
			return err
		}
	}
	return nil
}

// annotate patches annotations of a pod; null takes one away.
func (s *side) annotate(ctx context.Context, pod *corev1.Pod, key, value string) error {
	return s.Patch(ctx, pod, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, key, value)))
}

func autoscale(ctx context.Context, s *side, to string) error {
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: number(to)}}
	return s.SubResource("scale").Update(ctx, s.write(s.wish, s), client.WithSubResourceBody(scale))
}

func deletePod(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error { return s.Delete(ctx, pod) })
}

func evictPod(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error { return s.annotate(ctx, pod, kubelet.EvictAnnotation, `"yes"`) })
}

// makeUnready has the probes of a pod fail from now on.
func makeUnready(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error {
		if err := s.annotate(ctx, pod, withheld, `"yes"`); err != nil {
			return err
		}
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].Ready = false
		}
		return s.writeUnready(ctx, pod, "ContainersNotReady")
	})
}

func (s *side) writeUnready(ctx context.Context, pod *corev1.Pod, reason string) error {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, reason, metav1.NewTime(time.Now())
		}
	}
	return s.Status().Update(ctx, pod)
}

func makeReady(ctx context.Context, s *side, _ string) error {
	return s.onPods(ctx, func(pod *corev1.Pod) error { return s.annotate(ctx, pod, withheld, "null") })
}

// loseNode makes the node of a pod fall silent. The node lifecycle controller then writes that the pod is not ready.
func loseNode(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error {
		if err := s.annotate(ctx, pod, nodes.SilentAnnotation, `"yes"`); err != nil {
			return err
		}
		return s.writeUnready(ctx, pod, "NodeNotReady")
	})
}

// dropNode is loseNode for so long that the pod is evicted from the node, which does not carry it out.
func dropNode(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error {
		if err := s.annotate(ctx, pod, nodes.SilentAnnotation, `"yes"`); err != nil {
			return err
		}
		if err := s.writeUnready(ctx, pod, "NodeNotReady"); err != nil {
			return err
		}
		return s.Delete(ctx, pod)
	})
}

func bringBack(ctx context.Context, s *side, _ string) error {
	return s.onPods(ctx, func(pod *corev1.Pod) error { return s.annotate(ctx, pod, nodes.SilentAnnotation, "null") })
}

func holdPod(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error {
		hold := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, holdFinalizer))
		if err := s.Patch(ctx, pod, hold); !apierrors.IsInvalid(err) {
			return err
		}
		return nil // the pod is being deleted
	})
}

func letGo(ctx context.Context, s *side, _ string) error {
	return s.onPods(ctx, func(pod *corev1.Pod) error {
		if !slices.Contains(pod.Finalizers, holdFinalizer) {
			return nil
		}
		return s.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
}

func cordon(ctx context.Context, s *side, _ string) error   { return s.cordon(ctx, true) }
func uncordon(ctx context.Context, s *side, _ string) error { return s.cordon(ctx, false) }

func (s *side) cordon(ctx context.Context, on bool) error {
	s.film.mu.Lock()
	s.film.cordoned = on
	s.film.mu.Unlock()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node}}
	return s.Patch(ctx, node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)))
}

// limitPods allows no more pods than there are.
func limitPods(ctx context.Context, s *side, _ string) error {
	list := &corev1.PodList{}
	if err := s.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: quotaName},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(int64(len(list.Items)), resource.DecimalSI),
		}},
	}
	if err := s.Create(ctx, quota); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	for len(quota.Status.Hard) == 0 { // until then every pod is refused
		time.Sleep(pollEvery)
		if err := s.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
	}
	return nil
}

func unlimitPods(ctx context.Context, s *side, _ string) error {
	return s.DeleteAllOf(ctx, &corev1.ResourceQuota{}, client.InNamespace(s.namespace))
}

// takeName makes a pod of another client with the name of an ordinal, if it is free.
// takeName takes the name of a pod, unless the pod is there or a quota is full.
func takeName(ctx context.Context, s *side, ordinal string) error {
	err := client.IgnoreAlreadyExists(s.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: s.set.GetName() + "-" + ordinal, Labels: map[string]string{strangerName: "yes"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "stranger:v1"}}},
	}))
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

func freeNames(ctx context.Context, s *side, _ string) error {
	return s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.HasLabels{strangerName})
}

// mislabel takes a pod out of its set, as people do who want to look into it.
func mislabel(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error { return s.relabel(ctx, pod, s.set.GetName()+"-quarantine") })
}

func relabel(ctx context.Context, s *side, _ string) error {
	return s.onPods(ctx, func(pod *corev1.Pod) error {
		if pod.Labels[appLabel] != s.set.GetName()+"-quarantine" {
			return nil
		}
		return s.relabel(ctx, pod, s.set.GetName())
	})
}

func (s *side) relabel(ctx context.Context, pod *corev1.Pod, app string) error {
	return s.Patch(ctx, pod, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, appLabel, app)))
}

// loseClaim deletes a pod with its claim.
func loseClaim(ctx context.Context, s *side, place string) error {
	return s.onPod(ctx, place, func(pod *corev1.Pod) error {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: claimName + "-" + pod.Name}}
		if err := client.IgnoreNotFound(s.Delete(ctx, claim)); err != nil {
			return err
		}
		return s.Delete(ctx, pod)
	})
}

func endQuarantine(ctx context.Context, s *side, _ string) error {
	return s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.MatchingLabels{appLabel: s.set.GetName() + "-quarantine"})
}

// undo takes back all that keeps pods from changing.
func (s *side) undo(ctx context.Context) error {
	for _, undo := range []deed{bringBack, makeReady, letGo, uncordon, unlimitPods, freeNames, endQuarantine} {
		if err := undo(ctx, s, ""); err != nil {
			return err
		}
	}
	return nil
}
