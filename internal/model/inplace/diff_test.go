// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/internal/model/inplace"
)

// template returns a pod template that uses every kind of field: an ordinary init container "prepare", a restartable one
// "proxy", and the containers "web" and "log".
func template() *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "web", "tier": "front"},
			Annotations: map[string]string{"note": "old"},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{
				{Name: "prepare", Image: "prepare:v1"},
				{Name: "proxy", Image: "proxy:v1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{
				{
					Name: "web", Image: "web:v1",
					Resources: requirements("cpu=1 memory=1Gi", "cpu=2 memory=2Gi"),
					Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {Name: "metrics", ContainerPort: 90}},
					Env:       []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")},
					}},
				},
				{Name: "log", Image: "log:v1"},
			},
			Volumes: []corev1.Volume{{Name: "a"}, {Name: "b"}},
		},
	}
}

// requirements parses resources such as "cpu=1 memory=1Gi".
func requirements(requests, limits string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: quantities(requests), Limits: quantities(limits)}
}

func quantities(text string) corev1.ResourceList {
	var list corev1.ResourceList
	for field := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(field, "=")
		if list == nil {
			list = make(corev1.ResourceList)
		}
		list[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

func web(t *corev1.PodTemplateSpec) *corev1.Container { return &t.Spec.Containers[0] }

func TestDiffInPlace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, edit func(*corev1.PodTemplateSpec)
		want         inplace.Change
	}{
		"nothing": {
			edit: func(*corev1.PodTemplateSpec) {},
		},
		"images of containers and of a restartable init container": {
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Image = "web:v2"
				t.Spec.Containers[1].Image = "log@sha256:abc"
				t.Spec.InitContainers[1].Image = "proxy:v2"
			},
			want: inplace.Change{
				Images:   map[string]string{"web": "web:v2", "log": "log@sha256:abc", "proxy": "proxy:v2"},
				Restarts: []string{"log", "proxy", "web"},
			},
		},
		"an image, and a default spelled out": {
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Image, t.Spec.DNSPolicy = "web:v2", corev1.DNSClusterFirst
			},
			want: inplace.Change{Images: map[string]string{"web": "web:v2"}, Restarts: []string{"web"}},
		},
		"labels and annotations": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Labels = map[string]string{"app": "shop", "new": ""}
				t.Annotations = nil
			},
			want: inplace.Change{
				Labels:      inplace.Keys{Set: map[string]string{"app": "shop", "new": ""}, Removed: []string{"tier"}},
				Annotations: inplace.Keys{Removed: []string{"note"}},
			},
		},
		"the controller's own keys": {
			before: func(t *corev1.PodTemplateSpec) {
				t.Labels["apps.rollset.dev/instance-id"] = "a"
			},
			edit: func(t *corev1.PodTemplateSpec) {
				delete(t.Labels, "apps.rollset.dev/instance-id")
				t.Labels["controller-revision-hash"] = "evil"
				t.Labels["apps.kubernetes.io/pod-index"] = "1"
				t.Labels["statefulset.kubernetes.io/pod-name"] = "x"
				t.Annotations["rollset.dev/x"] = "y"
				t.Annotations["a.rollset.dev/x"] = "y"
			},
		},
		"cpu and memory": {
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=1 memory=3Gi", "cpu=2 memory=4Gi")
			},
			want: inplace.Change{Resources: map[string]corev1.ResourceRequirements{
				"web": requirements("cpu=1 memory=3Gi", "cpu=2 memory=4Gi"),
			}},
		},
		"an image whose default is the policy so far": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Image, web(t).ImagePullPolicy = "web:v1", corev1.PullAlways },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Image, web(t).ImagePullPolicy = "web:latest", "" },
			want:   inplace.Change{Images: map[string]string{"web": "web:latest"}, Restarts: []string{"web"}},
		},
		"a request that is no longer spelled out": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=1 memory=1Gi", "cpu=1") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("memory=1Gi", "cpu=2") },
			want:   inplace.Change{Resources: map[string]corev1.ResourceRequirements{"web": requirements("cpu=2 memory=1Gi", "cpu=2")}},
		},
		"what changes the class of the containers, and not of the pod": {
			before: func(t *corev1.PodTemplateSpec) {
				onlyWeb(t).Resources = requirements("cpu=1 memory=1Gi", "cpu=2 memory=2Gi")
				t.Spec.Resources = new(requirements("cpu=1", ""))
			},
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=2 memory=2Gi", "cpu=2 memory=2Gi")
			},
			want: inplace.Change{Resources: map[string]corev1.ResourceRequirements{"web": requirements("cpu=2 memory=2Gi", "cpu=2 memory=2Gi")}},
		},
		"memory, where the policy restarts the container": {
			before: func(t *corev1.PodTemplateSpec) {
				web(t).ResizePolicy = []corev1.ContainerResizePolicy{
					{ResourceName: "cpu", RestartPolicy: corev1.NotRequired},
					{ResourceName: "memory", RestartPolicy: corev1.RestartContainer},
				}
			},
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=1 memory=1536Mi", "cpu=2 memory=2Gi")
			},
			want: inplace.Change{
				Resources: map[string]corev1.ResourceRequirements{"web": requirements("cpu=1 memory=1536Mi", "cpu=2 memory=2Gi")},
				Restarts:  []string{"web"},
			},
		},
		"cpu, where the policy restarts the container for memory": {
			before: func(t *corev1.PodTemplateSpec) {
				web(t).ResizePolicy = []corev1.ContainerResizePolicy{
					{ResourceName: "memory", RestartPolicy: corev1.RestartContainer},
				}
			},
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=1100m memory=1Gi", "cpu=2 memory=2Gi")
			},
			want: inplace.Change{Resources: map[string]corev1.ResourceRequirements{
				"web": requirements("cpu=1100m memory=1Gi", "cpu=2 memory=2Gi"),
			}},
		},
		"an image and resources of one container": {
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Image = "web:v2"
				web(t).Resources = requirements("cpu=500m memory=1Gi", "cpu=2 memory=2Gi")
			},
			want: inplace.Change{
				Images:    map[string]string{"web": "web:v2"},
				Resources: map[string]corev1.ResourceRequirements{"web": requirements("cpu=500m memory=1Gi", "cpu=2 memory=2Gi")},
				Restarts:  []string{"web"},
			},
		},
		"a limit that is the request too": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("", "cpu=1") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("", "cpu=2") },
			want: inplace.Change{Resources: map[string]corev1.ResourceRequirements{
				"web": requirements("cpu=2", "cpu=2"),
			}},
		},
		"a request that the limit implies": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=1", "cpu=1") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("", "cpu=1") },
		},
		"one more request": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=1", "") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=1 memory=1Gi", "memory=1Gi") },
			want: inplace.Change{Resources: map[string]corev1.ResourceRequirements{
				"web": requirements("cpu=1 memory=1Gi", "memory=1Gi"),
			}},
		},
		"quantities spelled otherwise": {
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=1000m memory=1073741824", "cpu=2000m memory=2048Mi")
			},
		},
		"what means nothing": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Name, t.Namespace = "x", "y"
				t.CreationTimestamp = metav1.Unix(1, 0)
				t.Finalizers = []string{}
				t.Spec.NodeSelector = map[string]string{}
				t.Spec.Volumes[0], t.Spec.Volumes[1] = t.Spec.Volumes[1], t.Spec.Volumes[0]
				web(t).Ports[0], web(t).Ports[1] = web(t).Ports[1], web(t).Ports[0]
				web(t).VolumeMounts = []corev1.VolumeMount{}
			},
		},
		"a label that no container reads": {
			before: func(t *corev1.PodTemplateSpec) {
				web(t).Env = []corev1.EnvVar{reads("metadata.labels['app']"), reads("metadata.name"), {Name: "X"}}
				t.Spec.Volumes[0].DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: files("metadata.annotations", "metadata.labels['app']")}
			},
			edit: func(t *corev1.PodTemplateSpec) { t.Labels["tier"] = "back" },
			want: inplace.Change{Labels: inplace.Keys{Set: map[string]string{"tier": "back"}}},
		},
		"an image, next to a volume with all labels": {
			before: func(t *corev1.PodTemplateSpec) {
				t.Spec.Volumes[0].DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: files("metadata.annotations", "metadata.labels")}
			},
			edit: func(t *corev1.PodTemplateSpec) { web(t).Image = "web:v2" },
			want: inplace.Change{Images: map[string]string{"web": "web:v2"}, Restarts: []string{"web"}},
		},
		"the tag latest, with a policy of its own": {
			before: func(t *corev1.PodTemplateSpec) { web(t).ImagePullPolicy = corev1.PullIfNotPresent },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Image = "web:latest" },
			want:   inplace.Change{Images: map[string]string{"web": "web:latest"}, Restarts: []string{"web"}},
		},
		"from latest to nothing, which is latest": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Image = "host:5000/web:latest" },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Image = "host:5000/web2" },
			want:   inplace.Change{Images: map[string]string{"web": "host:5000/web2"}, Restarts: []string{"web"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := template()
			if tc.before != nil {
				tc.before(from)
			}
			to := from.DeepCopy()
			tc.edit(to)
			from0, to0 := from.DeepCopy(), to.DeepCopy()
			got, cannot := inplace.Diff(from, to)
			if cannot != "" {
				t.Fatal("cannot:", cannot)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
			if metadataOnly := len(tc.want.Images)+len(tc.want.Resources) == 0; got.MetadataOnly() != metadataOnly {
				t.Errorf("MetadataOnly() = %v", got.MetadataOnly())
			}
			if restart := len(tc.want.Restarts) > 0; got.NeedsRestart() != restart {
				t.Errorf("NeedsRestart() = %v", got.NeedsRestart())
			}
			if diff := cmp.Diff(from0, from) + cmp.Diff(to0, to); diff != "" {
				t.Errorf("arguments were changed (-before +after):\n%s", diff)
			}
		})
	}
}

