// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// verb is a word of histories: an edit of the spec, or a deed to pods and what is around them. One without a weight is not
// drawn.
type verb struct {
	weight   int
	partners []string
	draw     func(*rand.Rand) string
	edit     func(*wish, string)
	deed     deed
}

// verbs returns all words.
func verbs() map[string]verb {
	sets, rolling := []string{orderedReady, parallel}, []string{deployment}
	return map[string]verb{
		"image": {weight: 16, edit: func(w *wish, to string) { w.image = to }, draw: oneOf(
			"v1", "v2", "v2", "v3", "v3", "v4", "v2-slow", "v3-slow", "v2-broken", "v3-broken", "v4-broken", "v3-missing")},
		"replicas":    {weight: 9, edit: func(w *wish, to string) { w.replicas = number(to) }, draw: oneOf("0", "1", "2", "3", "4", "5")},
		"autoscale":   {weight: 2, deed: autoscale, draw: oneOf("2", "3", "4", "5")},
		"partition":   {weight: 6, partners: sets, edit: func(w *wish, to string) { w.partition = number(to) }, draw: oneOf("0", "1", "2", "3")},
		"paused":      {weight: 6, partners: rolling, edit: func(w *wish, to string) { w.paused = to == "true" }, draw: oneOf("true", "true", "false")},
		"cpu":         {weight: 2, edit: func(w *wish, to string) { w.cpu = to }, draw: oneOf("1m", "2m")},
		"note":        {weight: 2, edit: func(w *wish, to string) { w.note = to }, draw: oneOf("a", "b")},
		"unavailable": {weight: 2, edit: func(w *wish, to string) { w.unavailable = number(to) }, draw: oneOf("0", "1", "2")},
		"surge":       {weight: 1, partners: rolling, edit: func(w *wish, to string) { w.surge = number(to) }, draw: oneOf("0", "1", "2")},
		"type":        {weight: 1, partners: sets, edit: func(w *wish, to string) { w.strategy = to }, draw: oneOf("OnDelete", "RollingUpdate")},
		"strategy":    {weight: 1, partners: rolling, edit: func(w *wish, to string) { w.strategy = to }, draw: oneOf("Recreate", "RollingUpdate")},
		"minReady":    {edit: func(w *wish, to string) { w.minReady = number(to) }},
		"claims":      {edit: func(w *wish, to string) { w.claims = to }},
		"ordinals":    {partners: rolling, edit: func(w *wish, _ string) { w.ordinals = true }},
		"delete":      {weight: 9, deed: deletePod, draw: place},
		"evict":       {weight: 3, deed: evictPod, draw: place},
		"unready":     {weight: 4, deed: makeUnready, draw: place},
		"ready":       {weight: 2, deed: makeReady},
		"lose":        {weight: 2, deed: loseNode, draw: place},
		"drop":        {weight: 2, deed: dropNode, draw: place},
		"back":        {weight: 2, deed: bringBack},
		"hold":        {weight: 3, deed: holdPod, draw: place},
		"let-go":      {weight: 2, deed: letGo},
		"cordon":      {weight: 2, deed: cordon},
		"uncordon":    {weight: 2, deed: uncordon},
		"quota":       {weight: 2, deed: limitPods},
		"no-quota":    {weight: 2, deed: unlimitPods},
		"stranger":    {weight: 1, partners: sets, deed: takeName, draw: oneOf("1", "2", "3", "4", "5")},
		"leave":       {weight: 1, partners: sets, deed: freeNames},
		"mislabel":    {weight: 1, deed: mislabel, draw: place},
		"relabel":     {weight: 1, deed: relabel},
		"lose-claim":  {weight: 1, partners: sets, deed: loseClaim, draw: place},
	}
}

func sortedVerbs() []string { return slices.Sorted(maps.Keys(verbs())) }

func number(s string) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		panic(err)
	}
	return int32(n)
}

// wish is the spec of both sets of a pair.
type wish struct {
	partner                                           string
	replicas, partition, unavailable, surge, minReady int32
	image, cpu, note, strategy, claims, name          string
	paused                                            bool
	// ordinals gives the pods of the RollSet beside a Deployment stable names.
	ordinals bool
}

func newWish(partner, name string) wish {
	return wish{
		partner: partner, name: name, replicas: 1, unavailable: 1, image: "v1", cpu: "1m", note: "a",
		strategy: "RollingUpdate", claims: "none",
	}
}

// edited returns the wish after the edits among acts.
func (w wish) edited(acts ...string) wish {
	for _, act := range acts {
		name, argument, _ := strings.Cut(act, " ")
		if edit := verbs()[name].edit; edit != nil {
			edit(&w, argument)
		}
	}
	return w
}

