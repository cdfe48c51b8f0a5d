// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/adoption"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/testing/settled"
)

// fullPod is a pod of two containers as an API server shows it, with all that it and a kubelet put in.
func fullPod(set *v1beta1.RollSet, i int) *corev1.Pod {
	pod := settled.Pod(set, "web-5d8c7f9b46", i)
	pod.UID = types.UID(fmt.Sprintf("0b7c8f3e-5a52-4b55-9d0c-%012d", i))
	pod.ResourceVersion = strconv.Itoa(100_000 + i)
	pod.Labels["app.kubernetes.io/name"], pod.Labels["app.kubernetes.io/part-of"], pod.Labels["team"] = "web", "shop", "storefront"
	pod.Annotations = map[string]string{
		"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
		"cni.projectcalico.org/podIP": fmt.Sprintf("10.%d.%d.%d/32", i>>16&255, i>>8&255, i&255),
	}
	token := fmt.Sprintf("kube-api-access-%05d", i)
	spec := &pod.Spec
	spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "web-config"}, DefaultMode: new(int32(420)),
		}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(420)),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
				}}},
			},
		}}},
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: "HTTP"}},
			TimeoutSeconds:   1,
			PeriodSeconds:    10,
			SuccessThreshold: 1,
			FailureThreshold: 3,
		}
	}
	for j := range spec.Containers {
		c := &spec.Containers[j]
		c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
		c.Env = []corev1.EnvVar{
			{Name: "MODE", Value: "production"},
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		}
		amounts := func() corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
		}
		c.Resources = corev1.ResourceRequirements{Requests: amounts(), Limits: amounts()}
		c.VolumeMounts = []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/web", ReadOnly: true},
			{Name: "scratch", MountPath: "/tmp"},
			{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		}
		c.ReadinessProbe, c.LivenessProbe = probe("/ready"), probe("/alive")
		c.TerminationMessagePath, c.TerminationMessagePolicy, c.ImagePullPolicy = "/dev/termination-log", corev1.TerminationMessageReadFile, corev1.PullIfNotPresent
		c.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false)}

		status := &pod.Status.ContainerStatuses[j]
		status.ContainerID = fmt.Sprintf("containerd://%064d", i)
		status.ImageID = "example.com/app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
		status.AllocatedResources = amounts()
		status.Resources = &corev1.ResourceRequirements{Requests: amounts(), Limits: amounts()}
		status.User = &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 1000, GID: 1000, SupplementalGroups: []int64{1000}}}
		for _, mount := range c.VolumeMounts {
			status.VolumeMounts = append(status.VolumeMounts, corev1.VolumeMountStatus{
				Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly, RecursiveReadOnly: new(corev1.RecursiveReadOnlyDisabled),
			})
		}
	}
	spec.RestartPolicy, spec.DNSPolicy, spec.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "web", "web"
	spec.TerminationGracePeriodSeconds, spec.Priority, spec.EnableServiceLinks = new(int64(30)), new(int32(0)), new(true)
	spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(1000))}
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
		})
	}
	status := &pod.Status
	status.HostIP, status.PodIP = "192.168.0.7", "10.0.0.1"
	status.HostIPs, status.PodIPs = []corev1.HostIP{{IP: status.HostIP}}, []corev1.PodIP{{IP: status.PodIP}}
	status.StartTime, status.QOSClass = new(metav1.Unix(100, 0)), corev1.PodQOSBurstable
	for _, manager := range []string{"rollset", "kubelet"} {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			Time: new(metav1.Unix(100, 0)), FieldsV1: metav1.NewFieldsV1(strings.Repeat("f", 2_000)),
		})
	}
	return pod
}

// waiting makes a pod one that waits for a node.
func waiting(p *corev1.Pod) {
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}
}

