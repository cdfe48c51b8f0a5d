// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
)

// now returns the time of all forecasts in the tests.
func now() time.Time { return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC) }

// web returns a set of five pods with ordinals.
func web(change ...func(*v1beta1.RollSetSpec)) *v1beta1.RollSet {
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	set.Spec.Replicas = new(int32(5))
	set.Spec.PodIdentity = v1beta1.OrdinalIdentity
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	for _, f := range change {
		f(&set.Spec)
	}
	return set
}

func image(name string) func(*v1beta1.RollSetSpec) {
	return func(s *v1beta1.RollSetSpec) { s.Template.Spec.Containers[0].Image = name }
}

func inPlace(s *v1beta1.RollSetSpec) {
	s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePod
}

func unavailable(n int) func(*v1beta1.RollSetSpec) {
	return func(s *v1beta1.RollSetSpec) {
		s.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt(n))
	}
}

// storage gives each pod a claim.
func storage(size string) func(*v1beta1.RollSetSpec) {
	return func(s *v1beta1.RollSetSpec) {
		s.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		claim := &s.VolumeClaimTemplates[0].Spec
		claim.StorageClassName = new("standard")
		claim.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

// forecastOf returns the forecast of an edit of a settled set.
func forecastOf(t *testing.T, before, after *v1beta1.RollSet) *Forecast {
	t.Helper()
	in, err := Offline(t.Context(), before, after, now())
	if err != nil {
		t.Fatal(err)
	}
	f, err := Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// verbsOf returns the verbs and names of writes to pods.
func verbsOf(f *Forecast) string {
	var words []string
	for _, w := range f.Writes {
		if subresource, ok := strings.CutPrefix(w.Resource, "pods"); ok {
			words = append(words, w.Verb+subresource+" "+w.Name)
		}
	}
	return strings.Join(words, ", ")
}

func TestForecasts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, after *v1beta1.RollSet
		wantClass     Class
		wantField     string
		wantPods      string
		wantLowest    int
		wantBroken    string
	}{
		"a new image recreates pods, highest ordinal first": {
			before: web(), after: web(image("web:2")),
			wantClass: Recreate, wantField: "spec.template.spec.containers[app].image",
			wantPods:   "delete web-4, create web-4, delete web-3, create web-3, delete web-2, create web-2, delete web-1, create web-1, delete web-0, create web-0",
			wantLowest: 4, wantBroken: "web-4",
		},
		"an image whose tag means trouble to the model of the kubelet is an image like others": {
			before: web(image("web:not-broken-again")), after: web(image("web:crash-fix")),
			wantClass: Recreate, wantField: "spec.template.spec.containers[app].image",
			wantPods:   "delete web-4, create web-4, delete web-3, create web-3, delete web-2, create web-2, delete web-1, create web-1, delete web-0, create web-0",
			wantLowest: 4, wantBroken: "web-4",
		},
		"more pods at a time break more": {
			before: web(unavailable(2)), after: web(unavailable(2), image("web:2")),
			wantClass: Recreate, wantField: "spec.template.spec.containers[app].image",
			wantPods:   "delete web-4, delete web-3, create web-3, create web-4, delete web-2, create web-2, delete web-1, create web-1, delete web-0, create web-0",
			wantLowest: 3, wantBroken: "web-3, web-4",
		},
		"a label is changed in running pods": {
			before: web(inPlace), after: web(inPlace, func(s *v1beta1.RollSetSpec) { s.Template.Labels["tier"] = "front" }),
			wantClass: Metadata, wantField: "spec.template.metadata.labels",
			wantPods:   "patch web-4, patch web-3, patch web-2, patch web-1, patch web-0",
			wantLowest: 5,
		},
		"an image is changed in running pods, behind a gate": {
			before:    web(inPlace, func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(2)) }),
			after:     web(inPlace, image("web:2"), func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(2)) }),
			wantClass: InPlace, wantField: "spec.template.spec.containers[app].image",
			wantPods: "patch/status web-1, patch web-1, patch/status web-1, " +
				"patch/status web-0, patch web-0, patch/status web-0",
			wantLowest: 1, wantBroken: "web-1",
		},
		"an environment variable needs new pods, whatever the policy": {
			before: web(inPlace, func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(1)) }),
			after: web(inPlace, func(s *v1beta1.RollSetSpec) {
				s.Replicas = new(int32(1))
				s.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
			}),
			wantClass: Recreate, wantField: "spec.template.spec.containers[app].env",
			wantPods: "delete web-0, create web-0, patch/status web-0", wantBroken: "web-0",
		},
		"fewer pods go from the top": {
			before: web(), after: web(func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(3)) }),
			wantClass: Scale, wantField: "spec.replicas", wantPods: "delete web-4, delete web-3", wantLowest: 3,
		},
		"a partition keeps pods at the current revision": {
			before: web(), after: web(image("web:2"), func(s *v1beta1.RollSetSpec) {
				s.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(4))
			}),
			wantClass: Recreate, wantField: "spec.template.spec.containers[app].image",
			wantPods: "delete web-4, create web-4", wantLowest: 4, wantBroken: "web-4",
		},
		"a field that is written out as the default does nothing": {
			before: web(), after: web(func(s *v1beta1.RollSetSpec) { s.RevisionHistoryLimit = new(int32(10)) }),
			wantClass: Nothing, wantLowest: 5,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := forecastOf(t, test.before, test.after)
			got := []any{f.Class, f.Field, verbsOf(f), f.LowestAvailable, strings.Join(f.IfBroken.BrokenPods, ", "), f.WaitsFor == "" || f.Class == Recreate}
			want := []any{test.wantClass, test.wantField, test.wantPods, test.wantLowest, test.wantBroken, true}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("class, field, writes, lowest, broken, done (-want +got):\n%s", diff)
			}
		})
	}
}