func (w wish) version() string { return versionOf(w.image, w.cpu, w.note) }

// undone returns the wish for a good template, and for nothing that would keep a pod from it.
func (w wish) undone() wish {
	return w.edited("image v5", "partition 0", "paused false", "strategy RollingUpdate", "unavailable 1")
}

// isBad reports whether pods of the image never become ready.
func isBad(version string) bool {
	return strings.Contains(version, "broken") || strings.Contains(version, "missing")
}

// limits returns maxUnavailable and maxSurge as the partner takes them: not both 0, and no surge for ordinals.
func (w wish) limits() (unavailable, surge *intstr.IntOrString) {
	if w.partner != deployment {
		return new(intstr.FromInt32(max(1, w.unavailable))), nil
	}
	if w.surge == 0 {
		return new(intstr.FromInt32(max(1, w.unavailable))), new(intstr.FromInt32(0))
	}
	return new(intstr.FromInt32(w.unavailable)), new(intstr.FromInt32(w.surge))
}

func (w wish) meta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: w.name, Namespace: namespace}
}

func (w wish) labels() map[string]string { return map[string]string{appLabel: w.name} }

func (w wish) selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: w.labels()} }

// template describes pods that run on the node of their side.
func (w wish) template(node string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: w.labels(), Annotations: map[string]string{noteAnnotation: w.note}},
		Spec: corev1.PodSpec{
			NodeSelector:                 map[string]string{corev1.LabelHostname: node},
			AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{
				Name: "app", Image: "app:" + w.image,
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/ready"}}}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(w.cpu),
				}},
			}},
		},
	}
	if w.claims != "none" {
		t.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: claimName, MountPath: "/data"}}
	}
	return t
}

func (w wish) claimTemplates() []corev1.PersistentVolumeClaim {
	if w.claims == "none" {
		return nil
	}
	return []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: claimName},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}}
}

// rollSet is the wish in the words of a RollSet.
func (w wish) rollSet(namespace, node string) client.Object {
	set := &v1beta1.RollSet{ObjectMeta: w.meta(namespace), Spec: v1beta1.RollSetSpec{
		Replicas: new(w.replicas), Selector: w.selector(), Template: w.template(node), MinReadySeconds: w.minReady,
		VolumeClaimTemplates: w.claimTemplates(),
		UpdateStrategy:       v1beta1.UpdateStrategy{Type: v1beta1.UpdateStrategyType(w.strategy)},
	}}
	rolling := &set.Spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable, rolling.MaxSurge = w.limits()
	rolling.Paused = w.paused
	if w.ordinals {
		set.Spec.PodIdentity, set.Spec.PodManagementPolicy = v1beta1.OrdinalIdentity, v1beta1.ParallelPodManagement
	}
	if w.partner == deployment {
		return set
	}
	set.Spec.PodIdentity = v1beta1.OrdinalIdentity
	set.Spec.PodManagementPolicy = v1beta1.PodManagementPolicy(w.management())
	rolling.Partition = new(intstr.FromInt32(w.partition))
	if w.claims != "none" {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{
			WhenDeleted: v1beta1.RetainClaims, WhenScaled: v1beta1.ClaimRetentionPolicy(w.claims),
		}
	}
	return set
}

func (w wish) management() appsv1.PodManagementPolicyType {
	if w.partner == parallel {
		return appsv1.ParallelPodManagement
	}
	return appsv1.OrderedReadyPodManagement
}

// builtin is the wish in the words of the kind that people would have used.
func (w wish) builtin(namespace, node string) client.Object {
	unavailable, surge := w.limits()
	if w.partner == deployment {
		d := &appsv1.Deployment{ObjectMeta: w.meta(namespace), Spec: appsv1.DeploymentSpec{
			Replicas: new(w.replicas), Selector: w.selector(), Template: w.template(node), MinReadySeconds: w.minReady, Paused: w.paused,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyType(w.strategy)},
		}}
		if w.strategy == "RollingUpdate" {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: unavailable, MaxSurge: surge}
		}
		return d
	}
	set := &appsv1.StatefulSet{ObjectMeta: w.meta(namespace), Spec: appsv1.StatefulSetSpec{
		Replicas: new(w.replicas), Selector: w.selector(), Template: w.template(node), MinReadySeconds: w.minReady,
		VolumeClaimTemplates: w.claimTemplates(), PodManagementPolicy: w.management(),
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.StatefulSetUpdateStrategyType(w.strategy)},
	}}
	if w.strategy == "RollingUpdate" {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{
			Partition: new(w.partition), MaxUnavailable: unavailable,
		}
	}
	if w.claims != "none" {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			WhenScaled:  appsv1.PersistentVolumeClaimRetentionPolicyType(w.claims),
		}
	}
	return set
}