func reads(path string) corev1.EnvVar {
	return corev1.EnvVar{Name: "READS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func files(paths ...string) []corev1.DownwardAPIVolumeFile {
	items := []corev1.DownwardAPIVolumeFile{{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}
	for _, path := range paths {
		items = append(items, corev1.DownwardAPIVolumeFile{Path: "x", FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}})
	}
	return items
}

func TestDiffCannot(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, edit func(*corev1.PodTemplateSpec)
		want         string
	}{
		"a finalizer": {
			edit: func(t *corev1.PodTemplateSpec) { t.Finalizers = []string{"example.com/f"} },
			want: "metadata.finalizers: added",
		},
		"a number of the pod": {
			before: func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = new(int64(30)) },
			edit:   func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = new(int64(60)) },
			want:   "spec.terminationGracePeriodSeconds: changed",
		},
		"a switch of the pod": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.HostNetwork = true },
			want: "spec.hostNetwork: changed",
		},
		"a field that was not there": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Affinity = &corev1.Affinity{} },
			want: "spec.affinity: added",
		},
		"a field deep down": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).ReadinessProbe.HTTPGet.Path = "/ready" },
			want: "spec.containers[web].readinessProbe.httpGet.path: changed",
		},
		"a port of a probe": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).ReadinessProbe.HTTPGet.Port = intstr.FromInt32(1) },
			want: "spec.containers[web].readinessProbe.httpGet.port: changed",
		},
		"a field that went": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).ReadinessProbe = nil },
			want: "spec.containers[web].readinessProbe: removed",
		},
		"a port": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).Ports[1].ContainerPort = 99 },
			want: "spec.containers[web].ports[metrics].containerPort: changed",
		},
		"ports without names": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Ports = []corev1.ContainerPort{{ContainerPort: 1}} },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Ports[0].ContainerPort = 2 },
			want:   "spec.containers[web].ports: changed",
		},
		"a command": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Command = []string{"a"} },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Command = []string{"b"} },
			want:   "spec.containers[web].command: changed",
		},
		"an environment variable": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).Env[1].Value = "3" },
			want: "spec.containers[web].env[B].value: changed",
		},
		"the order of environment variables": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).Env[0], web(t).Env[1] = web(t).Env[1], web(t).Env[0] },
			want: "spec.containers[web].env: reordered",
		},
		"a node selector": {
			before: func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"a": "1", "b": "1"} },
			edit:   func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"a": "1", "b": "2", "c": "3"} },
			want:   "spec.nodeSelector[b]: changed",
		},
		"one more key": {
			before: func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"b": "1"} },
			edit:   func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"a": "1", "b": "1"} },
			want:   "spec.nodeSelector[a]: added",
		},
		"one key less": {
			before: func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"a": "1", "b": "1"} },
			edit:   func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"a": "1"} },
			want:   "spec.nodeSelector[b]: removed",
		},
		"the first of several": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Labels["app"], web(t).Image = "x", "web:v2"
				t.Spec.Containers[1].Args = []string{"a"}
				t.Spec.InitContainers[1].Args = []string{"a"}
			},
			want: "spec.initContainers[proxy].args: added",
		},
		"the image of an ordinary init container": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[0].Image = "prepare:v2" },
			want: "spec.initContainers[prepare].image: changed",
		},
		"an init container that becomes restartable": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			},
			want: "spec.initContainers[prepare].restartPolicy: added",
		},
		"no image": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).Image = "" },
			want: "spec.containers[web].image: removed",
		},
		"one more container": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers = append([]corev1.Container{{Name: "new"}}, t.Spec.Containers...)
			},
			want: "spec.containers[new]: added",
		},
		"one container less": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers = t.Spec.Containers[1:] },
			want: "spec.containers[web]: removed",
		},
		"the order of containers": {
			edit: func(t *corev1.PodTemplateSpec) {
				c := t.Spec.Containers
				c[0], c[1] = c[1], c[0]
				c[0].Image = "log:v2"
			},
			want: "spec.containers: reordered",
		},
		"the resources of an init container": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Resources = requirements("cpu=1", "") },
			want: "spec.initContainers[proxy].resources.requests: added",
		},
		"a resource that is neither cpu nor memory": {
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=1 memory=2Gi", "cpu=2 memory=2Gi ephemeral-storage=1Gi")
			},
			want: "spec.containers[web].resources.limits[ephemeral-storage]: added",
		},
		"a limit less": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=1 memory=1Gi", "cpu=3") },
			want: "spec.containers[web].resources.limits[memory]: removed",
		},
		"a request less": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=1 memory=1Gi", "") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=2", "") },
			want:   "spec.containers[web].resources.requests[memory]: removed",
		},
		"a port of the node": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Ports = []corev1.ContainerPort{{ContainerPort: 80}} },
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
			},
			want: "spec.containers[web].ports: changed",
		},
		"from Burstable to Guaranteed": {
			before: func(t *corev1.PodTemplateSpec) {
				onlyWeb(t).Resources = requirements("cpu=1 memory=1Gi", "cpu=2 memory=2Gi")
			},
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=2 memory=2Gi", "cpu=2 memory=2Gi")
			},
			want: "spec.containers[web].resources: the QoS class would change from Burstable to Guaranteed",
		},
		"from Burstable to Guaranteed with no resources of the pod": {
			before: func(t *corev1.PodTemplateSpec) {
				onlyWeb(t).Resources = requirements("cpu=1 memory=1Gi", "cpu=2 memory=2Gi")
				t.Spec.Resources = &corev1.ResourceRequirements{}
			},
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).Resources = requirements("cpu=2 memory=2Gi", "cpu=2 memory=2Gi")
			},
			want: "spec.containers[web].resources: the QoS class would change from Burstable to Guaranteed",
		},
		"from a limit of one resource to Guaranteed": {
			before: func(t *corev1.PodTemplateSpec) { onlyWeb(t).Resources = requirements("", "memory=1Gi") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("", "cpu=1 memory=1Gi") },
			want:   "spec.containers[web].resources: the QoS class would change from Burstable to Guaranteed",
		},
		"from BestEffort to Burstable": {
			before: func(t *corev1.PodTemplateSpec) { onlyWeb(t).Resources = requirements("", "") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("cpu=1", "") },
			want:   "spec.containers[web].resources: the QoS class would change from BestEffort to Burstable",
		},
		"from Guaranteed to Burstable": {
			before: func(t *corev1.PodTemplateSpec) { onlyWeb(t).Resources = requirements("", "cpu=1 memory=1Gi") },
			edit:   func(t *corev1.PodTemplateSpec) { web(t).Resources = requirements("memory=512Mi", "cpu=1 memory=1Gi") },
			want:   "spec.containers[web].resources: the QoS class would change from Guaranteed to Burstable",
		},
		"the resources of the pod": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Resources = new(requirements("cpu=1", "")) },
			want: "spec.resources: added",
		},
		"a resize policy": {
			edit: func(t *corev1.PodTemplateSpec) {
				web(t).ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "RestartContainer"}}
			},
			want: "spec.containers[web].resizePolicy: added",
		},
		"a label that a variable reads": {
			before: func(t *corev1.PodTemplateSpec) { web(t).Env = []corev1.EnvVar{reads("metadata.labels['tier']")} },
			edit:   func(t *corev1.PodTemplateSpec) { t.Labels["tier"] = "back" },
			want:   "metadata.labels[tier]: spec.containers[web].env[READS] reads it",
		},
		"an annotation that a variable of an init container reads": {
			before: func(t *corev1.PodTemplateSpec) {
				t.Spec.InitContainers[0].Env = []corev1.EnvVar{reads("metadata.annotations['note']")}
			},
			edit: func(t *corev1.PodTemplateSpec) { delete(t.Annotations, "note") },
			want: "metadata.annotations[note]: spec.initContainers[prepare].env[READS] reads it",
		},
		"a label that a volume reads": {
			before: func(t *corev1.PodTemplateSpec) {
				t.Spec.Volumes[0].DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: files("metadata.labels['app']")}
			},
			edit: func(t *corev1.PodTemplateSpec) { t.Labels["app"] = "x" },
			want: "metadata.labels[app]: spec.volumes[a] reads it",
		},
		"a volume that reads all labels": {
			before: func(t *corev1.PodTemplateSpec) {
				t.Spec.Volumes[0].DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: files("metadata.labels")}
			},
			edit: func(t *corev1.PodTemplateSpec) { t.Labels["b"], t.Labels["a"] = "x", "x" },
			want: "metadata.labels[a]: spec.volumes[a] reads it",
		},
		"a projected volume that reads all annotations": {
			before: func(t *corev1.PodTemplateSpec) {
				t.Spec.Volumes[1].Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{}, {DownwardAPI: &corev1.DownwardAPIProjection{Items: files("metadata.annotations")}},
				}}
			},
			edit: func(t *corev1.PodTemplateSpec) { t.Annotations = nil },
			want: "metadata.annotations[note]: spec.volumes[b] reads it",
		},
		"a variable that reads the revision": {
			before: func(t *corev1.PodTemplateSpec) {
				web(t).Env = []corev1.EnvVar{reads("metadata.labels['controller-revision-hash']")}
			},
			edit: func(t *corev1.PodTemplateSpec) { web(t).Image = "web:v2" },
			want: "metadata.labels[controller-revision-hash]: spec.containers[web].env[READS] reads it",
		},
		"to the tag latest": {
			edit: func(t *corev1.PodTemplateSpec) { web(t).Image = "web:latest" },
			want: "spec.containers[web].imagePullPolicy: the new image changes the default from IfNotPresent to Always",
		},
		"from no tag to a digest": {
			before: func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Image = "host:5000/proxy" },
			edit:   func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Image = "host:5000/proxy@sha256:abc" },
			want:   "spec.initContainers[proxy].imagePullPolicy: the new image changes the default from Always to IfNotPresent",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := template()
			if tc.before != nil {
				tc.before(from)
			}
			to := from.DeepCopy()
			tc.edit(to)
			got, cannot := inplace.Diff(from, to)
			if cannot != tc.want {
				t.Errorf("cannot is %q, want %q", cannot, tc.want)
			}
			if diff := cmp.Diff(inplace.Change{}, got); diff != "" {
				t.Errorf("change (-want +got):\n%s", diff)
			}
		})
	}
}

