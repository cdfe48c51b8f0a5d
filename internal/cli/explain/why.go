// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain is the verb why.
//
// The rule: the controller's own planners judge the objects as they are now. Nothing is guessed, and nothing is written.
package explain

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/cli/view"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
	"rollset.dev/rollset/internal/podcontrol"
)

// textLimit bounds what is shown of a text of unknown origin.
const textLimit = 500

// answer lists the causes that hold a set.
type answer struct {
	Set string `json:"set"`
	// Waiting is the last message of the controller about what it waits for.
	Waiting string `json:"waiting"`
	// Causes lists the reasons to wait, the first one first.
	Causes []cause `json:"causes"`
	// Next are the writes that nothing holds.
	Next  []string `json:"next"`
	Holds []hold   `json:"holds"`
}

// hold is a write that is due but must wait.
type hold struct {
	Subject string `json:"subject"`
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
	// LiftedBy says how to release it.
	LiftedBy string `json:"liftedBy"`
}

// New returns the verb why.
func New(s *session.Session) *cobra.Command {
	var target session.Target
	output := ""
	cmd := &cobra.Command{
		Use:   "why [NAME | -f FILE]",
		Short: "Say what is held back now, and what would let it go on",
		Long: templates.LongDesc(`Say what a set waits for now, and what would let it go on, a paragraph for each cause. Steps, verdicts and
			refused writes come from the status; the controller's own planners judge the objects as they are. Without a name all
			sets of the namespace are judged. The exit code is 0 also when nothing waits.`),
		Example: templates.Examples(`
			kubectl rollset why web
			kubectl rollset why web -o json`),
		ValidArgsFunction: s.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output is json, not %q", output)
			}
			answers, err := ask(cmd.Context(), s, &target, args)
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(s.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(answers)
			}
			return printAnswers(s, answers)
		},
	}
	target.AddFlag(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format: json")
	return cmd
}

// ask judges the given sets, or all of the namespace if none is given.
func ask(ctx context.Context, s *session.Session, target *session.Target, args []string) ([]answer, error) {
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	keys, err := target.Keys(s, args)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		if keys, err = all(ctx, s, c); err != nil {
			return nil, err
		}
	}
	answers := make([]answer, 0, len(keys))
	for _, key := range keys {
		a, err := explain(ctx, s, c, key)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// all returns the sets of the namespace.
func all(ctx context.Context, s *session.Session, c client.Reader) ([]client.ObjectKey, error) {
	namespace, err := s.Namespace()
	if err != nil {
		return nil, err
	}
	list := &v1beta1.RollSetList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	keys := make([]client.ObjectKey, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys, nil
}

// explain judges a set.
func explain(ctx context.Context, s *session.Session, c client.Client, key client.ObjectKey) (answer, error) {
	objects, err := read(ctx, c, key)
	if err != nil {
		return answer{}, err
	}
	a := answer{Set: key.Name, Next: []string{}, Holds: []hold{}, Causes: []cause{}}
	set := objects.Set
	if !set.DeletionTimestamp.IsZero() {
		a.Waiting = "the set is being deleted; nothing is created or changed"
		return a, nil
	}
	if set.Status.ObservedGeneration < set.Generation {
		a.Waiting = "Unobserved: the controller has not seen the spec as it is now"
		a.Causes = append(a.Causes, unobserved(set))
		return a, nil
	}
	ready := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionReady)
	if ready != nil {
		a.Waiting = ready.Reason + ": " + podstate.Printable(ready.Message, textLimit)
	}
	objects.Now = s.Clock.Now()
	p, err := judge(objects, func(r snapshot.Revision) snapshot.Preflight { return accepts(ctx, s, c, set, r) })
	if err != nil {
		return answer{}, fmt.Errorf("judge rollset %s: %w", key.Name, err)
	}
	a.Next = nextWrites(set, &p)
	for _, h := range p.Held {
		a.Holds = append(a.Holds, hold{
			Subject: h.Subject, Kind: string(h.Kind), Reason: podstate.Printable(h.Reason, textLimit), LiftedBy: liftedBy(set, h),
		})
	}
	if d := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionDisruptionReady); d != nil && d.Status == metav1.ConditionFalse {
		a.Holds = append(a.Holds, hold{
			Subject: key.Name, Kind: "disruption", Reason: podstate.Printable(d.Message, textLimit), LiftedBy: liftedBy(set, action.Hold{}),
		})
	}
	a.Causes = append(a.Causes, causesOf(&objects, a.Holds)...)
	return a, nil
}

