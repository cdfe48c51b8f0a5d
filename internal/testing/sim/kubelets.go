// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// kubelets drives the model of the kubelet for every pod that is bound to a node.
type kubelets struct {
	world *World
	model kubelet.Model
	pods  []*tracked
	// busy is the time until which no kubelet reports. Then each reports the latest status only.
	busy time.Time
}

// tracked is one pod with its kubelet's memory of it.
type tracked struct {
	key    apiserver.Key
	uid    types.UID
	memory kubelet.Memory
	due    bool
	at     time.Time
	lost   bool // its node is gone, and the kubelet with it
	// unreported is a status that a busy kubelet has not reported yet; nil if there is none.
	unreported *corev1.PodStatus
}

// observe schedules a kubelet to handle a pod that was written.
func (k *kubelets) observe(e *apiserver.Entry) {
	if e.Key.Kind == apiserver.RollSets && e.Old != nil && e.New != nil && e.Old.GetGeneration() != e.New.GetGeneration() {
		k.wakeMembers(e.At) // fewer of them may be wanted
	}
	if e.Key.Kind != apiserver.Pods {
		return
	}
	t := k.find(uidOf(e.Old))
	if e.Gone() {
		k.pods = slices.DeleteFunc(slices.Clone(k.pods), func(p *tracked) bool { return p == t }) // the old list may be iterated over
		return
	}
	if t == nil {
		t = &tracked{key: e.Key, uid: e.New.GetUID()}
		k.pods = append(k.pods, t)
	}
	t.due, t.at = apiserver.MustBe[*corev1.Pod](e.New).Spec.NodeName != "", e.At
	if e.Verb == apiserver.Create || e.Subresource == "binding" || e.Old.GetGeneration() != e.New.GetGeneration() ||
		invariants.OwnerOf(e.Old) != invariants.OwnerOf(e.New) {
		k.wakeMembers(e.At)
	}
}

// wakeMembers lets all members of a quorum notice that there may be another one.
func (k *kubelets) wakeMembers(at time.Time) {
	for _, t := range k.pods {
		if pod, ok := k.world.Store.Get(t.key).(*corev1.Pod); ok && isMember(pod) && !t.due {
			t.due, t.at = pod.Spec.NodeName != "", at
		}
	}
}

// isMember reports whether a pod becomes ready only together with others: the tag of its image says quorum.
func isMember(pod *corev1.Pod) bool {
	return strings.Contains(pod.Spec.Containers[0].Image, "quorum")
}

// hasQuorum reports whether all wanted pods of a pod's set exist and none of them is broken.
func (k *kubelets) hasQuorum(pod *corev1.Pod) bool {
	set := k.world.Set()
	if set == nil || invariants.OwnerOf(pod) != set.UID {
		return true
	}
	members := 0
	_, live := k.world.OwnPods(set)
	for _, other := range live {
		if other.Spec.NodeName != "" && !neverAvailable(&corev1.PodTemplateSpec{Spec: other.Spec}) {
			members++
		}
	}
	return members >= int(*set.Spec.Replicas)
}

func (k *kubelets) find(uid types.UID) *tracked {
	if i := slices.IndexFunc(k.pods, func(t *tracked) bool { return t.uid == uid }); i >= 0 {
		return k.pods[i]
	}
	return nil
}

func (k *kubelets) turns(add func(turn)) {
	for _, t := range k.pods {
		if t.due && !t.lost && !k.isDown(t) {
			add(turn{who: kubeletActor, about: string(t.uid), at: t.at, take: func(context.Context) error { return k.step(t) }})
		}
	}
}