// onSimulatedNode gives a pod the status that the nodes of a local cluster report.
func onSimulatedNode(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pod.Status = corev1.PodStatus{}
	model, at := kubelet.Model{}, pod.CreationTimestamp.Time
	for memory, n := (kubelet.Memory{}), 0; n < 20; n++ {
		out := model.Step(pod, memory, at)
		memory, at = out.Memory, at.Add(out.Next)
		if out.Status != nil {
			pod.Status = *out.Status
		}
	}
	if _, ready := podstate.ReadySince(pod); !ready {
		t.Fatalf("%s is not ready: %+v", pod.Name, pod.Status)
	}
}

// Pods that run already are not new ones, whatever their revision.
func TestPodsThatRunDoNotBreak(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after      *v1beta1.RollSet
		wantLowest int
		wantBroken string
	}{
		"more pods":    {web(storage("1Gi"), func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(6)) }), 5, "web-5"},
		"more storage": {web(storage("2Gi")), 5, ""},
	} {
		in, err := Offline(t.Context(), web(storage("1Gi")), test.after, now())
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range among[*corev1.Pod](in.Objects) {
			onSimulatedNode(t, pod)
		}
		f, err := Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.IfBroken.BrokenPods, ", "); got != test.wantBroken || f.IfBroken.LowestAvailable != test.wantLowest {
			t.Errorf("%s: %q break and %d stay available, want %q and %d", name, got, f.IfBroken.LowestAvailable, test.wantBroken, test.wantLowest)
		}
	}
}

// Pods on nodes that leave are replaced on nodes that stay, and a budget follows the edit.
func TestNodesThatLeave(t *testing.T) {
	t.Parallel()
	drained := func(s *v1beta1.RollSetSpec) {
		s.Disruption = &v1beta1.Disruption{OnDrain: v1beta1.ReplaceOnDrain, PodDisruptionBudget: v1beta1.AutoBudget}
	}
	for name, test := range map[string]struct {
		tolerations []corev1.Toleration
		want        string
		wantClass   Class
	}{
		"pods go to the node that stays": {
			want:      "create poddisruptionbudgets web, delete pods web-4, create pods web-4, delete pods web-1, create pods web-1",
			wantClass: Recreate,
		},
		"pods that tolerate the cordon stay": {
			tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			want:        "create poddisruptionbudgets web", wantClass: Disruption,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tolerant := func(s *v1beta1.RollSetSpec) { s.Template.Spec.Tolerations = test.tolerations }
			in, err := Offline(t.Context(), web(tolerant), web(tolerant, drained), now())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"node-a", "node-b", "node-c", "node-d"} {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
				node.Spec.Unschedulable = name == "node-b"
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				in.Objects = append(in.Objects, node)
			}
			f, err := Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			var writes []string
			for _, w := range f.Writes {
				writes = append(writes, w.Verb+" "+w.Resource+" "+w.Name)
			}
			if got := strings.Join(writes, ", "); got != test.want || f.Class != test.wantClass {
				t.Errorf("class %s, writes %s; want %s, %s", f.Class, got, test.wantClass, test.want)
			}
			if text := f.Writes[0].Reason; !strings.Contains(text, "minAvailable") {
				t.Errorf("the budget is created because of %q", text)
			}
		})
	}
}

