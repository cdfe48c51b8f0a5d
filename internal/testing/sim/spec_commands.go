// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
)

// specCommands returns the commands that change the spec of the set. Each has the name of its field.
func specCommands() []command {
	numbers := []command{
		specNumber("replicas", func(s *v1beta1.RollSetSpec, n int32) { s.Replicas = &n }),
		specNumber("minReady", func(s *v1beta1.RollSetSpec, n int32) { s.MinReadySeconds = n }),
		specNumber("history", func(s *v1beta1.RollSetSpec, n int32) { s.RevisionHistoryLimit = &n }),
		specNumber("deadline", func(s *v1beta1.RollSetSpec, n int32) { s.ProgressDeadlineSeconds = &n }),
		specNumber("terminationGrace", func(s *v1beta1.RollSetSpec, n int32) { s.Template.Spec.TerminationGracePeriodSeconds = new(int64(n)) }),
		specNumber("start", func(s *v1beta1.RollSetSpec, n int32) { s.Ordinals = &v1beta1.Ordinals{Start: n} }),
	}
	words := []command{
		specWord("identity", func(s *v1beta1.RollSetSpec, v string) { s.PodIdentity = v1beta1.PodIdentity(v) }),
		specWord("management", func(s *v1beta1.RollSetSpec, v string) { s.PodManagementPolicy = v1beta1.PodManagementPolicy(v) }),
		specWord("strategy", func(s *v1beta1.RollSetSpec, v string) { s.UpdateStrategy.Type = v1beta1.UpdateStrategyType(v) }),
		specWord("paused", func(s *v1beta1.RollSetSpec, v string) { s.UpdateStrategy.RollingUpdate.Paused = v == "true" }),
		specWord("partition", func(s *v1beta1.RollSetSpec, v string) { s.UpdateStrategy.RollingUpdate.Partition = numberOrPercent(v) }),
		specWord("maxSurge", func(s *v1beta1.RollSetSpec, v string) { s.UpdateStrategy.RollingUpdate.MaxSurge = numberOrPercent(v) }),
		specWord("maxUnavailable", func(s *v1beta1.RollSetSpec, v string) {
			s.UpdateStrategy.RollingUpdate.MaxUnavailable = numberOrPercent(v)
		}),
		specWord("onDeadline", func(s *v1beta1.RollSetSpec, v string) {
			s.UpdateStrategy.RollingUpdate.OnDeadlineExceeded = v1beta1.DeadlinePolicy(v)
		}),
		specWord("scaleMaxUnavailable", func(s *v1beta1.RollSetSpec, v string) {
			s.ScaleStrategy = &v1beta1.ScaleStrategy{MaxUnavailable: numberOrPercent(v)}
		}),
		specWord("image", func(s *v1beta1.RollSetSpec, v string) { s.Template.Spec.Containers[0].Image = v }),
		specWord("scheduling-gate", func(s *v1beta1.RollSetSpec, v string) {
			s.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v}}
		}),
		specWord("defaults", setDefaults),
		specWord("env", func(s *v1beta1.RollSetSpec, v string) {
			name, value, _ := strings.Cut(v, "=")
			s.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: name, Value: value}}
		}),
		specWord("cpu", func(s *v1beta1.RollSetSpec, v string) {
			s.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(v)}
		}),
		specWord("claims", setClaims),
		specWord("no-claims", dropClaims),
	}
	return append(append(numbers, words...), command{"podsToDelete", 0, podsToDelete}, command{"rename-claims", 2, renameClaims})
}

// specWord returns a command that edits the spec by its argument.
func specWord(name string, set func(*v1beta1.RollSetSpec, string)) command {
	return command{name, 1, func(_ context.Context, w *World, args []string) error {
		return w.Edit(name+" "+strings.Join(args, " "), func(spec *v1beta1.RollSetSpec) { set(spec, args[0]) })
	}}
}

