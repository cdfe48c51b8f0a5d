// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Forecast describes the future of a set. Each field is one that the text, the page and the JSON show.
type Forecast struct {
	// Set is its namespace and name.
	Set string
	// Class is the kind of change that is about to be made, and Field the field that decides it.
	Class Class
	Field string
	// Changes is false if nothing would change, not even the set.
	Changes bool
	// Writes are the requests of the controller, in the order in which it will send them.
	Writes []Write
	// LowestAvailable is the lowest number of available pods at any moment, and Floor what the set guarantees.
	LowestAvailable, Floor int
	// MostPods is the largest number of pods at any moment, without terminating ones.
	MostPods int
	// Takes is the time until nothing changes, estimated from how long recent pods of the set took.
	Takes time.Duration
	// Waits lists what a rollout in steps waits for on the way, each with its time.
	Waits []Wait
	// WaitsFor says what the set waits for at the end, in its own words; empty if it is complete.
	WaitsFor string
	// IfBroken is the same if the new pods never become ready.
	IfBroken IfBroken
	// CannotKnow are the assumptions, and InTheWay the obstacles.
	CannotKnow, InTheWay []string

	Film
}

// Film holds the content of the picture of a forecast.
type Film struct {
	// Lanes show what happens to each pod, and Curve the number of pods.
	Lanes []Lane
	Curve []Point
	// Revisions are the revisions in the lanes, the current one first, with their images.
	Revisions []Revision
	// Replicas is the wanted number of pods.
	Replicas int
}

// IfBroken is the forecast for new pods that never become ready.
type IfBroken struct {
	// BrokenPods are the names of the pods that break. In a set with ordinals, those that they keep from coming back are
	// included.
	BrokenPods []string
	// LowestAvailable is the lowest number of available pods.
	LowestAvailable int
	// StopsAt says what the set waits for then; empty if it is complete.
	StopsAt string
}

// Revision is one version of the template.
type Revision struct {
	// Name is the name of the ControllerRevision.
	Name string
	// Images are the images of its containers.
	Images []string
}

// MaxPods is the largest number of pods of a set that is planned. The cost of a plan grows with it.
const MaxPods = 20_000

// TooLarge returns an error for a set that has, or will have, more pods than can be planned.
func TooLarge(before, after *v1beta1.RollSet) error {
	limits, err := snapshot.ResolveLimits(&after.Spec)
	if err != nil {
		return err
	}
	pods := limits.Replicas + limits.MaxSurge
	if before != nil {
		pods = max(pods, int(before.Status.Replicas))
	}
	if pods > MaxPods {
		return fmt.Errorf("the plan is too large: rollset %s has up to %d pods, and a plan is made for at most %d; plan the edit on a smaller copy of the set", after.Name, pods, MaxPods)
	}
	return nil
}

