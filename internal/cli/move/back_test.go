// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/snapshot"
)

// fate says what happens to a field of a RollSet in the old kind: the field that has its value, or nothing, because it has no
// effect there. A field without fate is named as lost.
type fate struct {
	// value is a value of the field that is not the default, as JSON.
	value string
	// statefulSet and deployment are the field of the old kind's spec, nothing if it is left out without a word, and empty
	// if it is lost.
	statefulSet, deployment string
}

const nothingAtAll = "-"

// fates holds the fate of each field, by path.
var fates = map[string]fate{
	"replicas":                                           {`3`, "replicas", "replicas"},
	"selector":                                           {`{"matchLabels":{"b":"c"}}`, "selector", "selector"},
	"template":                                           {`{"spec":{"hostNetwork":true}}`, "template", "template"},
	"podIdentity":                                        {`"Ordinal"`, nothingAtAll, nothingAtAll},
	"podManagementPolicy":                                {`"Parallel"`, "podManagementPolicy", nothingAtAll},
	"ordinals":                                           {`{"start":3}`, "ordinals", ""},
	"reserveOrdinals":                                    {`[1,"3-5"]`, "", ""},
	"serviceName":                                        {`"a"`, "serviceName", ""},
	"volumeClaimTemplates":                               {`[{"metadata":{"name":"a"}}]`, "volumeClaimTemplates", ""},
	"persistentVolumeClaimRetentionPolicy":               {`{"whenScaled":"Delete"}`, "persistentVolumeClaimRetentionPolicy", nothingAtAll},
	"minReadySeconds":                                    {`7`, "minReadySeconds", "minReadySeconds"},
	"revisionHistoryLimit":                               {`3`, "revisionHistoryLimit", "revisionHistoryLimit"},
	"progressDeadlineSeconds":                            {`700`, "", "progressDeadlineSeconds"},
	"scaleStrategy.maxUnavailable":                       {`1`, "", ""},
	"scaleStrategy.podsToDelete":                         {`["a"]`, "", ""},
	"updateStrategy.type":                                {`"RollingUpdate"`, "updateStrategy.type", "strategy.type"},
	"updateStrategy.rollingUpdate.partition":             {`2`, "updateStrategy.rollingUpdate.partition", ""},
	"updateStrategy.rollingUpdate.maxUnavailable":        {`"30%"`, "updateStrategy.rollingUpdate.maxUnavailable", "strategy.rollingUpdate.maxUnavailable"},
	"updateStrategy.rollingUpdate.maxSurge":              {`2`, "", "strategy.rollingUpdate.maxSurge"},
	"updateStrategy.rollingUpdate.podUpdatePolicy":       {`"InPlaceOnly"`, "", ""},
	"updateStrategy.rollingUpdate.inPlaceUpdateStrategy": {`{"gracePeriodSeconds":1}`, "", ""},
	"updateStrategy.rollingUpdate.paused":                {`true`, "", "paused"},
	"updateStrategy.rollingUpdate.priorityStrategy":      {`{"orderPriority":[{"orderedKey":"a"}]}`, "", ""},
	"updateStrategy.rollingUpdate.scatterStrategy":       {`[{"key":"a","value":"b"}]`, "", ""},
	"updateStrategy.rollingUpdate.onDeadlineExceeded":    {`"Rollback"`, "", ""},
	"updateStrategy.rollingUpdate.steps":                 {`[{"updated":1}]`, "", ""},
	"updateStrategy.rollingUpdate.onStepFailed":          {`"Rollback"`, "", ""},
	"updateStrategy.rollingUpdate.domains":               {`{"labelKey":"zone"}`, "", ""},
	"lifecycle.preNormal":                                {`{"labelsHandler":{"a":"b"}}`, "", ""},
	"lifecycle.inPlaceUpdate":                            {`{"labelsHandler":{"a":"b"}}`, "", ""},
	"lifecycle.preDelete":                                {`{"finalizersHandler":["a/b"]}`, "", ""},
	"disruption.onDrain":                                 {`"Replace"`, "", ""},
	"disruption.drainTaints":                             {`["a"]`, "", ""},
	"disruption.podDisruptionBudget":                     {`"Auto"`, "", ""},
}