// specNumber returns a command that edits the spec by a number.
func specNumber(name string, set func(*v1beta1.RollSetSpec, int32)) command {
	return command{name, 1, func(_ context.Context, w *World, args []string) error {
		n, err := strconv.ParseInt(args[0], 10, 32)
		if err != nil {
			return err
		}
		return w.Edit(name+" "+args[0], func(spec *v1beta1.RollSetSpec) { set(spec, int32(n)) })
	}}
}

// forTime returns a command that lets something happen for a time, or by a time.
func forTime(name, what string, do func(*World, time.Duration)) command {
	return command{name, 1, func(_ context.Context, w *World, args []string) error {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		w.note(what + " " + args[0])
		do(w, d)
		return nil
	}}
}

func numberOrPercent(v string) *intstr.IntOrString { return new(intstr.Parse(v)) }

// setDefaults spells the defaults of the template out, as a live workload of another kind has them ("defaults written"), or leaves
// them out, as manifests do ("defaults left-out"). With a colon and an image it changes that in the same edit.
func setDefaults(spec *v1beta1.RollSetSpec, v string) {
	how, image, changed := strings.Cut(v, ":")
	pod := &spec.Template.Spec
	if changed {
		pod.Containers[0].Image = image
	}
	if how == "written" {
		defaults.Fill(pod)
		return
	}
	for _, omit := range []func(*corev1.PodSpec, *corev1.Container){
		func(p *corev1.PodSpec, _ *corev1.Container) {
			p.ServiceAccountName, p.DeprecatedServiceAccount = "", ""
		},
		func(p *corev1.PodSpec, _ *corev1.Container) {
			p.DNSPolicy, p.RestartPolicy, p.SchedulerName = "", "", ""
		},
		func(p *corev1.PodSpec, _ *corev1.Container) { p.SecurityContext, p.EnableServiceLinks = nil, nil },
		func(p *corev1.PodSpec, _ *corev1.Container) { p.TerminationGracePeriodSeconds = nil },
		func(_ *corev1.PodSpec, c *corev1.Container) { c.ImagePullPolicy = "" },
		func(_ *corev1.PodSpec, c *corev1.Container) {
			c.TerminationMessagePath, c.TerminationMessagePolicy = "", ""
		},
	} {
		less := pod.DeepCopy()
		omit(less, &less.Containers[0])
		if defaults.SameSpec(less, pod) {
			*pod = *less
		}
	}
}

// setClaims adds a claim template and a mount of it.
func setClaims(spec *v1beta1.RollSetSpec, v string) {
	dropClaims(spec, v)
	container := &spec.Template.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: v, MountPath: "/" + v})
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: v}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	spec.VolumeClaimTemplates = append(spec.VolumeClaimTemplates, claim)
}

// dropClaims removes a claim template and its mounts.
func dropClaims(spec *v1beta1.RollSetSpec, v string) {
	spec.VolumeClaimTemplates = slices.DeleteFunc(spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == v })
	container := &spec.Template.Spec.Containers[0]
	container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v })
}

// renameClaims replaces one claim template by another: "rename-claims data store".
func renameClaims(_ context.Context, w *World, args []string) error {
	return w.Edit("rename-claims "+strings.Join(args, " "), func(spec *v1beta1.RollSetSpec) {
		dropClaims(spec, args[0])
		setClaims(spec, args[1])
	})
}

// podsToDelete names pods by their letters.
func podsToDelete(_ context.Context, w *World, args []string) error {
	var names []string
	for _, arg := range args {
		if pod := w.podNamed(arg); pod != nil {
			names = append(names, pod.Name)
		}
	}
	return w.Edit("podsToDelete "+strings.Join(args, " "), func(spec *v1beta1.RollSetSpec) {
		if spec.ScaleStrategy == nil {
			spec.ScaleStrategy = &v1beta1.ScaleStrategy{}
		}
		spec.ScaleStrategy.PodsToDelete = names
	})
}
