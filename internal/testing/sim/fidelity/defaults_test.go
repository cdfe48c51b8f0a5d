// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/model/defaults"
)

// TestDefaults compares what the API server makes of pods with what the controller and the store fill in, and what it makes of pods
// that come with all of that.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, edit := range defaulted() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}
			edit(&spec, &spec.Containers[0])
			want := defaults.Filled(&spec)
			for _, sent := range []*corev1.PodSpec{&spec, want} {
				if diff := cmp.Diff(pretended(t, sent), want, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("of the API server (-), filled in (+):\n%s", diff)
				}
			}
		})
	}
}

// pretended returns the spec of a pod as the API server would create it. What admission plug-ins add is taken away.
func pretended(t *testing.T, spec *corev1.PodSpec) *corev1.PodSpec {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pretended"}, Spec: *spec.DeepCopy()}
	if err := server.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	normalize(pod)
	return &pod.Spec
}

// defaulted returns pods that have fields with defaults, as changes of a plain one.
func defaulted() map[string]func(*corev1.PodSpec, *corev1.Container) {
	return map[string]func(*corev1.PodSpec, *corev1.Container){
		"plain":                       func(*corev1.PodSpec, *corev1.Container) {},
		"an account":                  func(s *corev1.PodSpec, _ *corev1.Container) { s.ServiceAccountName = "web" },
		"an account, by its old name": func(s *corev1.PodSpec, _ *corev1.Container) { s.DeprecatedServiceAccount = "web" },
		"a negative grace period":     func(s *corev1.PodSpec, _ *corev1.Container) { s.TerminationGracePeriodSeconds = new(int64(-1)) },
		"the tag latest":              func(_ *corev1.PodSpec, c *corev1.Container) { c.Image = "app" },
		"a digest":                    func(_ *corev1.PodSpec, c *corev1.Container) { c.Image = "app@sha256:" + strings.Repeat("a", 64) },
		"not an image":                func(_ *corev1.PodSpec, c *corev1.Container) { c.Image = "NOT-AN-IMAGE" },
		"the network of the node": func(s *corev1.PodSpec, c *corev1.Container) {
			s.HostNetwork = true
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		},
		"limits": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
			c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100u")}
		},
		"environment": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Env = []corev1.EnvVar{
				{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "B", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
				{Name: "C", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "k"}}},
			}
		},
		"probes": func(s *corev1.PodSpec, c *corev1.Container) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}
			c.LivenessProbe, c.ReadinessProbe = &corev1.Probe{ProbeHandler: get}, &corev1.Probe{ProbeHandler: get}
			c.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80}}}
			c.Lifecycle = &corev1.Lifecycle{
				PostStart: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}},
				PreStop:   &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Path: "/stop"}},
			}
			sidecar := *c.DeepCopy()
			sidecar.Name, sidecar.RestartPolicy = "sidecar", new(corev1.ContainerRestartPolicyAlways)
			s.InitContainers = []corev1.Container{sidecar, {Name: "init", Image: "init"}}
		},
		"scheduling": func(s *corev1.PodSpec, c *corev1.Container) {
			s.Tolerations = []corev1.Toleration{{Key: "a"}}
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}}
			c.SecurityContext = &corev1.SecurityContext{}
			s.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(1))}
		},
		"volumes":       filesAndDirectories,
		"other volumes": disks,
	}
}

// filesAndDirectories adds volumes whose files come from the API or the node.
func filesAndDirectories(s *corev1.PodSpec, _ *corev1.Container) {
	s.ServiceAccountName = "web" // needed for the token
	items := []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}
	local := corev1.LocalObjectReference{Name: "a"}
	s.Volumes = volumes(
		corev1.VolumeSource{},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}},
		corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local}},
		corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}},
		corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: items}},
		corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data:v1"}},
		corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data"}},
		corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: items}},
		}}},
		corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
			},
		}}},
	)
}

// disks adds volumes that are attached to the node.
func disks(s *corev1.PodSpec, _ *corev1.Container) {
	s.Volumes = volumes(
		corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.2001-04.com.example:storage", Lun: 1}},
		corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{CephMonitors: []string{"a"}, RBDImage: "a"}},
		corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "a", DataDiskURI: "https://blob/a.vhd"}},
		corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{Gateway: "a", System: "a", VolumeName: "a", SecretRef: &corev1.LocalObjectReference{Name: "a"}}},
		corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/a"}},
		corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "a"}},
	)
}

// volumes gives names to volumes.
func volumes(sources ...corev1.VolumeSource) []corev1.Volume {
	all := make([]corev1.Volume, len(sources))
	for i, source := range sources {
		all[i] = corev1.Volume{Name: "v" + string(rune('a'+i)), VolumeSource: source}
	}
	return all
}