// defaulted is an empty spec with the defaults of the API server.
const defaulted = `
podIdentity: Random
minReadySeconds: 0
revisionHistoryLimit: 10
progressDeadlineSeconds: 600
serviceName: ""
updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxSurge: 0, podUpdatePolicy: Recreate, onDeadlineExceeded: Hold, onStepFailed: Hold}}
`

// paths lists the fields of the spec, down to those whose parts belong together.
func paths(prefix string, t reflect.Type) []string {
	var all []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		of := field.Type
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch of {
		case reflect.TypeFor[v1beta1.UpdateStrategy](), reflect.TypeFor[v1beta1.RollingUpdate](), reflect.TypeFor[v1beta1.ScaleStrategy](),
			reflect.TypeFor[v1beta1.Lifecycle](), reflect.TypeFor[v1beta1.Disruption]():
			all = append(all, paths(prefix+name+".", of)...)
		default:
			all = append(all, prefix+name)
		}
	}
	return all
}

// TestRestoreKnowsEveryField gives each field of a RollSet a value, and looks for it in the old kind, or among what is lost.
func TestRestoreKnowsEveryField(t *testing.T) {
	t.Parallel()
	want := paths("", reflect.TypeFor[v1beta1.RollSetSpec]())
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(fates))); diff != "" {
		t.Fatalf("the fields of a RollSet, and those of this test:\n%s", diff)
	}
	for path, f := range fates {
		for kind, there := range map[string]string{statefulSet: f.statefulSet, deployment: f.deployment} {
			t.Run(kind+" "+path, func(t *testing.T) {
				t.Parallel()
				var value any
				set, steps := edited(t, path, f.value, &value), strings.Split(there, ".")
				old, lost := restore(set, like(kind), snapshot.Limits{Replicas: 3, Partition: 2})
				got, found, _ := unstructured.NestedFieldNoCopy(old.Object, append([]string{"spec"}, steps...)...)
				switch text := strings.Join(lost, "; "); {
				case there == "" && !strings.Contains(text, "spec."+path):
					t.Errorf("it is not named among what is lost: %s", text)
				case there != "" && len(lost) > 0:
					t.Errorf("lost: %s", text)
				case there != "" && there != nothingAtAll && (!found || !cmp.Equal(got, value)):
					t.Errorf("want %v, got %v", value, got)
				}
			})
		}
	}
}

// edited returns a set with the defaults and a field with a value, which it decodes.
func edited(t *testing.T, path, text string, value *any) *unstructured.Unstructured {
	t.Helper()
	set := like("RollSet")
	set.Object["spec"] = decode(t, defaulted)
	*value = decode(t, "value: "+text)["value"]
	if err := unstructured.SetNestedField(set.Object, *value, append([]string{"spec"}, strings.Split(path, ".")...)...); err != nil {
		t.Fatal(err)
	}
	return set
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{}
	if err := json.Unmarshal(data, &value); err != nil { // whole numbers are int64
		t.Fatal(err)
	}
	return value
}

func like(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apps/v1")
	o.SetKind(kind)
	o.SetName("a")
	return o
}