// TestMemoryOfPods fills the store of a cache with pods as they come from an API server, and measures what stays.
func TestMemoryOfPods(t *testing.T) { // not parallel: memory is measured for the whole process
	const n = 2_000
	ours := settled.Set(n)
	tests := map[string]struct {
		change func(*corev1.Pod)
		most   int // bytes a pod
	}{
		"of a set":                     {change: func(*corev1.Pod) {}, most: 3_500},
		"of a set, waiting for a node": {change: waiting, most: 3_200},
		"of a ReplicaSet": {change: func(p *corev1.Pod) {
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "apps/v1", "ReplicaSet"
		}, most: 1_200},
		"of a ReplicaSet over many zones": {change: func(p *corev1.Pod) {
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "apps/v1", "ReplicaSet"
			p.Labels[corev1.LabelTopologyZone], p.Labels[corev1.LabelTopologyRegion] = "zone-"+p.Name[len(p.Name)-1:], "region"
		}, most: 1_200},
		"without an owner": {change: func(p *corev1.Pod) { p.OwnerReferences = nil }, most: 2_600},
		"without an owner, one of many": {change: func(p *corev1.Pod) {
			p.OwnerReferences, p.Labels = nil, map[string]string{"app": "batch", "team": "storefront"}
		}, most: 2_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
				toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
				"field:" + ControllerIndex: func(o any) (values []string, err error) { // as controller-runtime has it
					if pod, ok := o.(client.Object); ok {
						for _, value := range controllerOf(pod) {
							values = append(values, "default/"+value, "__all_namespaces/"+value)
						}
					}
					return values, nil
				},
			})
			trim := &Trim{}
			before := liveHeap()
			for i := range n {
				full := fullPod(ours, i)
				tt.change(full)
				bytes, err := full.Marshal()
				if err != nil {
					t.Fatal(err)
				}
				decoded := &corev1.Pod{}
				if err := decoded.Unmarshal(bytes); err != nil {
					t.Fatal(err)
				}
				trimmed, err := trim.Pod(decoded)
				if err != nil {
					t.Fatal(err)
				}
				if err := store.Add(trimmed); err != nil {
					t.Fatal(err)
				}
			}
			got := int(liveHeap()-before) / n
			t.Logf("%d bytes a pod", got)
			if got > tt.most {
				t.Errorf("a pod takes %d bytes, want %d at most", got, tt.most)
			}
			runtime.KeepAlive(store)
		})
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestTrim trims pods with new specs, and pods that share a spec with an earlier one.
func TestTrim(t *testing.T) {
	t.Parallel()
	set := settled.Set(1)
	set.Spec.PodIdentity = v1beta1.RandomIdentity
	tests := map[string]func(*corev1.Pod){
		"of the set":           func(*corev1.Pod) {},
		"with another spec":    func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Value = "debug" },
		"with another volume":  func(p *corev1.Pod) { p.Spec.Volumes[0].ConfigMap.Name = "other" },
		"with more containers": func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "late"}) },
		"elsewhere":            func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.Hostname = "node-7", "web-7" },
		"with a claim": func(p *corev1.Pod) {
			claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-7"}
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
		},
		"with other resources": func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		},
		"waiting for a node": waiting,
		"unready":            func(p *corev1.Pod) { p.Status.Conditions[3].Status = corev1.ConditionFalse },
		"with a container that is not ready": func(p *corev1.Pod) { // the kubelet writes no such pod
			p.Status.Conditions[2].Status = corev1.ConditionFalse
		},
		"without an owner":                func(p *corev1.Pod) { p.OwnerReferences = nil },
		"without an owner, ended":         func(p *corev1.Pod) { p.OwnerReferences, p.Status.Phase = nil, corev1.PodFailed },
		"without a controller, but owned": func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
		"without an owner, with no label": func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, nil },
		"without an owner, terminating":   func(p *corev1.Pod) { p.OwnerReferences, p.DeletionTimestamp = nil, new(metav1.Unix(300, 0)) },
		"of a ReplicaSet": func(p *corev1.Pod) {
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "apps/v1", "ReplicaSet"
		},
		"of another kind of ours":   func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "RollSetClass" },
		"of a RollSet of elsewhere": func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "example.com/v1" },
	}
	for name, trimming := range map[string]*Trim{"metadata of other controllers' pods": {}, "other controllers' pods": {Whole: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testTrim(t, set, trimming, tests)
		})
	}
}

