// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// age is how long the pods of an offline set are assumed to have been running.
const age = time.Hour

// Offline returns the input of a forecast without a cluster. before is the running set, complete and available, or nil for a
// new set.
func Offline(ctx context.Context, before, after *v1beta1.RollSet, now time.Time) (Input, error) {
	prepare(after)
	if before == nil {
		return Input{After: after, Now: now, Offline: true}, nil
	}
	prepare(before)
	times := measure(nil, &before.Spec.Template.Spec)
	around := Surroundings{
		Kubelet: newPodKubelet(nil, times, "", now), Nodes: nodesOf(nil, nil), Labels: domainsOf(nil, nil, domainKey(after)), Refuses: schedulerOf(nil),
	}
	r, err := simulate(ctx, Input{After: before, Now: now.Add(-age)}, around)
	if err != nil {
		return Input{}, err
	}
	in := Input{Now: now, Offline: true}
	if r.end.After(now) {
		in.Now = r.end
	}
	for _, obj := range r.store.Objects() {
		if set, ok := obj.(*v1beta1.RollSet); ok {
			in.Before = set
			continue
		}
		in.Objects = append(in.Objects, obj)
	}
	in.After = in.Before.DeepCopy()
	in.After.Spec, in.After.Labels, in.After.Annotations = after.Spec, after.Labels, after.Annotations
	return in, nil
}

// prepare sets the fields that the API server would set.
func prepare(set *v1beta1.RollSet) {
	if set.Namespace == "" {
		set.Namespace = "default"
	}
	apiserver.Default(set)
}

// SamplePod returns a pod of a set's template without an owner. It is used in a dry run on the API server.
func SamplePod(set *v1beta1.RollSet) *corev1.Pod {
	id := "plan0"
	if set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		id = "999999"
	}
	pod := podcontrol.Build(set, snapshot.RevisionOf("plan", &set.Spec), id)
	pod.OwnerReferences = nil
	return pod
}

// PodsNow returns how many pods exist at the start, without terminating ones.
func (f *Forecast) PodsNow() int {
	now := 0
	for _, lane := range f.Lanes {
		if len(lane.Spans) > 0 && lane.Spans[0].From == 0 && lane.Spans[0].order == 0 {
			_, pods := weigh(lane.Spans[0].State)
			now += pods
		}
	}
	return now
}

// QuotaOf returns what a pod uses of a quota.
func QuotaOf(spec *corev1.PodSpec) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	needs := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	add := func(name corev1.ResourceName, q resource.Quantity) {
		sum := needs[name].DeepCopy()
		sum.Add(q)
		needs[name] = sum
	}
	for i := range spec.Containers {
		r := &spec.Containers[i].Resources
		for name, q := range r.Requests {
			add(name, q)
			add("requests."+name, q)
		}
		for name, q := range r.Limits {
			add("limits."+name, q)
		}
	}
	return needs
}