// Claims grow for as many pods at a time as may be unavailable, and the next ones after that.
func TestClaimsGrow(t *testing.T) {
	t.Parallel()
	in, err := Offline(t.Context(), web(storage("1Gi")), web(storage("2Gi")), now())
	if err != nil {
		t.Fatal(err)
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard", UID: "class"}, AllowVolumeExpansion: new(true)}
	in.Objects = append(in.Objects, class)
	f, err := Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range f.Writes {
		names = append(names, w.Verb+" "+w.Name)
	}
	want := "patch data-web-4, patch data-web-3, patch data-web-2, patch data-web-1, patch data-web-0"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRefusedTemplateTouchesNoPod(t *testing.T) {
	t.Parallel()
	in, err := Offline(t.Context(), web(), web(image("web:2")), now())
	if err != nil {
		t.Fatal(err)
	}
	in.Refusal = `pods "web-plan0" is forbidden: no images from there`
	f, err := Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := verbsOf(f); got != "" {
		t.Errorf("pods are written: %s", got)
	}
	if !strings.Contains(f.WaitsFor, "no images from there") || strings.Contains(f.WaitsFor, "plan0") {
		t.Errorf("it waits for %q", f.WaitsFor)
	}
}

func TestSampleCompletesNewPods(t *testing.T) {
	t.Parallel()
	in, err := Offline(t.Context(), web(), web(image("web:2")), now())
	if err != nil {
		t.Fatal(err)
	}
	in.Sample = SamplePod(in.After)
	in.Sample.Spec.Containers = append(in.Sample.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
	r, err := simulate(t.Context(), in, Surroundings{
		Kubelet: newPodKubelet(nil, measure(nil, &in.After.Spec.Template.Spec), "", in.Now), Nodes: []string{"a"}, Refuses: schedulerOf(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range among[*corev1.Pod](r.store.Objects()) {
		if len(pod.Spec.Containers) != 2 || pod.Spec.Hostname != pod.Name {
			t.Errorf("%s has %d containers and the hostname %s", pod.Name, len(pod.Spec.Containers), pod.Spec.Hostname)
		}
	}
}

func TestTimesAreThoseOfTheNewestPods(t *testing.T) {
	t.Parallel()
	pod := func(name string, created, running, ready int, restarts int32) *corev1.Pod {
		at := func(s int) metav1.Time { return metav1.NewTime(now().Add(time.Duration(s) * time.Second)) }
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(created)}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(ready)}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(running)}},
		}}
		return p
	}
	pods := []*corev1.Pod{pod("a", 0, 4, 10, 0), pod("b", 10, 16, 30, 0), pod("c", 20, 28, 36, 0), pod("d", 30, 500, 900, 3)}
	got := measure(pods, &corev1.PodSpec{})
	want := Times{Start: 6 * time.Second, Ready: 8 * time.Second, Stop: assumedStop, Pods: 3}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}

