// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// eachPod returns a command about the pods that its arguments name. It skips pods that do not exist, because in a
// replay the user may be too early or too late.
func eachPod(what string, do func(*World, *corev1.Pod) error) func(context.Context, *World, []string) error {
	return func(_ context.Context, w *World, args []string) error {
		for _, arg := range args {
			pod := w.podNamed(arg)
			if pod == nil {
				continue
			}
			w.note(what + " " + arg)
			if err := do(w, pod); err != nil {
				return err
			}
		}
		return nil
	}
}

// editEach returns a command by which a user edits the pods that its arguments name.
func editEach(what string, change func(*corev1.Pod)) func(context.Context, *World, []string) error {
	return eachPod(what, func(w *World, pod *corev1.Pod) error { return edit(w, pod, change) })
}

// labelEach returns a command by which a user labels the pods that its arguments name.
func labelEach(what, key, value string) func(context.Context, *World, []string) error {
	return editEach(what, func(p *corev1.Pod) { p.Labels[key] = value })
}

// noteEach returns a command by which a user annotates the pods that its arguments name.
func noteEach(what, key, value string) func(context.Context, *World, []string) error {
	return editEach(what, func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) })
}

func deletePod(w *World, pod *corev1.Pod) error {
	return w.Store.Delete(apiserver.Write{Actor: userActor, Key: apiserver.KeyOf(pod)})
}

func killPod(w *World, pod *corev1.Pod) error {
	options := client.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	return w.Store.Delete(apiserver.Write{Actor: userActor, Key: apiserver.KeyOf(pod), DeleteOptions: options})
}

// rejectPod plays a kubelet that has started again on a node that no longer suits the pod. It writes a status in which nothing is
// left but when the pod began (k8s.io/kubernetes/pkg/kubelet: rejectPod).
func rejectPod(w *World, pod *corev1.Pod) error {
	if pod.Status.StartTime == nil {
		return nil
	}
	rejected := apiserver.Clone(pod)
	rejected.Status = corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "NodeAffinity", Message: "Pod was rejected: Predicate NodeAffinity failed",
		QOSClass: pod.Status.QOSClass, StartTime: pod.Status.StartTime,
	}
	_, err := w.Store.Update(apiserver.Write{Actor: userActor, Subresource: "status"}, rejected)
	return err
}

// edit lets a user change an object.
func edit[T client.Object](w *World, object T, change func(T)) error {
	edited := apiserver.Clone(object)
	change(edited)
	_, err := w.Store.Update(apiserver.Write{Actor: userActor}, edited)
	return err
}

// blipPod makes a pod unready, as a probe that fails once does. Its kubelet makes it ready again.
func blipPod(w *World, pod *corev1.Pod) error {
	edited := apiserver.Clone(pod)
	for i := range edited.Status.Conditions {
		c := &edited.Status.Conditions[i]
		if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(w.Now())
		}
	}
	_, err := w.Store.Update(apiserver.Write{Actor: userActor, Subresource: "status"}, edited)
	return err
}

// handImage gives a pod another image by hand: "hand-image 1 app:broken".
func handImage(_ context.Context, w *World, args []string) error {
	pod := w.podNamed(args[0])
	if pod == nil {
		return nil
	}
	w.note("hand-image " + strings.Join(args, " "))
	return edit(w, pod, func(p *corev1.Pod) { p.Spec.Containers[0].Image = args[1] })
}

// claimTo labels a claim as another set's: "claim-to data-web-0 other". The name of the own set gives it back.
func claimTo(_ context.Context, w *World, args []string) error {
	claim, ok := w.Store.Get(apiserver.Key{Kind: apiserver.Claims, Namespace: Namespace, Name: args[0]}).(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	w.note("claim-to " + strings.Join(args, " "))
	return edit(w, claim, func(c *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataLabel(&c.ObjectMeta, v1beta1.SetLabel, args[1])
	})
}

// orphan creates a pod that the set selects and that has no controller.
func orphan(_ context.Context, w *World, args []string) error {
	return w.createPod("orphan", SetName+"-"+args[0], map[string]string{"app": SetName})
}

// stranger creates a pod that the set does not select, under a name that the set may want.
func stranger(_ context.Context, w *World, args []string) error {
	w.occupied = true
	return w.createPod("stranger", SetName+"-"+args[0], map[string]string{"app": "other"})
}

func (u *user) createPod(what, name string, labels map[string]string) error {
	u.createSet()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: labels}}
	pod.Spec = *u.draft.Spec.Template.Spec.DeepCopy()
	u.note(what + " " + name)
	_, err := u.world.Store.Create(apiserver.Write{Actor: userActor}, pod)
	if apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) { // the set was faster, or policies apply to users too
		return nil
	}
	return err
}

// claimOf creates a claim that another set has made: "claim data-web-0 other". With "app=other" it has that label instead, and
// with "Pod/web-x" that controller, as claims of ephemeral volumes have one.
func claimOf(_ context.Context, w *World, args []string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: args[0], Labels: map[string]string{v1beta1.SetLabel: args[1]},
	}}
	whose := " of set "
	if key, value, other := strings.Cut(args[1], "="); other { // it belongs to another kind of workload
		claim.Labels, whose = map[string]string{key: value}, " labeled "
	}
	if pod, owned := strings.CutPrefix(args[1], "Pod/"); owned {
		owner := w.Store.Get(apiserver.Key{Kind: apiserver.Pods, Namespace: Namespace, Name: pod})
		if owner == nil { // in a replay the user may be too early or too late
			return nil
		}
		claim.Labels, claim.OwnerReferences = nil, []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("Pod"))}
		whose = " of "
	}
	w.note("claim " + strings.Join(args, whose))
	_, err := w.Store.Create(apiserver.Write{Actor: userActor}, claim)
	return client.IgnoreAlreadyExists(err)
}

// deleteClaim deletes a claim by its name, which stays while a pod mounts it.
func deleteClaim(_ context.Context, w *World, args []string) error {
	w.note("delete claim " + args[0])
	key := apiserver.Key{Kind: apiserver.Claims, Namespace: Namespace, Name: args[0]}
	return client.IgnoreNotFound(w.Store.Delete(apiserver.Write{Actor: userActor, Key: key}))
}

func deleteSet(_ context.Context, w *World, args []string) error {
	w.note("delete the set: " + strings.ToLower(args[0]))
	options := client.DeleteOptions{PropagationPolicy: new(metav1.DeletionPropagation(args[0]))}
	return client.IgnoreNotFound(w.Store.Delete(apiserver.Write{Actor: userActor, Key: apiserver.KeyOf(w.draft), DeleteOptions: options}))
}

// errDenied is the error of the admission plug-in in scripts.
var errDenied = errors.New(`admission webhook "policy.example.com" denied the request: no pods on Fridays`)

// denyImage lets a policy deny the pods that have an image.
func denyImage(_ context.Context, w *World, args []string) error {
	w.note("deny image " + args[0])
	w.Store.Admission = []apiserver.Admission{func(verb apiserver.Verb, obj client.Object) error {
		if pod, ok := obj.(*corev1.Pod); ok && verb == apiserver.Create && pod.Spec.Containers[0].Image == args[0] {
			return errDenied
		}
		return nil
	}}
	return nil
}

func denyPods(_ context.Context, w *World, _ []string) error {
	w.note("deny pods")
	w.Store.Admission = []apiserver.Admission{func(verb apiserver.Verb, obj client.Object) error {
		if verb == apiserver.Create && apiserver.KeyOf(obj).Kind == apiserver.Pods {
			return errDenied
		}
		return nil
	}}
	return nil
}
