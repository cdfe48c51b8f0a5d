// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// creator creates the pods of a set, and asks the API server about them.
type creator struct{ *writer }

// createAll creates pods and their claims.
func (w creator) createAll(ctx context.Context, creates []action.Create) {
	creates = creates[:min(len(creates), MaxWrites)]
	outcomes := make([]outcome, len(creates))
	done := w.Run.slowly(w.set.Namespace, len(creates), func(i int) error {
		outcomes[i] = w.create(ctx, creates[i])
		return outcomes[i].err
	})
	for i := range done {
		w.tried(creates[i], outcomes[i])
		w.note(creates[i], outcomes[i])
	}
	for i := range done {
		if refusesPod(creates[i], outcomes[i]) {
			w.askWhether(ctx, creates[i].Revision, outcomes[i].err)
		}
	}
}

// note records the result of a create.
func (w creator) note(a action.Create, out outcome) {
	switch {
	case out.block != nil:
		w.block(a.ID, *out.block)
	case out.err != nil:
		w.result.Creates.Fail(out.err)
		w.result.NamespaceGone = w.result.NamespaceGone || namespaceGone(out.err)
	case out.done:
		w.result.Creates.Done++
		w.created = append(w.created, a)
	}
}

// checkMember returns why a pod that was created for the set is none of the set's.
func (w creator) checkMember(sent metav1.Object, pod *corev1.Pod) error {
	selector, err := metav1.LabelSelectorAsSelector(w.set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	return attempt.CheckMember(w.set.UID, selector, sent, pod)
}

// refusesPod reports whether the API server refused a pod for its content, and not because there are too many. What it made of surge
// says nothing about members.
func refusesPod(a action.Create, out outcome) bool {
	err := out.err
	return out.pod && (attempt.IsAltered(err) && !a.Surge || (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && !quotaExceeded(err) && isVerdict(err))
}

// askWhether finds out whether a pod was refused for its template or only for itself. It asks about a pod of the revision
// with another name, unless pods of the revision are known to be refused.
func (w creator) askWhether(ctx context.Context, revision string, refusal error) {
	if _, asked := w.result.Preflights[revision]; asked {
		return
	}
	altered := attempt.IsAltered(refusal) // it was made, so no dry run can show more
	if altered || w.snap.Preflights[revision].Refuses() {
		w.answered(revision, snapshot.Preflight{Refusal: refusal.Error(), Altered: altered})
		return
	}
	w.ask(ctx, action.Preflight{Revision: revision})
}

// create creates the claims of an identity, then its pod.
func (w creator) create(ctx context.Context, a action.Create) outcome {
	revision, ok := w.revision(a.Revision)
	if !ok {
		return outcome{err: fmt.Errorf("create pod %s: revision %s has no template", w.snap.PodName(a.ID), a.Revision)}
	}
	if out := claimWriter(w).ensureClaims(ctx, revision, a); out.block != nil || out.err != nil {
		out.claim = true
		return out
	}
	pod := Build(w.set, revision, a.ID)
	if a.Surge {
		pod.Labels[v1beta1.SurgeLabel] = "true"
	}
	if a.Origin != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1beta1.OriginAnnotation, a.Origin)
	}
	if w.snap.Lists(pod.Name) {
		pod.Labels[v1beta1.ReplacedLabel] = "true"
	}
	if w.alters() {
		if err := w.pretend(ctx, pod.DeepCopy()); Answer(pod, err).Refusal != "" {
			return outcome{pod: true, err: fmt.Errorf("create pod %s: %w", pod.Name, err)}
		}
	}
	sent := pod.ObjectMeta
	err := w.Client.Create(ctx, pod)
	switch {
	case err == nil:
		w.Expectations.Wrote(w.set.UID, expectations.PodKind(), pod.ResourceVersion)
		if err := w.checkMember(&sent, pod); err != nil {
			return outcome{pod: true, err: fmt.Errorf("create pod %s: %w", pod.Name, err)}
		}
		return outcome{done: true}
	case apierrors.IsAlreadyExists(err):
		return w.lookAtTakenName(ctx, pod.Name)
	case attempt.MayHaveHappened(err):
		w.Expectations.UnsettledCreate(w.set.UID, pod.Name)
	}
	return outcome{pod: true, err: fmt.Errorf("create pod %s: %w", pod.Name, err)}
}

// alters reports whether the API server altered what was written for the set a while ago. A pod that it alters stays and may be none of
// the set's, so a dry run comes before the next one.
func (w creator) alters() bool {
	for _, refusal := range w.snap.Refusals {
		if refusal.Altered {
			return true
		}
	}
	return false
}

// revision returns a revision that has a template.
func (w *writer) revision(name string) (snapshot.Revision, bool) {
	for _, r := range []snapshot.Revision{w.snap.Current, w.snap.Update, w.snap.Known[name]} {
		if r.Name == name && r.Template != nil {
			return r, true
		}
	}
	return snapshot.Revision{}, false
}

// lookAtTakenName reads the pod that has the wanted name, to find its owner.
func (w creator) lookAtTakenName(ctx context.Context, name string) outcome {
	pod := &corev1.Pod{}
	err := w.Live.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, pod)
	switch {
	case apierrors.IsNotFound(err): // deleted meanwhile: the next plan creates it again
		return outcome{err: fmt.Errorf("create pod %s: the name was taken a moment ago", name)}
	case err != nil:
		return outcome{err: fmt.Errorf("get pod %s, whose name is taken: %w", name, err)}
	case metav1.IsControlledBy(pod, w.set):
		w.Expectations.Wrote(w.set.UID, expectations.PodKind(), pod.ResourceVersion)
		return outcome{}
	default:
		return outcome{block: &snapshot.Block{Reason: TakenBy(pod)}}
	}
}

// TakenBy says that a pod that the set does not own has the name.
func TakenBy(pod client.Object) string {
	whose := "has no controller"
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		whose = fmt.Sprintf("%s %s controls", owner.Kind, owner.Name)
	}
	return fmt.Sprintf("the name is taken by a pod that %s and that the set cannot adopt; delete it", whose)
}