func TestStuckPodsStayStuckUntilReplaced(t *testing.T) {
	t.Parallel()
	in, err := Offline(t.Context(), web(), web(), now())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range among[*corev1.Pod](in.Objects) {
		if pod.Name == "web-2" {
			apiserver.SetPodCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now())})
			pod.Status.ContainerStatuses[0].Ready = false
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}
	}
	f, err := Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Writes) > 0 || f.LowestAvailable != 4 || !strings.Contains(f.WaitsFor, "web-2") {
		t.Errorf("writes %v, lowest %d, waits for %q", f.Writes, f.LowestAvailable, f.WaitsFor)
	}
	in.After = web(image("web:2"))
	in.After.UID, in.After.ResourceVersion = in.Before.UID, in.Before.ResourceVersion
	if f, err = Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if want := "delete web-2, create web-2, delete web-4, create web-4"; !strings.HasPrefix(verbsOf(f), want) {
		t.Errorf("writes %s, want first %s", verbsOf(f), want)
	}
}

func TestJSONHasTheFieldsOfTheContract(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := forecastOf(t, web(), web(image("web:2"))).JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"set", "class", "field", "writes", "lowestAvailable", "floor", "mostPods", "seconds", "ifBroken", "cannotKnow", "inTheWay"} {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if len(got) != 11 {
		t.Errorf("%d fields, want 11", len(got))
	}
}

func TestTextFoldsStepsThatRepeat(t *testing.T) {
	t.Parallel()
	hundred := func(s *v1beta1.RollSetSpec) { s.Replicas = new(int32(100)) }
	f := forecastOf(t, web(hundred), web(hundred, image("web:2")))
	var folded, wide bytes.Buffer
	if err := errors.Join(f.Text(&folded, false), f.Text(&wide, true)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(folded.String(), "\n"); n > 30 {
		t.Errorf("%d lines:\n%s", n, &folded)
	}
	if !strings.Contains(folded.String(), "times more") {
		t.Errorf("nothing is folded:\n%s", &folded)
	}
	if n := strings.Count(wide.String(), "\n"); n < 200 {
		t.Errorf("the wide table has %d lines", n)
	}
}

// TestTextGroupsByDomain updates two pods in each of three zones, one zone after the other.
func TestTextGroupsByDomain(t *testing.T) {
	t.Parallel()
	zones := func(s *v1beta1.RollSetSpec) {
		s.Replicas, s.PodManagementPolicy = new(int32(6)), v1beta1.ParallelPodManagement
		s.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: corev1.LabelTopologyZone, SoakSeconds: 60}
	}
	f := forecastOf(t, web(zones, unavailable(2)), web(zones, unavailable(2), image("web:2")))
	var folded, wide bytes.Buffer
	if err := errors.Join(f.Text(&folded, false), f.Text(&wide, true)); err != nil {
		t.Fatal(err)
	}
	for zone, pods := range map[string]string{"a": "web-3, web-0", "b": "web-4, web-1", "c": "web-5, web-2"} {
		if line := "delete 2 pods: " + pods + " in zone " + zone; !strings.Contains(folded.String(), line) {
			t.Errorf("%q is missing:\n%s", line, &folded)
		}
	}
	if !strings.Contains(wide.String(), "delete pods web-3 in zone a") {
		t.Errorf("the wide table does not name the zone:\n%s", &wide)
	}
	if f.Takes < 2*time.Minute {
		t.Errorf("it takes %s, although two zones soak for a minute each", f.Takes)
	}
}

func TestPictureIsWellFormedAndFolds(t *testing.T) {
	t.Parallel()
	for _, n := range []int32{12, 500} {
		size := func(s *v1beta1.RollSetSpec) { s.Replicas = &n }
		f := forecastOf(t, web(size, unavailable(25)), web(size, unavailable(25), image("web:2")))
		var b bytes.Buffer
		if err := f.SVG(&b); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%d pods: %v", n, err)
			}
		}
		if rows := len(rowsOf(f.Lanes, f.Takes)); rows > maxRows {
			t.Errorf("%d pods: %d rows", n, rows)
		}
		if b.Len() > 200_000 {
			t.Errorf("%d pods: %d bytes", n, b.Len())
		}
	}
}

func TestQuotaOfAPod(t *testing.T) {
	t.Parallel()
	spec := &corev1.PodSpec{Containers: []corev1.Container{{}, {}}}
	for i := range spec.Containers {
		spec.Containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	}
	got := QuotaOf(spec)
	if cpu := got[corev1.ResourceRequestsCPU]; cpu.String() != "500m" {
		t.Errorf("requests.cpu %s, want 500m", cpu.String())
	}
}
