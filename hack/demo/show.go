// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

// act is a change, with the condition that ends it.
type act struct {
	title  string
	change func(*v1alpha1.RollSet)
	done   func(*v1alpha1.RollSet) bool
}

// acts returns the demo.
func acts() []act {
	image := func(image string) func(*v1alpha1.RollSet) {
		return func(set *v1alpha1.RollSet) { set.Spec.Template.Spec.Containers[0].Image = image }
	}
	return []act{
		{"Six pods are wanted", nil, isReady},
		{"Scale to nine", func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(9)) }, isReady},
		{"Roll to app:v2, with at most two pods unavailable and one above nine", image("app:v2"), isReady},
		{"Roll to app:v3-broken, which never becomes ready: three pods try it, six are left alone", image("app:v3-broken"), isHeld},
		{"Correct it to app:v4: the broken pods are replaced first", image("app:v4"), isReady},
		{"Scale to three", func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(3)) }, isReady},
	}
}

func isReady(set *v1alpha1.RollSet) bool {
	return set.Status.ObservedGeneration == set.Generation && meta.IsStatusConditionTrue(set.Status.Conditions, "Ready")
}

// isHeld reports whether a rollout of a bad template has come as far as it can.
func isHeld(set *v1alpha1.RollSet) bool {
	status := &set.Status
	return status.ObservedGeneration == set.Generation && status.UpdatedReplicas == 3 && status.UpdatedReadyReplicas == 0
}

// web returns the set of the demo.
func web() *v1alpha1.RollSet {
	labels := map[string]string{"app": "web"}
	return &v1alpha1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault},
		Spec: v1alpha1.RollSetSpec{
			Replicas: new(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(2)),
					Containers: []corev1.Container{{
						Name: "app", Image: "app:v1",
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
							HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)},
						}},
					}},
				},
			},
			UpdateStrategy: v1alpha1.UpdateStrategy{RollingUpdate: v1alpha1.RollingUpdate{
				MaxUnavailable: new(intstr.FromInt32(2)), MaxSurge: new(intstr.FromInt32(1)),
			}},
		},
	}
}

// show plays the acts and prints what happens.
type show struct {
	client client.WithWatch
	set    *v1alpha1.RollSet
	screen *screen
	events chan watch.Event
}

// newShow watches the set to be and its pods.
func newShow(ctx context.Context, c client.WithWatch) (*show, error) {
	s := &show{client: c, set: web(), screen: newScreen(), events: make(chan watch.Event)}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &v1alpha1.RollSetList{}} {
		w, err := c.Watch(ctx, list, client.InNamespace(s.set.Namespace))
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		go func() {
			defer w.Stop()
			for event := range w.ResultChan() {
				select {
				case s.events <- event:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return s, nil
}

func (s *show) play(ctx context.Context) error {
	for _, a := range acts() {
		fmt.Printf("\n%s\n", a.title)
		if err := s.start(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a.title, err)
		}
		if err := s.await(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a.title, err)
		}
	}
	return nil
}

// start makes the change of an act.
func (s *show) start(ctx context.Context, a act) error {
	if a.change == nil {
		return s.client.Create(ctx, s.set)
	}
	before := s.set.DeepCopy()
	a.change(s.set)
	return s.client.Patch(ctx, s.set, client.MergeFrom(before))
}

// await prints every state until the act is done.
func (s *show) await(ctx context.Context, a act) error {
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, errors.New("it took too long"))
	defer cancel()
	for {
		if a.done(s.screen.set()) && s.screen.set().Generation == s.set.Generation {
			s.screen.print()
			return nil
		}
		select {
		case event := <-s.events:
			s.screen.see(event)
		case <-time.After(settle):
			s.screen.print()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
