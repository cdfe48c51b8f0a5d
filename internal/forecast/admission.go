// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"errors"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// ofPod matches how a refusal by the API server begins.
var ofPod = regexp.MustCompile(`^pods "[^"]*" is forbidden: `)

// admission returns what a dry run of one pod of the new template met: a refusal, or the defaults and
// changes of the API server and its webhooks.
func admission(in Input) []apiserver.Admission {
	if in.Refusal == "" && in.Sample == nil {
		return nil
	}
	others := otherRevisions(in)
	return []apiserver.Admission{func(verb apiserver.Verb, obj client.Object) error {
		pod, ok := obj.(*corev1.Pod)
		if verb != apiserver.Create || !ok || others[pod.Labels[v1beta1.RevisionLabel]] {
			return nil
		}
		if in.Refusal != "" {
			return errors.New(ofPod.ReplaceAllString(in.Refusal, "")) // the answer names the pod that is created
		}
		pod.Spec = completed(&pod.Spec, &in.Sample.Spec)
		return nil
	}}
}

// otherRevisions returns the names of the revisions that do not hold the new template.
func otherRevisions(in Input) map[string]bool {
	others := map[string]bool{}
	for _, object := range among[*appsv1.ControllerRevision](in.Objects) {
		template, _, err := revision.Decode(object)
		others[object.Name] = err != nil || !defaults.SameSpec(&template.Spec, &in.After.Spec.Template.Spec)
	}
	return others
}

// completed returns the spec of a sample with the fields that differ from pod to pod.
func completed(spec, sample *corev1.PodSpec) corev1.PodSpec {
	whole := *sample.DeepCopy()
	whole.NodeName, whole.Hostname, whole.Subdomain = spec.NodeName, spec.Hostname, spec.Subdomain
	whole.ReadinessGates = spec.ReadinessGates
	for i := range whole.Volumes {
		own := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == whole.Volumes[i].Name })
		if own >= 0 {
			whole.Volumes[i] = spec.Volumes[own]
		}
	}
	return whole
}