// Run forecasts what the controller will do to a set.
func Run(ctx context.Context, in Input) (*Forecast, error) {
	limits, err := snapshot.ResolveLimits(&in.After.Spec)
	if err := errors.Join(err, TooLarge(in.Before, in.After)); err != nil {
		return nil, err
	}
	in.Objects, in.Now = withoutStrangers(in), notBefore(in)
	var owner types.UID
	if in.Before != nil {
		owner = in.Before.UID
	}
	pods := slices.DeleteFunc(among[*corev1.Pod](in.Objects), func(pod *corev1.Pod) bool { return !isOf(pod, owner) })
	times, nodes := measure(pods, &in.After.Spec.Template.Spec), among[*corev1.Node](in.Objects)
	around := Surroundings{
		Kubelet: newPodKubelet(pods, times, "", in.Now), Nodes: nodesOf(pods, nodes), Labels: domainsOf(pods, nodes, domainKey(in.After)),
		Refuses: schedulerOf(pods), Judged: true,
	}
	good, err := simulate(ctx, in, around)
	if err != nil {
		return nil, err
	}
	f := &Forecast{
		Set: in.After.Namespace + "/" + in.After.Name, Writes: numbered(good.record.writes), Film: Film{Lanes: good.lanes, Replicas: limits.Replicas},
		Floor: limits.MinAvailable(), Waits: good.waits, WaitsFor: good.waitsFor(),
		Changes: in.Before == nil || len(good.record.writes) > 0 || !apiequality.Semantic.DeepEqual(in.Before.Spec, in.After.Spec),
	}
	f.Class, f.Field = classify(in, f.Writes)
	f.Curve, f.LowestAvailable, f.MostPods = curve(f.Lanes)
	f.Takes = lasts(f)
	f.Revisions = revisionsOf(good, in.Before)
	good.store = nil // the first run can be large, and the others do not need it
	f.CannotKnow = assumptions(in, times)
	around.Kubelet, around.Refuses = newPodKubelet(pods, times, "", in.Now), schedulerOf(pods)
	if chance, err := ofOrder(ctx, in, around, f.Writes); err != nil {
		return nil, err
	} else if chance != "" {
		f.CannotKnow = append(f.CannotKnow, chance)
	}
	if f.asksOthers() {
		f.CannotKnow = append(f.CannotKnow, "steps: each gate is assumed to become True, and each pause to be promoted, as soon as it is waited for")
	}
	if good.set == nil {
		return f, nil
	}
	around.Kubelet, around.Refuses = newPodKubelet(pods, times, good.set.Status.UpdateRevision, in.Now), schedulerOf(pods)
	if f.IfBroken, err = broken(ctx, in, around, good); err != nil {
		return nil, err
	}
	return f, nil
}

// broken returns what a change does if the new pods never become ready, given a run in which they do.
func broken(ctx context.Context, in Input, around Surroundings, good *run) (b IfBroken, err error) {
	bad, err := simulate(ctx, in, around)
	if err != nil {
		return b, err
	}
	b.StopsAt = bad.waitsFor()
	_, b.LowestAvailable, _ = curve(bad.lanes)
	b.BrokenPods = brokenOf(bad, good.set.Status.UpdateRevision)
	if in.After.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		b.BrokenPods = append(b.BrokenPods, missing(good.lanes, bad.lanes)...)
	}
	return b, nil
}

// isOf reports whether the set with a UID controls a pod.
func isOf(pod *corev1.Pod, owner types.UID) bool {
	if pod == nil || owner == "" {
		return false
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller != nil && controller.UID == owner
}

// withoutStrangers returns the objects without the pods that mean nothing to the set. Others may be adopted, may have a name
// that the set is about to use, or may mount one of its claims.
func withoutStrangers(in Input) []client.Object {
	set := cmp.Or(in.Before, in.After)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return in.Objects
	}
	return slices.DeleteFunc(slices.Clone(in.Objects), func(obj client.Object) bool {
		pod, ok := obj.(*corev1.Pod)
		return ok && !isOf(pod, set.UID) && !selector.Matches(labels.Set(pod.Labels)) && !strings.HasPrefix(pod.Name, set.Name+"-") &&
			!slices.ContainsFunc(apiserver.ClaimsOf(pod), func(key apiserver.Key) bool { return strings.Contains(key.Name, "-"+set.Name+"-") })
	})
}

// notBefore returns the time of the input, or when the newest of its pods was created: the clock of the API server may be
// ahead of the user's.
func notBefore(in Input) time.Time {
	now := in.Now
	for _, pod := range among[*corev1.Pod](in.Objects) {
		if created := pod.CreationTimestamp.Time; created.After(now) {
			now = created
		}
	}
	return now
}

// oneStep is how soon a write must follow another to be part of the same step.
const oneStep = time.Second

// numbered numbers the writes by steps. Claims that are created with a pod get the pod's reason.
func numbered(writes []Write) []Write {
	step := 0
	for i := range writes {
		if i == 0 || writes[i].At-writes[i-1].At >= oneStep {
			step++
		}
		writes[i].Step = step
	}
	for i := len(writes) - 2; i >= 0; i-- {
		if w := &writes[i]; w.Reason == "" && w.Resource == "persistentvolumeclaims" && w.Verb == "create" && writes[i+1].Step == w.Step {
			w.Reason = cmp.Or(writes[i+1].Reason, "a pod needs it")
		}
	}
	for i := range writes {
		if w := &writes[i]; w.Reason == "" && w.Resource == "controllerrevisions" {
			w.Reason = "the history of the template"
		}
	}
	return writes
}