func testTrim(t *testing.T, set *v1beta1.RollSet, trimming *Trim, tests map[string]func(*corev1.Pod)) {
	t.Helper()
	known, orphan := fullPod(set, 0), fullPod(set, 2)
	orphan.OwnerReferences = nil
	for _, first := range []*corev1.Pod{known, orphan} {
		if _, err := trimming.Pod(first); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := fullPod(set, 1)
			change(full)
			out, err := trimming.Pod(full.DeepCopy())
			kept, ok := out.(client.Object)
			if err != nil || !ok {
				t.Fatalf("Pod() = %T, %v", out, err)
			}
			if got, want := metav1.GetControllerOf(kept), metav1.GetControllerOf(full); !cmp.Equal(got, want) {
				t.Errorf("the controller is %v, want %v", got, want)
			}
			if got, want := podcontrol.TakenBy(kept), podcontrol.TakenBy(full); got != want {
				t.Errorf("whose it is: %q, want %q", got, want)
			}
			if diff := cmp.Diff(controllerOf(full), controllerOf(kept)); diff != "" {
				t.Errorf("its index (-want +got):\n%s", diff)
			}
			if again, err := trimming.Pod(kept.DeepCopyObject()); err != nil || !cmp.Equal(again, out) {
				t.Errorf("trimmed once more it is another (-want +got):\n%s", cmp.Diff(out, again))
			}
			trimmed, ok := kept.(*corev1.Pod)
			if !ok {
				if owner := metav1.GetControllerOf(full); owner == nil || isSet(owner) || trimming.Whole {
					t.Errorf("Pod() = %T", out)
				}
				return
			}
			switch owner := metav1.GetControllerOf(full); {
			case owner == nil:
				snap := &snapshot.Set{Settings: snapshot.Settings{Name: set.Name, Spec: &set.Spec}}
				if got, want := adoption.Adoptable(snap, trimmed), adoption.Adoptable(snap, full); got != want {
					t.Errorf("adoptable = %t, want %t", got, want)
				}
				if diff := cmp.Diff(full.OwnerReferences, trimmed.OwnerReferences); diff != "" {
					t.Errorf("its owners, which adoption adds to (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(full.Labels, trimmed.Labels); diff != "" {
					t.Errorf("its labels, which selectors match (-want +got):\n%s", diff)
				}
			case isSet(owner):
				scheduled, containersReady := podstate.Scheduled(full), podstate.ContainersReady(full)
				full.ManagedFields = nil
				full.Status.Conditions = slices.DeleteFunc(full.Status.Conditions, saysNothing)
				if _, ready := podstate.ReadySince(full); ready {
					full.Status.Conditions = slices.DeleteFunc(full.Status.Conditions, followsFromReady)
				}
				if podstate.Scheduled(trimmed) != scheduled || podstate.ContainersReady(trimmed) != containersReady {
					t.Errorf("Scheduled = %t, ContainersReady = %t; want %t, %t",
						podstate.Scheduled(trimmed), podstate.ContainersReady(trimmed), scheduled, containersReady)
				}
				podstate.PlainToken(&full.Spec)
				if diff := cmp.Diff(full.ObjectMeta, trimmed.ObjectMeta) + cmp.Diff(full.Spec, trimmed.Spec); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if !sameStatus(&full.Status, &trimmed.Status) {
					t.Errorf("its status differs where decisions read it: %v", trimmed.Status)
				}
			}
		})
	}
}

// BenchmarkDecode decodes a pod of a set, as an informer does at each event, and BenchmarkTrim trims it as well.
func BenchmarkDecode(b *testing.B) { decode(b, func(pod any) (any, error) { return pod, nil }) }

func BenchmarkTrim(b *testing.B) { decode(b, new(Trim).Pod) }

func decode(b *testing.B, transform toolscache.TransformFunc) {
	b.Helper()
	bytes, err := fullPod(settled.Set(1), 1).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(bytes); err != nil {
			b.Fatal(err)
		}
		if _, err := transform(pod); err != nil {
			b.Fatal(err)
		}
	}
}
