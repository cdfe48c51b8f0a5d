// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/internal/model/defaults"
)

var update = flag.Bool("update", false, "write testdata/fields.txt anew")

// spec returns a spec with one container.
func spec(edit func(*corev1.PodSpec, *corev1.Container)) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}}
	if edit != nil {
		edit(&t.Spec, &t.Spec.Containers[0])
	}
	return t
}

// ephemeral adds a volume whose claim lives as long as the pod.
func ephemeral(size string) func(*corev1.PodSpec, *corev1.Container) {
	return func(s *corev1.PodSpec, _ *corev1.Container) {
		claim := &corev1.PersistentVolumeClaimTemplate{}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		s.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: claim}}}}
	}
}

// TestSame compares templates that differ in one thing. The API server's own answers are compared in package fidelity.
func TestSame(t *testing.T) {
	t.Parallel()
	type edit = func(*corev1.PodSpec, *corev1.Container)
	for name, tt := range map[string]struct {
		a, b edit
		want bool
	}{
		"a default spelled out":     {b: func(_ *corev1.PodSpec, c *corev1.Container) { c.TerminationMessagePath = "/dev/termination-log" }, want: true},
		"another value":             {b: func(_ *corev1.PodSpec, c *corev1.Container) { c.TerminationMessagePath = "/log" }},
		"an empty security context": {b: func(s *corev1.PodSpec, _ *corev1.Container) { s.SecurityContext = &corev1.PodSecurityContext{} }, want: true},
		"links of services":         {b: func(s *corev1.PodSpec, _ *corev1.Container) { s.EnableServiceLinks = new(true) }, want: true},
		"no links of services":      {b: func(s *corev1.PodSpec, _ *corev1.Container) { s.EnableServiceLinks = new(false) }},
		"the account":               {b: func(s *corev1.PodSpec, _ *corev1.Container) { s.ServiceAccountName = "default" }, want: true},
		"another account":           {b: func(s *corev1.PodSpec, _ *corev1.Container) { s.ServiceAccountName = "web" }},
		"both names of an account":  {a: func(s *corev1.PodSpec, _ *corev1.Container) { s.ServiceAccountName = "web" }, b: func(s *corev1.PodSpec, _ *corev1.Container) { s.DeprecatedServiceAccount = "web" }, want: true},
		"a negative grace period":   {a: func(s *corev1.PodSpec, _ *corev1.Container) { s.TerminationGracePeriodSeconds = new(int64(-1)) }, b: func(s *corev1.PodSpec, _ *corev1.Container) { s.TerminationGracePeriodSeconds = new(int64(1)) }, want: true},
		"the policy of a tag":       {b: func(_ *corev1.PodSpec, c *corev1.Container) { c.ImagePullPolicy = corev1.PullIfNotPresent }, want: true},
		"the policy of another tag": {b: func(_ *corev1.PodSpec, c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways }},
		"another image":             {b: func(_ *corev1.PodSpec, c *corev1.Container) { c.Image = "app:v2" }},
		"a request that is the limit": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
			},
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
				c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
			},
			want: true,
		},
		"a limit between two thousandths": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("100500u")}
			},
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("101m")}
			},
			want: true,
		},
		"no grace period": {a: func(s *corev1.PodSpec, _ *corev1.Container) { s.TerminationGracePeriodSeconds = new(int64(0)) }, b: func(s *corev1.PodSpec, _ *corev1.Container) { s.TerminationGracePeriodSeconds = new(int64(1)) }},
		"the version of a field": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
			},
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name", APIVersion: "v1"}}}}
			},
			want: true,
		},
		"one of the two hooks of a container": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/stop"}}}
			},
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/stop", Scheme: "HTTP"}}}
			},
			want: true,
		},
		"a size between two thousandths": {a: ephemeral("100500u"), b: ephemeral("101m"), want: true},
		"another size":                   {a: ephemeral("100500u"), b: ephemeral("102m")},
		"the protocol of a port": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80}} },
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}}
			},
			want: true,
		},
		"what volumes leave out": {
			a: func(s *corev1.PodSpec, _ *corev1.Container) {
				for _, source := range []corev1.VolumeSource{
					{},
					{Secret: &corev1.SecretVolumeSource{}},
					{ConfigMap: &corev1.ConfigMapVolumeSource{}},
					{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{}}}}},
					{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
						{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{FieldRef: &corev1.ObjectFieldSelector{}}}}},
					}}},
					{Image: &corev1.ImageVolumeSource{Reference: "data:v1"}},
					{HostPath: &corev1.HostPathVolumeSource{}},
					{ISCSI: &corev1.ISCSIVolumeSource{}},
					{RBD: &corev1.RBDVolumeSource{}},
					{AzureDisk: &corev1.AzureDiskVolumeSource{}},
					{ScaleIO: &corev1.ScaleIOVolumeSource{}},
				} {
					s.Volumes = append(s.Volumes, corev1.Volume{VolumeSource: source})
				}
			},
			b: func(s *corev1.PodSpec, _ *corev1.Container) {
				mode, field := new(int32(0o644)), &corev1.ObjectFieldSelector{APIVersion: "v1"}
				for _, source := range []corev1.VolumeSource{
					{EmptyDir: &corev1.EmptyDirVolumeSource{}},
					{Secret: &corev1.SecretVolumeSource{DefaultMode: mode}},
					{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: mode}},
					{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: mode, Items: []corev1.DownwardAPIVolumeFile{{FieldRef: field}}}},
					{Projected: &corev1.ProjectedVolumeSource{DefaultMode: mode, Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3600))}},
						{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{FieldRef: field}}}},
					}}},
					{Image: &corev1.ImageVolumeSource{Reference: "data:v1", PullPolicy: corev1.PullIfNotPresent}},
					{HostPath: &corev1.HostPathVolumeSource{Type: new(corev1.HostPathUnset)}},
					{ISCSI: &corev1.ISCSIVolumeSource{ISCSIInterface: "default"}},
					{RBD: &corev1.RBDVolumeSource{RBDPool: "rbd", RadosUser: "admin", Keyring: "/etc/ceph/keyring"}},
					{AzureDisk: &corev1.AzureDiskVolumeSource{
						CachingMode: new(corev1.AzureDataDiskCachingReadWrite), FSType: new("ext4"), ReadOnly: new(false), Kind: new(corev1.AzureSharedBlobDisk),
					}},
					{ScaleIO: &corev1.ScaleIOVolumeSource{StorageMode: "ThinProvisioned", FSType: "xfs"}},
				} {
					s.Volumes = append(s.Volumes, corev1.Volume{VolumeSource: source})
				}
			},
			want: true,
		},
		"the medium of a volume": {
			a: func(s *corev1.PodSpec, _ *corev1.Container) {
				s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			},
			b: func(s *corev1.PodSpec, _ *corev1.Container) {
				s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
			},
		},
		"a request that is not the limit": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
			},
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
				c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("500m")}
			},
		},
		"a default and another value": {b: func(s *corev1.PodSpec, c *corev1.Container) {
			s.DNSPolicy, c.Image = corev1.DNSClusterFirst, "app:v2"
		}},
		"what a limit range may add": {b: func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}},
		"what a priority class may add": {b: func(s *corev1.PodSpec, _ *corev1.Container) { s.Priority = new(int32(0)) }},
		"the protocol of a probe": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{}}}
			},
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Protocol: new(corev1.HTTPProtocolHTTP1)}}}
			},
			want: true,
		},
		"the protocol of another probe": {
			a: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{}}}
			},
			b: func(_ *corev1.PodSpec, c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Protocol: new(corev1.HTTPProtocol("H2C"))}}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := spec(tt.a), spec(tt.b)
			before := a.DeepCopy()
			for range 2 {
				if got := defaults.Same(a, b); got != tt.want {
					t.Errorf("Same() = %t", got)
				}
				a, b = b, a
			}
			if diff := cmp.Diff(before, a); diff != "" {
				t.Errorf("the template was changed (-want +got):\n%s", diff)
			}
		})
	}
	labeled := spec(nil)
	labeled.Labels = map[string]string{"app": "web"}
	if defaults.Same(spec(nil), labeled) {
		t.Error("a label makes no difference")
	}
}