// read reads a set and what it controls.
func read(ctx context.Context, c client.Client, key client.ObjectKey) (o snapshot.Objects, err error) {
	o.Set = &v1beta1.RollSet{}
	if err := c.Get(ctx, key, o.Set); err != nil {
		return o, err
	}
	if o.Pods, err = view.Pods(ctx, c, o.Set); err != nil {
		return o, err
	}
	if o.Revisions, err = view.Revisions(ctx, c, o.Set); err != nil {
		return o, err
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := c.List(ctx, claims, client.InNamespace(key.Namespace), client.MatchingLabels{v1beta1.SetLabel: key.Name}); err != nil {
		return o, fmt.Errorf("list claims: %w", err)
	}
	o.Claims = claims.Items
	if o.Set.Spec.ReplacesOnDrain() {
		nodes := &corev1.NodeList{}
		if err := c.List(ctx, nodes); err != nil && !apierrors.IsForbidden(err) { // without them all nodes stay
			return o, fmt.Errorf("list nodes: %w", err)
		}
		o.Nodes = view.Pointers(nodes.Items)
	}
	if len(o.Set.Spec.VolumeClaimTemplates) == 0 {
		return o, nil
	}
	classes := &storagev1.StorageClassList{}
	if err := c.List(ctx, classes); err != nil && !apierrors.IsForbidden(err) { // without them the growth of claims is not judged
		return o, fmt.Errorf("list storage classes: %w", err)
	}
	o.Classes = observe.ClassesOf(classes.Items)
	return o, nil
}

// accepts asks the API server for a pod of a revision, without creating it. A user who may not create pods is told what
// follows if the API server accepts it.
func accepts(ctx context.Context, s *session.Session, c client.Client, set *v1beta1.RollSet, r snapshot.Revision) snapshot.Preflight {
	if r.Template == nil {
		return snapshot.Preflight{Refusal: "its template is gone"}
	}
	pod := podcontrol.Build(set, r, "why")
	pod.OwnerReferences = nil
	err := c.Create(ctx, pod, client.DryRunAll)
	if attempt.LacksRights(err) {
		fmt.Fprintln(s.ErrOut, "warning: assuming that the API server accepts the pods:", session.Explain(err))
		return snapshot.Preflight{Pod: podcontrol.Build(set, r, "why")}
	}
	answer := podcontrol.Answer(pod, err)
	if answer.Refuses() {
		answer.Retry = 1
	}
	return answer
}

// liftedBy returns what would release a hold.
func liftedBy(set *v1beta1.RollSet, h action.Hold) string {
	switch h.Kind {
	case action.HeldByOrder:
		return "that pod becoming available, or podManagementPolicy Parallel for a new set"
	case action.HeldByBudget:
		return "more pods becoming available, or a larger updateStrategy.rollingUpdate.maxUnavailable"
	case action.HeldByGuard:
		return "the pods that were updated becoming available, or another template: " + anotherTemplate(set)
	case action.HeldByDrain:
		return "a node that is ready and stays, or the updated pods becoming available; kubectl uncordon keeps the pod where it is"
	case action.HeldByDomain:
		return "the other domain being updated and available"
	case action.HeldByName:
		return "the end of the pod that has the name"
	case action.HeldByClaim:
		return "the claim becoming free, or its deletion"
	case action.HeldByBackOff, action.HeldByGrace:
		return "time"
	case action.HeldByLimit:
		return "pods becoming available, or a larger scaleStrategy.maxUnavailable"
	case action.HeldByPause:
		return "kubectl rollset resume " + set.Name
	case action.HeldByOnDelete:
		return "kubectl rollset delete-pod " + h.Subject
	case action.HeldByOldPods:
		return "the end of that pod"
	case action.HeldByHook:
		return "the program behind the lifecycle hook, or taking the hook out of the spec"
	case action.HeldByTimeout:
		return "the program behind the lifecycle hook, its mark changed by hand, or taking the hook out of the spec; with onTimeout Proceed the pod would go on"
	case action.HeldByPolicy:
		return "podUpdatePolicy InPlaceIfPossible, or kubectl rollset delete-pod " + h.Subject
	case action.HeldByPreflight:
		return "a template that the API server accepts, or another policy: kubectl rollset diff " + set.Name
	case action.HeldByPartition:
		return "kubectl rollset set partition " + set.Name + " 0, or the pod becoming ready"
	case action.HeldByRefusal:
		return "the policy, webhook or quota that refuses the write; it is tried again"
	default:
		return "what the reason names"
	}
}