// onlyWeb removes all other containers.
func onlyWeb(t *corev1.PodTemplateSpec) *corev1.Container {
	t.Spec.InitContainers, t.Spec.Containers = nil, t.Spec.Containers[:1]
	return web(t)
}

func TestDiffWithoutTemplate(t *testing.T) {
	t.Parallel()
	for _, templates := range [][2]*corev1.PodTemplateSpec{{nil, template()}, {template(), nil}, {nil, nil}} {
		if _, cannot := inplace.Diff(templates[0], templates[1]); cannot != "the template that the pod was made from is lost" {
			t.Errorf("cannot is %q", cannot)
		}
	}
}

// TestChangeInWords describes changes. One that writes no content is only the proof of an earlier one.
func TestChangeInWords(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]inplace.Change{
		"images of a, b; resources of c": {Images: map[string]string{"b": "y", "a": "x"}, Resources: map[string]corev1.ResourceRequirements{"c": {}}},
		"its update is done":             {Restarted: true},
		"metadata":                       {Restarted: true, Labels: inplace.Keys{Set: map[string]string{"a": "b"}, Removed: []string{"c"}}},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestDifferenceOfNames compares lists whose elements cannot be told apart.
func TestDifferenceOfNames(t *testing.T) {
	t.Parallel()
	of := func(names ...string) *corev1.PodSpec {
		spec := &corev1.PodSpec{}
		for _, name := range names {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name})
		}
		return spec
	}
	for _, tt := range []struct {
		have, want *corev1.PodSpec
		difference string
	}{
		{of("a", "b"), of("a", "a"), "spec.volumes: changed"},
		{of("a", "a"), of("a", "b"), "spec.volumes: changed"},
		{of("a", "b"), of("b", "a"), "spec.volumes: reordered"},
		{of("a", "b"), of("a"), "spec.volumes[b]: removed"},
	} {
		if got := inplace.Difference("spec", tt.have, tt.want); got != tt.difference {
			t.Errorf("got %q, want %q", got, tt.difference)
		}
	}
}

// TestNeedsResize looks for resources that a pod does not have yet.
func TestNeedsResize(t *testing.T) {
	t.Parallel()
	p := pod(template(), "r1")
	has := p.Spec.Containers[0].Resources
	for name, tt := range map[string]struct {
		change inplace.Change
		want   bool
	}{
		"none":            {inplace.Change{}, false},
		"what it has":     {inplace.Change{Resources: map[string]corev1.ResourceRequirements{"web": has}}, false},
		"others":          {inplace.Change{Resources: map[string]corev1.ResourceRequirements{"web": requirements("cpu=7", "")}}, true},
		"of no container": {inplace.Change{Resources: map[string]corev1.ResourceRequirements{"nope": requirements("cpu=7", "")}}, false},
	} {
		if got := tt.change.NeedsResize(p); got != tt.want {
			t.Errorf("%s: needs a resize: %t", name, got)
		}
	}
}