// TestPullPolicy covers images as people write them.
func TestPullPolicy(t *testing.T) {
	t.Parallel()
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for image, want := range map[string]corev1.PullPolicy{
		"app": "Always", "app:latest": "Always", "app:latest" + digest: "Always", "registry:5000/app": "Always", "docker.io/library/app": "Always",
		"app:v1": "IfNotPresent", "app" + digest: "IfNotPresent", "app:v1" + digest: "IfNotPresent", "registry:5000/app:v1": "IfNotPresent",
		"NOT AN IMAGE": "IfNotPresent", "": "IfNotPresent", "app@sha256:short": "IfNotPresent",
	} {
		if got := defaults.PullPolicy(image); got != want {
			t.Errorf("%q: %s, want %s", image, got, want)
		}
	}
}

// TestEveryFieldIsKnown lists the fields of pods. A field that a new version of Kubernetes brings may have a default: look into
// SetObjectDefaults_Pod in k8s.io/kubernetes/pkg/apis/core/v1 before the list is written anew, with -update.
func TestEveryFieldIsKnown(t *testing.T) {
	t.Parallel()
	fields := map[string]bool{}
	collect(reflect.TypeFor[corev1.PodSpec](), fields)
	found := strings.Join(slices.Sorted(maps.Keys(fields)), "\n") + "\n"
	path := filepath.Join("testdata", "fields.txt")
	if *update {
		if err := os.WriteFile(path, []byte(found), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(known), found); diff != "" {
		t.Errorf("pods have other fields (-known +found):\n%s", diff)
	}
}

// collect adds the fields of a type, and of all types in it.
func collect(in reflect.Type, fields map[string]bool) {
	switch in.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(in.Elem(), fields)
	case reflect.Struct:
		if !strings.HasPrefix(in.PkgPath(), "k8s.io/api/") {
			return
		}
		for field := range in.Fields() {
			if name := in.Name() + "." + field.Name; !fields[name] {
				fields[name] = true
				collect(field.Type, fields)
			}
		}
	default:
	}
}