// lasts returns when the last event of a pod happens.
func lasts(f *Forecast) time.Duration {
	var last time.Duration
	for _, lane := range f.Lanes {
		for _, span := range lane.Spans {
			last = max(last, span.From)
			if !span.open {
				last = max(last, span.To)
			}
		}
	}
	for _, w := range f.Writes {
		last = max(last, w.At)
	}
	for _, w := range f.Waits {
		last = max(last, w.Until)
	}
	return last
}

// brokenOf returns the names of the pods at a revision that are out of service at the end and were not before.
func brokenOf(r *run, revision string) []string {
	var names []string
	for _, lane := range r.lanes {
		if len(lane.Spans) == 0 {
			continue
		}
		last := lane.Spans[len(lane.Spans)-1]
		if last.open && last.Revision == revision && last.order > 0 && (last.State == Starting || last.State == Updating) {
			names = append(names, lane.Name)
		}
	}
	return names
}

// missing returns the names of the pods that exist at the end of one run and not at the end of the other.
func missing(good, bad []Lane) []string {
	exists := map[string]bool{}
	for _, lane := range bad {
		exists[lane.Name] = len(lane.Spans) > 0 && lane.Spans[len(lane.Spans)-1].open
	}
	var names []string
	for _, lane := range good {
		if n := len(lane.Spans); n > 0 && lane.Spans[n-1].open && !exists[lane.Name] {
			names = append(names, lane.Name)
		}
	}
	return names
}

// revisionsOf returns the revisions of all pods in a run, the current one first.
func revisionsOf(r *run, before *v1beta1.RollSet) []Revision {
	current := ""
	if before != nil {
		current = before.Status.CurrentRevision
	}
	var names []string
	for _, lane := range r.lanes {
		for _, span := range lane.Spans {
			if !slices.Contains(names, span.Revision) {
				names = append(names, span.Revision)
			}
		}
	}
	rank := func(name string) int {
		switch name {
		case current:
			return 0
		case r.update():
			return 2
		default:
			return 1
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	objects := r.store.Objects()
	revisions := make([]Revision, len(names))
	for i, name := range names {
		revisions[i].Name = name
		if template := templateNamed(objects, name); template != nil {
			for _, c := range template.Spec.Containers {
				revisions[i].Images = append(revisions[i].Images, c.Image)
			}
		}
	}
	return revisions
}

// assumptions returns what a forecast cannot know.
func assumptions(in Input, times Times) []string {
	known := []string{
		"scheduler: every pod is assumed to find a node, except where pods of its revision found none",
		"quorums: each pod is assumed to become ready on its own",
		"autoscaler and other users: no changes to the set or its pods are assumed meanwhile",
	}
	took := fmt.Sprintf("time: pods are assumed to become ready after %s", (times.Start + times.Ready).Round(time.Second))
	if times.Pods > 0 && !in.Offline {
		took += fmt.Sprintf(", the median of the newest %d", times.Pods)
	} else {
		took += "; no pod of the set shows how long it takes"
	}
	known = append(known, took+fmt.Sprintf(", and to be gone %s after their deletion", times.Stop.Round(time.Second)))
	if in.Before == nil {
		known = append(known, "names: those of claims and pods without ordinals depend on the UID that the set gets")
	}
	if in.After.Spec.Lifecycle != nil {
		known = append(known, "hooks: what holds pods by labels or finalizers is assumed to keep holding them, up to the limits of the hooks")
	}
	if in.After.Spec.ReplacesOnDrain() || in.After.Spec.WantsBudget() {
		known = append(known, "disruption: the controller is assumed to have the rights that spec.disruption needs, and no node to leave meanwhile")
	}
	if domainKey(in.After) != "" {
		known = append(known, "failure domains: a new pod is assumed to be in the domain of the other pods on its node")
	}
	if in.Sample == nil && in.Refusal == "" {
		known = append(known, "admission: no API server was asked whether it accepts the pods")
	}
	return known
}
