// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/forecast"
)

// A file is applied by a three-way merge, as in kubectl apply: fields of the last file that this one lacks are removed, and
// what others wrote stays.
func TestFilesAreApplied(t *testing.T) {
	t.Parallel()
	last := `{"apiVersion":"apps.rollset.dev/v1beta1","kind":"RollSet","metadata":{"name":"web"},"spec":{"minReadySeconds":5,"replicas":3}}`
	set := &v1beta1.RollSet{}
	if err := json.Unmarshal([]byte(last), set); err != nil {
		t.Fatal(err)
	}
	set.ResourceVersion, set.Annotations = "1", map[string]string{corev1.LastAppliedConfigAnnotation: last, "example.com/by": "others"}
	set.Spec.RevisionHistoryLimit = new(int32(7))
	e := edit{filenames: files(t, manifest("web", "4", "web:2"))}
	s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, clocktesting.NewFakeClock(testTime))
	if err := e.readFile(s); err != nil {
		t.Fatal(err)
	}
	if err := e.applyFile(t.Context(), nil, set); err != nil {
		t.Fatal(err)
	}
	if *set.Spec.Replicas != 4 || set.Spec.MinReadySeconds != 0 || *set.Spec.RevisionHistoryLimit != 7 || set.Annotations["example.com/by"] != "others" {
		t.Errorf("the set has %d replicas, minReadySeconds %d, a history of %d and annotations %v",
			*set.Spec.Replicas, set.Spec.MinReadySeconds, *set.Spec.RevisionHistoryLimit, set.Annotations)
	}
}

func TestGoesToRevisions(t *testing.T) {
	t.Parallel()
	running := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	running.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	running.Spec.Template.Labels = running.Spec.Selector.MatchLabels
	running.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}}
	in, err := forecast.Offline(t.Context(), running, running.DeepCopy(), testTime)
	if err != nil {
		t.Fatal(err)
	}
	set := in.Before
	set.Spec.Template.Spec.Containers[0].Image = "web:2"
	i := slices.IndexFunc(in.Objects, func(o client.Object) bool { _, ok := o.(*appsv1.ControllerRevision); return ok })
	object, _ := in.Objects[i].DeepCopyObject().(*appsv1.ControllerRevision)
	object.Revision = 2
	foreign := object.DeepCopy()
	foreign.Revision, foreign.OwnerReferences[0].UID = 3, "other"
	objects := []client.Object{object, foreign}
	if err := toRevision(set, objects, 2); err != nil || set.Spec.Template.Spec.Containers[0].Image != "web:1" {
		t.Errorf("%v, %v", set.Spec.Template, err)
	}
	if err := toRevision(set, objects, 3); err == nil || !strings.Contains(err.Error(), "no revision 3; it has 2") {
		t.Errorf("to the revision of another set: %v", err)
	}
	if err := toRevision(set, nil, 1); err == nil || !strings.Contains(err.Error(), "no revisions yet") {
		t.Errorf("without revisions: %v", err)
	}
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	f := &forecast.Forecast{Film: forecast.Film{Replicas: 10}, LowestAvailable: 8}
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{UID: "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	other := func(name string, owner types.UID) client.Object {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"team": "shop"}, OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: new(true)}},
			},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
	}
	set.Spec.Template.Labels["team"] = "shop"
	objects := []client.Object{other("a", "other"), other("b", "other"), other("web-0", "web")}
	budget := func(minimum, maximum *intstr.IntOrString, app string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "b"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: minimum, MaxUnavailable: maximum, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			},
		}
	}
	ofTeam := func(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		b.Spec.Selector.MatchLabels = map[string]string{"team": "shop"}
		return b
	}
	for name, test := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		want   string
	}{
		"one that is kept":            {budget(new(intstr.FromInt(7)), nil, "web"), ""},
		"one that is used up":         {budget(new(intstr.FromString("80%")), nil, "web"), "asks for 8 available pods, and there will be no more"},
		"one that is broken":          {budget(nil, new(intstr.FromInt(1)), "web"), "asks for 9 available pods, and there will be 8"},
		"one of others":               {budget(new(intstr.FromInt(10)), nil, "db"), ""},
		"one that other pods keep":    {ofTeam(budget(new(intstr.FromInt(9)), nil, "")), ""},
		"one shared with other pods":  {ofTeam(budget(new(intstr.FromString("90%")), nil, "")), "asks for 11 available pods, and there will be 10"},
		"one without any requirement": {budget(nil, nil, "web"), ""},
	} {
		got := ofBudget(test.budget, forecast.Input{After: set, Before: set, Objects: objects}, f)
		if got == "" != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
	}}}
	in, f := forecast.Input{After: set}, &forecast.Forecast{MostPods: 4}
	quota := func(name corev1.ResourceName, hard, used string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "q"},
			Status: corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{name: resource.MustParse(hard)}, Used: corev1.ResourceList{name: resource.MustParse(used)},
			},
		}
	}
	for name, test := range map[string]struct {
		quota *corev1.ResourceQuota
		want  string
	}{
		"enough pods":       {quota(corev1.ResourcePods, "10", "6"), ""},
		"too few pods":      {quota(corev1.ResourcePods, "10", "7"), "allows pods=10, and 4 more pods take it to 11"},
		"too few CPUs":      {quota(corev1.ResourceRequestsCPU, "2", "1"), "allows requests.cpu=2, and 4 more pods take it to 3"},
		"of what is unused": {quota(corev1.ResourceLimitsMemory, "1", "1"), ""},
	} {
		got := ofQuota(test.quota, in, f)
		if got == "" != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