// step lets the kubelet handle one pod.
func (k *kubelets) step(t *tracked) error {
	now := k.world.Now()
	pod := apiserver.MustBe[*corev1.Pod](k.world.Store.Get(t.key))
	seen := apiserver.Clone(pod)
	if t.unreported != nil {
		seen.Status = withForeign(*t.unreported, pod.Status)
	}
	if isMember(pod) && !k.hasQuorum(pod) {
		metav1.SetMetaDataAnnotation(&seen.ObjectMeta, kubelet.WithholdReadyAnnotation, "")
	}
	out := k.model.Step(seen, t.memory, now)
	t.due = out.Next > 0
	t.at = now.Add(out.Next)
	if err := k.report(t, pod, seen, out.Status); err != nil {
		return err
	}
	t.memory = out.Memory
	if out.Remove {
		err := k.world.Store.Delete(apiserver.Write{Actor: kubeletActor, Key: t.key, DeleteOptions: client.DeleteOptions{
			GracePeriodSeconds: new(int64(0)),
			Preconditions:      &metav1.Preconditions{UID: &t.uid},
		}})
		return client.IgnoreNotFound(err)
	}
	return nil
}

// report writes the status that a kubelet derived from a pod, if any. A busy kubelet keeps the status, continues from
// it, and reports it later.
func (k *kubelets) report(t *tracked, pod, seen *corev1.Pod, status *corev1.PodStatus) error {
	now := k.world.Now()
	switch {
	case status != nil && now.Before(k.busy):
		t.unreported, t.due, t.at = status, true, now
		return nil
	case t.unreported != nil && now.Before(k.busy):
		if !t.due || t.at.After(k.busy) {
			t.due, t.at = true, k.busy
		}
		return nil
	case status == nil && t.unreported == nil:
		return nil
	}
	reported := *pod
	reported.Status, t.unreported = *cmp.Or(status, &seen.Status), nil
	_, err := k.world.Store.Update(apiserver.Write{Actor: kubeletActor, Key: t.key, Subresource: "status"}, &reported)
	return err
}

// withForeign returns a status with the conditions of another one that are not the kubelet's.
func withForeign(own, there corev1.PodStatus) corev1.PodStatus {
	own.Conditions = slices.DeleteFunc(slices.Clone(own.Conditions), func(c corev1.PodCondition) bool { return !kubelet.Owns(c.Type) })
	for _, c := range there.Conditions {
		if !kubelet.Owns(c.Type) {
			own.Conditions = append(own.Conditions, c)
		}
	}
	return own
}

// lose cuts a pod off from its kubelet. The node controller marks the pod as not ready and evicts it, but no kubelet
// confirms that it has ended.
func (k *kubelets) lose(pod *corev1.Pod) error {
	if t := k.find(pod.UID); t != nil {
		t.lost = true
	}
	if err := markUnreachable(k.world.Store, pod); err != nil {
		return err
	}
	return client.IgnoreNotFound(k.world.Store.Delete(apiserver.Write{Actor: nodeActor, Key: apiserver.KeyOf(pod)}))
}

// markUnreachable lets the node controller mark a pod as not ready, because its node does not answer.
func markUnreachable(store *apiserver.Store, pod *corev1.Pod) error {
	reported := apiserver.Clone(pod)
	apiserver.SetPodCondition(&reported.Status, corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady", LastTransitionTime: store.Stamp(),
	})
	_, err := store.Update(apiserver.Write{Actor: nodeActor, Subresource: "status"}, reported)
	return client.IgnoreNotFound(err)
}

// isDown reports whether the zone of a pod's node is down.
func (k *kubelets) isDown(t *tracked) bool {
	pod, ok := k.world.Store.Get(t.key).(*corev1.Pod)
	return ok && k.world.scheduler.down[pod.Labels[corev1.LabelTopologyZone]] && pod.Spec.NodeName != ""
}

// uidOf returns the UID of an object; empty for nil.
func uidOf(obj client.Object) types.UID {
	if obj == nil {
		return ""
	}
	return obj.GetUID()
}

// isLost reports whether the node of a pod is lost for good.
func (k *kubelets) isLost(pod types.UID) bool {
	t := k.find(pod)
	return t == nil || t.lost
}

// run reports whether one of them runs a pod.
func (k *kubelets) run(pod types.UID) bool { return !k.isLost(pod) && !k.isDown(k.find(pod)) }