// TestRestoreKeepsMeaning restores values that the old kinds write in another way.
func TestRestoreKeepsMeaning(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ kind, spec, want string }{
		"a partition in percent": {statefulSet, `updateStrategy: {rollingUpdate: {partition: 60%}}`, `updateStrategy: {rollingUpdate: {partition: 2}}`},
		"maxUnavailable 0":       {statefulSet, `updateStrategy: {rollingUpdate: {maxUnavailable: 0}}`, `updateStrategy: {rollingUpdate: {maxUnavailable: 1}}`},
		"OnDelete":               {statefulSet, `updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}`, `updateStrategy: {type: OnDelete}`},
		"no limits":              {deployment, `updateStrategy: {rollingUpdate: {maxSurge: 0}}`, `strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 20%}}`},
		"both limits 0":          {deployment, `updateStrategy: {rollingUpdate: {maxSurge: 0%, maxUnavailable: 0}}`, `strategy: {rollingUpdate: {maxSurge: 0%, maxUnavailable: 1}}`},
		"Recreate":               {deployment, `updateStrategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}`, `strategy: {type: Recreate}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := like("RollSet")
			set.Object["spec"] = decode(t, test.spec)
			old, lost := restore(set, like(test.kind), snapshot.Limits{Replicas: 3, Partition: 2})
			want := any(decode(t, test.want))
			if diff := cmp.Diff(want, old.Object["spec"]); diff != "" || len(lost) > 0 {
				t.Errorf("%s\nlost: %v", diff, lost)
			}
		})
	}
}

// TestReleaseBeginsOnlyWhenSettled prepares the release of sets that are on their way.
func TestReleaseBeginsOnlyWhenSettled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*v1beta1.RollSet)
		pods map[string]string // with their revisions
		want string
	}{
		"the newest generation is not observed": {
			edit: func(set *v1beta1.RollSet) { set.Status.ObservedGeneration = 1 },
			want: "the manager has not observed the newest spec of rollset db: it has generation 2, and the status is about 1",
		},
		"a controlled set": {
			edit: func(set *v1beta1.RollSet) {
				set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Database", Name: "shop", UID: "2", Controller: new(true)}}
			},
			want: "rollset/db is controlled by database/shop, which would make it again",
		},
		"a pod of another revision": {pods: map[string]string{"db-0": "db-old"}, want: "pod db-0 is not at the update revision and would be replaced"},
		"a pod that is surplus":     {pods: map[string]string{"db-1": "db-new", "db-2": "db-new"}, want: "pod db-2 would be deleted: a StatefulSet with spec.replicas 2 and spec.ordinals.start 0"},
		"all is well":               {pods: map[string]string{"db-0": "db-new", "db-1": "db-new"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &v1beta1.RollSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "1", Generation: 2},
				Spec:       v1beta1.RollSetSpec{Replicas: new(int32(2)), PodIdentity: v1beta1.OrdinalIdentity},
				Status:     v1beta1.RollSetStatus{ObservedGeneration: 2, UpdateRevision: "db-new"},
			}
			if test.edit != nil {
				test.edit(set)
			}
			err := prepare(t, set, test.pods)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

// prepare prepares the release of a set with pods.
func prepare(t *testing.T, set *v1beta1.RollSet, pods map[string]string) error {
	t.Helper()
	scheme, err := session.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set)
	for name, revision := range pods {
		objects.WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{v1beta1.RevisionLabel: revision},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "RollSet", Name: set.Name, UID: set.UID, Controller: new(true)}},
		}})
	}
	s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, clocktesting.NewFakeClock(time.Time{}))
	m := &mover{session: s, client: objects.Build(), namespace: "default", record: &record{Old: like(statefulSet)}}
	raw := like("RollSet")
	raw.SetAPIVersion(v1beta1.GroupVersion.String())
	raw.SetName(set.Name)
	if raw, err = m.get(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	return releaser{m}.prepare(t.Context(), raw, false)
}

// TestReplicaSetIsObserved waits for the controller manager before a Deployment may be created that it would give another ReplicaSet.
func TestReplicaSetIsObserved(t *testing.T) {
	t.Parallel()
	for observed, want := range map[int64]string{0: "waited 10ms for replicaset/web-1234567890 to be observed", 1: ""} {
		scheme, err := session.Scheme()
		if err != nil {
			t.Fatal(err)
		}
		there := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1234567890", Generation: 1},
			Status:     appsv1.ReplicaSetStatus{ObservedGeneration: observed},
		}
		old := like(deployment)
		old.SetName("web")
		old.Object["spec"] = map[string]any{"selector": map[string]any{}}
		s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, clocktesting.NewFakeClock(time.Time{}))
		m := &mover{
			session: s, client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build(), namespace: "default", timeout: 10 * time.Millisecond,
			record: &record{Old: old, UID: "12345678-90"},
		}
		if err := (releaser{m}).createReplicaSet(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("observed generation %d: %v, want %q", observed, err, want)
		}
	}
}
