// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// randomName is the name of a pod with a random identity in a message.
var randomName = regexp.MustCompile(SetName + `-[a-z0-9]{5}\b`)

// final is the set of a world in the end, to be compared with that of another world.
type final struct{ *World }

// outline returns what of a set never depends on where it comes from: how many pods there are, and which ordinals. Whether
// they are available does, if a spec keeps pods of a template that was no good.
func (f final) outline() []string {
	var lines []string
	for _, pod := range f.Pods() {
		lines = append(lines, "pod "+pod.Labels[v1beta1.PodIndexLabel])
	}
	set := f.Set()
	updated := strconv.Itoa(int(set.Status.ExpectedUpdatedReplicas))
	if int(set.Status.ExpectedUpdatedReplicas) == f.expectedUpdated(set) {
		updated = "as many as expected"
	}
	slices.Sort(lines)
	return append(lines, fmt.Sprintf("%d replicas, %s to be updated", set.Status.Replicas, updated))
}

// expectedUpdated returns how many pods are to be at the update revision.
func (f final) expectedUpdated(set *v1beta1.RollSet) int {
	l := f.Limits(set)
	if set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy {
		return l.Replicas
	}
	return l.Replicas - l.Partition
}

// state returns the set with its pods and their claims, without what legitimately remembers:
//   - names of random identities, UIDs, versions, times and nodes, which are others in every run;
//   - the number and the count of revisions, and how many ids were given out, which depend on the history on purpose;
//   - claims that no pod mounts, which were kept because a user may want them back;
//   - the readiness gate, which a pod has from its creation or never: a later policy does not recreate it for that;
//   - the pod in whose place a pod was created;
//   - the state label of hooks and its date, which stay behind when a set no longer uses them;
//   - without replicas, the current revision, because nothing proves another one then.
func (f final) state() []string {
	set := f.Set()
	var lines []string
	for _, pod := range f.Pods() {
		lines = append(lines, f.pod(set, pod))
	}
	slices.Sort(lines)
	status := set.Status.DeepCopy()
	status.ObservedGeneration, status.IssuedIDs = 0, 0
	status.CurrentRevision, status.UpdateRevision = f.content(status.CurrentRevision), f.content(status.UpdateRevision)
	if *set.Spec.Replicas == 0 {
		status.CurrentRevision = ""
	}
	if r := status.Rollout; r != nil {
		r.Revision, r.Since, r.Until = f.content(r.Revision), nil, nil
	}
	for i := range status.Revisions {
		status.Revisions[i].Name = f.content(status.Revisions[i].Name)
	}
	slices.SortFunc(status.Revisions, func(a, b v1beta1.RevisionStatus) int { return cmp.Compare(a.Name, b.Name) })
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
		status.Conditions[i].ObservedGeneration = 0
		lines = append(lines, randomName.ReplaceAllString(inJSON(status.Conditions[i]), "a pod"))
	}
	status.Conditions = nil
	return append(lines, inJSON(status))
}

func (f final) pod(set *v1beta1.RollSet, pod *corev1.Pod) string {
	p := apiserver.Clone(pod)
	random := set.Spec.PodIdentity == v1beta1.RandomIdentity
	if random {
		p.Name, p.Spec.Hostname = "", ""
		delete(p.Labels, v1beta1.InstanceIDLabel)
	}
	content := f.content(p.Labels[v1beta1.RevisionLabel])
	delete(p.Labels, v1beta1.RevisionLabel)
	delete(p.Labels, v1beta1.LifecycleStateLabel)
	delete(p.Labels, corev1.LabelTopologyZone)
	delete(p.Annotations, inplace.StateAnnotation)
	delete(p.Annotations, v1beta1.LifecycleSinceAnnotation)
	delete(p.Annotations, v1beta1.OriginAnnotation)
	p.Spec.NodeName, p.Spec.ReadinessGates = "", nil
	var claims []string
	for i := range p.Spec.Volumes {
		if source := p.Spec.Volumes[i].PersistentVolumeClaim; source != nil {
			claims = append(claims, f.claim(set, pod, source.ClaimName))
			if random {
				source.ClaimName = ""
			}
		}
	}
	return fmt.Sprintf("%s%s %v %v %s %s runs %s", p.Name, f.Mark(pod), p.Labels, p.Annotations, inJSON(p.Spec), claims, content)
}

// claim returns the owners of a claim and its size.
func (f final) claim(set *v1beta1.RollSet, pod *corev1.Pod, name string) string {
	claim, ok := f.Store.Get(apiserver.Key{Kind: apiserver.Claims, Namespace: Namespace, Name: name}).(*corev1.PersistentVolumeClaim)
	if !ok {
		return "missing"
	}
	owners := map[string]string{string(set.UID): "the set", string(pod.UID): "the pod"}
	text := []string{claim.Spec.Resources.Requests.Storage().String()}
	for _, ref := range claim.OwnerReferences {
		text = append(text, "owned by "+owners[string(ref.UID)])
	}
	return strings.Join(text, " ")
}

// content returns what a revision holds, instead of its name.
func (f final) content(revision string) string {
	template := f.TemplateOf(revision)
	if template == nil {
		return "nothing"
	}
	return inJSON(template)
}
