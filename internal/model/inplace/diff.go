// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package inplace decides whether a pod can change from one template to another without being recreated, what to write for
// that, and when it is done.
//
// The rule: a change can be made in place if a running pod can take over all of it. That holds for
//   - the images of containers and of restartable init containers,
//   - the cpu and memory of containers, as long as nothing is removed and the QoS class stays the same,
//   - labels and annotations, unless an environment variable or a volume of the pod reads the changed key, or the key asks
//     for a restart.
//
// Any other change recreates the pod, and the reason names the first such field. Among these are the image of an ordinary
// init container, because the container has run and will not run again; the order of containers, because they start in that
// order; and an image whose tag changes the default of imagePullPolicy, because that field of a pod is immutable. The order
// of volumes and ports means nothing, nil equals empty, and a field that is left out equals its default. The label with the revision changes in every update, so a
// variable that reads it forbids all of them. A volume with all labels does not, because the kubelet rewrites it.
//
// Patches are made from templates alone. The pod's state annotation only shows when the kubelet is done.
package inplace

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
)

// Change turns a pod of one template into a pod of another. The zero value changes nothing but the revision label.
type Change struct {
	// Images maps the names of containers and restartable init containers to their new images.
	Images map[string]string
	// Resources maps the names of containers to all requests and limits of cpu and memory that they are to have.
	Resources map[string]corev1.ResourceRequirements
	// Restarts names the containers that restart, in order: for a new image, or because their resizePolicy says so.
	Restarts []string
	// Labels and Annotations are the changes of metadata.
	Labels, Annotations Keys
	// Restarted and Resized are true if the restarts and the resize of the pod's last update are known to be done. An
	// unfinished one is waited for together with this change.
	Restarted, Resized bool
}

// Keys is a change of labels or annotations.
type Keys struct {
	// Set holds the keys that are new or have a new value.
	Set map[string]string
	// Removed holds the keys that the new template no longer has, in order.
	Removed []string
}

// MetadataOnly reports whether the containers notice nothing.
func (c Change) MetadataOnly() bool { return len(c.Images) == 0 && len(c.Resources) == 0 }

// NeedsResize reports whether a container of a pod has to be resized.
func (c Change) NeedsResize(pod *corev1.Pod) bool {
	for name, resources := range c.Resources {
		if m, ok := find(&pod.Spec, name); ok && !covers(m.Resources, resources) {
			return true
		}
	}
	return false
}

// NeedsRestart reports whether a container restarts.
func (c Change) NeedsRestart() bool { return len(c.Restarts) > 0 }

// Diff returns the change from one template to another, or why it cannot be made in place: the path of the first field that
// forbids it, and the cause. Either template may be nil, which forbids it too.
func Diff(from, to *corev1.PodTemplateSpec) (c Change, cannot string) {
	if from == nil || to == nil {
		return Change{}, "the template that the pod was made from is lost"
	}
	rest, wanted := reduce(from), reduce(to)
	c.Labels = keys(rest.Labels, wanted.Labels)
	c.Annotations = keys(rest.Annotations, wanted.Annotations)
	rest.Labels, rest.Annotations = wanted.Labels, wanted.Annotations
	takeImages(&c, &rest.Spec, &wanted.Spec)
	takeResources(&c, rest.Spec.Containers, wanted.Spec.Containers)
	slices.Sort(c.Restarts)
	c.Restarts = slices.Compact(c.Restarts)

	// What remains once everything that can be done in place is removed must be equal.
	cannot = cmp.Or(
		c.restart(),
		c.firstPullPolicy(&from.Spec, &to.Spec),
		firstDifference("", reflect.ValueOf(*rest), reflect.ValueOf(*wanted)),
		c.firstReader(&wanted.Spec),
		c.otherQOS(&from.Spec, &wanted.Spec),
	)
	if cannot != "" {
		return Change{}, cannot
	}
	return c, ""
}

// reduce returns a copy of a template with its defaults, and without the metadata that no pod gets. It sorts lists whose order
// means nothing.
func reduce(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t := template.DeepCopy()
	defaults.Fill(&t.Spec)
	t.ObjectMeta = metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers}
	slices.SortStableFunc(t.Spec.Volumes, func(a, b corev1.Volume) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range members(&t.Spec) {
		for i := range m.Ports {
			if t.Spec.HostNetwork { // it can only be the port of the container
				m.Ports[i].HostPort = 0
			}
		}
		slices.SortStableFunc(m.Ports, func(a, b corev1.ContainerPort) int {
			return cmp.Or(cmp.Compare(a.ContainerPort, b.ContainerPort), cmp.Compare(a.Protocol, b.Protocol))
		})
	}
	return t
}

// RestartedAt is the annotation of a template by which kubectl rollout restart asks for new pods.
const RestartedAt = "kubectl.kubernetes.io/restartedAt"

// restart reports a request for new pods; empty if there is none.
func (c Change) restart() string {
	if !c.Annotations.changed(RestartedAt) {
		return ""
	}
	return "metadata.annotations[" + RestartedAt + "]: a restart is requested"
}

// keys compares labels or annotations. It ignores the controller's own.
func keys(from, to map[string]string) Keys {
	var k Keys
	for key, value := range to {
		if old, ok := from[key]; (!ok || old != value) && !own(key) {
			if k.Set == nil {
				k.Set = make(map[string]string)
			}
			k.Set[key] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, ok := to[key]; !ok && !own(key) {
			k.Removed = append(k.Removed, key)
		}
	}
	return k
}

// own reports whether a label or annotation of a pod is written only by the controller.
func own(key string) bool {
	switch key {
	case v1beta1.RevisionLabel, v1beta1.PodIndexLabel, v1beta1.PodNameLabel:
		return true
	}
	return strings.HasPrefix(key, v1beta1.ReservedPrefix) || strings.Contains(key, "."+v1beta1.ReservedPrefix)
}

// empty reports whether no key changes.
func (k Keys) empty() bool { return len(k.Set)+len(k.Removed) == 0 }

// changed reports whether a key is set or removed.
func (k Keys) changed(key string) bool {
	_, set := k.Set[key]
	return set || slices.Contains(k.Removed, key)
}

// first returns the first key that is set or removed, empty if there is none.
func (k Keys) first() string {
	all := slices.AppendSeq(slices.Clone(k.Removed), maps.Keys(k.Set))
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

// takeImages moves differences of images from the old spec to the change.
func takeImages(c *Change, rest, wanted *corev1.PodSpec) {
	for _, r := range members(rest) {
		w, ok := find(wanted, r.Name)
		// A pod, unlike a template, must have an image.
		if !ok || !r.stays() || !w.stays() || w.Image == r.Image || w.Image == "" {
			continue
		}
		if c.Images == nil {
			c.Images = make(map[string]string)
		}
		c.Images[r.Name] = w.Image
		c.Restarts = append(c.Restarts, r.Name)
		r.Image = w.Image
	}
}

// firstPullPolicy finds a container whose new image has another default of imagePullPolicy, because a pod keeps the policy
// that it was created with.
func (c Change) firstPullPolicy(from, to *corev1.PodSpec) string {
	for _, w := range members(to) {
		old, ok := find(from, w.Name)
		if _, changed := c.Images[w.Name]; !ok || !changed || cmp.Or(old.ImagePullPolicy, w.ImagePullPolicy) != "" {
			continue
		}
		if before, after := defaults.PullPolicy(old.Image), defaults.PullPolicy(w.Image); before != after {
			return fmt.Sprintf("%s.imagePullPolicy: the new image changes the default from %s to %s", w.path(), before, after)
		}
	}
	return ""
}
