// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

const (
	namespace = "default"
	manager   = "manager"
	other     = types.UID("another")
)

// court is a store with a set in it, and a checker of what its manager writes.
type court struct {
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	store   *apiserver.Store
	view    *apiserver.View
	client  *apiserver.Client
	cluster *Cluster
	checker *Checker
	set     *v1beta1.RollSet
}

// newCourt creates a set at revision web-1, changed by edit, whose update revision is web-2.
func newCourt(t *testing.T, edit func(*v1beta1.RollSet)) *court {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c := &court{t: t, clock: clock, store: apiserver.NewStore(clock.Now)}
	c.view = apiserver.NewView(c.store)
	c.cluster = NewCluster(c.store, apiserver.Key{Kind: apiserver.RollSets, Namespace: namespace, Name: "web"}, clock.Now)
	c.checker = NewChecker(c.cluster)
	c.store.OnWrite(c.checker.Observe)
	c.client = apiserver.NewClient(c.view, manager, apiserver.NewScheme())
	c.client.Tried, c.client.NoChange = c.checker.Tried, c.checker.NoChange
	c.checker.Restart(manager)

	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	set.Spec.Replicas = new(int32(3))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template = template("app:v1")
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
	edit(set)
	c.set = apiserver.MustBe[*v1beta1.RollSet](c.create(set))
	c.create(c.revision("web-1", template("app:v1")))
	c.create(c.revision("web-2", template("app:v2")))
	c.status(func(s *v1beta1.RollSetStatus) {
		s.CurrentRevision, s.UpdateRevision = "web-1", "web-2"
		s.ObservedGeneration = c.set.Generation
		s.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Testing"}}
	})
	return c
}

func asItIs(*v1beta1.RollSet) {}

// rolling has the update revision in its template.
func rolling(set *v1beta1.RollSet) { set.Spec.Template = template("app:v2") }

func ordinals(set *v1beta1.RollSet) { set.Spec.PodIdentity = v1beta1.OrdinalIdentity }

// lenient lets all pods be unavailable, and pauses the rollout.
func lenient(set *v1beta1.RollSet) {
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(3))
	set.Spec.UpdateStrategy.RollingUpdate.Paused = true
}

// zoned lets all pods of a zone be unavailable.
func zoned(set *v1beta1.RollSet) {
	rolling(set)
	set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateStrategy
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(3))
	set.Spec.UpdateStrategy.RollingUpdate.Domains = &v1beta1.FailureDomains{LabelKey: corev1.LabelTopologyZone}
}

// hooked has a hook with a limit of ten seconds.
func hooked(set *v1beta1.RollSet) {
	rolling(set)
	set.Spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: &v1beta1.LifecycleHook{
		LabelsHandler: map[string]string{"example.com/hook": "true"}, TimeoutSeconds: new(int32(10)), OnTimeout: v1beta1.ProceedOnTimeout,
	}}
}

// stepped has three steps.
func stepped(set *v1beta1.RollSet) {
	rolling(set)
	for n := range int32(3) {
		steps := &set.Spec.UpdateStrategy.RollingUpdate.Steps
		*steps = append(*steps, v1beta1.RolloutStep{Updated: intstr.FromInt32(n + 1)})
	}
}

// draining replaces pods on nodes that leave.
func draining(set *v1beta1.RollSet) {
	rolling(set)
	set.Spec.Disruption = &v1beta1.Disruption{OnDrain: v1beta1.ReplaceOnDrain}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
	}
}

// revision returns a revision of the set that holds a template, and templates of claims.
func (c *court) revision(name string, t corev1.PodTemplateSpec, claims ...string) *appsv1.ControllerRevision {
	spec := map[string]any{"template": t}
	var templates []corev1.PersistentVolumeClaim
	for _, claim := range claims {
		templates = append(templates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}})
	}
	spec["volumeClaimTemplates"] = templates
	data, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		c.t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: c.owners()},
		Data:       runtime.RawExtension{Raw: data},
		Revision:   1,
	}
}

func (c *court) owners() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(c.set, v1beta1.GroupVersion.WithKind("RollSet"))}
}

// pod returns a pod of the set at a version.
func (c *court) pod(name, version string) *corev1.Pod {
	t := template("app:" + version)
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Namespace, pod.Name, pod.OwnerReferences = namespace, name, c.owners()
	pod.Labels[v1beta1.RevisionLabel] = strings.Replace(version, "v", "web-", 1)
	return pod
}

func gated(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}}
	return pod
}

func inZone(pod *corev1.Pod, zone string) *corev1.Pod {
	pod.Labels[corev1.LabelTopologyZone], pod.Spec.NodeName = zone, "node-"+zone
	return pod
}

func mounting(pod *corev1.Pod, claim string) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
	return pod
}

// create stores an object without judging it.
func (c *court) create(obj client.Object) client.Object {
	c.t.Helper()
	created, err := c.store.Create(apiserver.Write{Actor: User}, obj)
	if err != nil {
		c.t.Fatal(err)
	}
	return apiserver.Clone(created)
}

// update replaces an object, or its status, without judging it.
func (c *court) update(obj client.Object, subresource string) {
	c.t.Helper()
	if _, err := c.store.Update(apiserver.Write{Actor: User, Subresource: subresource}, obj); err != nil {
		c.t.Fatal(err)
	}
}

// delete removes an object without judging it.
func (c *court) delete(obj client.Object) {
	c.t.Helper()
	if err := c.store.Delete(apiserver.Write{Actor: User, Key: apiserver.KeyOf(obj)}); err != nil {
		c.t.Fatal(err)
	}
}

// status changes the status of the set without judging it.
func (c *court) status(change func(*v1beta1.RollSetStatus)) {
	c.t.Helper()
	set := apiserver.Clone(c.cluster.Set())
	change(&set.Status)
	c.update(set, "status")
}

// ready creates a pod that has been ready for an hour.
func (c *court) ready(pod *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	pod = apiserver.MustBe[*corev1.Pod](c.create(pod))
	since := metav1.NewTime(c.clock.Now().Add(-time.Hour))
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since})
	c.update(pod, "status")
	return apiserver.Clone(apiserver.MustBe[*corev1.Pod](c.store.Get(apiserver.KeyOf(pod))))
}

// begin lets the manager reconcile, with caches that show everything.
func (c *court) begin() { c.beginSince(c.store.Version()) }

// beginSince is begin for a manager that started at a version of the store.
func (c *court) beginSince(born int64) {
	for _, kind := range apiserver.Kinds() {
		c.view.Relist(kind, c.store.Version())
	}
	c.checker.Begin(&Reconcile{
		Manager: manager, Set: apiserver.KeyOf(c.set), View: c.view, Clock: c.clock, Born: born,
	})
}

// creates lets the manager create an object.
func (c *court) creates(obj client.Object) { _ = c.client.Create(c.t.Context(), obj) }

// deletes lets the manager delete an object as it should.
func (c *court) deletes(obj client.Object, opts ...client.DeleteOption) {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	opts = append(opts, client.Preconditions{UID: &uid, ResourceVersion: &version})
	_ = c.client.Delete(c.t.Context(), obj, opts...)
}

// patches lets the manager patch an object.
func (c *court) patches(obj client.Object, format string, args ...any) {
	_ = c.client.Patch(c.t.Context(), obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...)))
}

// tells lets the manager write the status of the set.
func (c *court) tells(change func(*v1beta1.RollSetStatus)) {
	set := apiserver.Clone(c.cluster.Set())
	change(&set.Status)
	_ = c.client.Status().Update(c.t.Context(), set)
}

// breach is a set, and what its manager does wrong.
type breach struct {
	edit func(*v1beta1.RollSet)
	do   func(c *court)
}

// moveInPlace moves one pod to the update revision in place.
func moveInPlace(c *court, pod *corev1.Pod, image string) {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"web-2"}},"spec":{"containers":[{"name":"app","image":%q}]}}`, v1beta1.RevisionLabel, image)
	_ = c.client.Patch(c.t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, patch))
}

// breaches has for every rule a write that breaks it, and no rule before it.
func breaches() map[string]breach {
	rollout := func(step int32, change func(*v1beta1.RollSetStatus)) func(*v1beta1.RollSetStatus) {
		return func(s *v1beta1.RollSetStatus) {
			s.Rollout = &v1beta1.RolloutStatus{Revision: "web-2", Step: step, Steps: 3, Updated: new(intstr.FromInt32(step)), Phase: v1beta1.RolloutSoaking}
			change(s)
		}
	}
	nothing := func(*v1beta1.RollSetStatus) {}
	return map[string]breach{
		"I14 scope": {asItIs, func(c *court) {
			c.begin()
			c.patches(c.set, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":7}}`, c.cluster.Set().ResourceVersion)
		}},
		"I2 ownership": {asItIs, func(c *court) {
			pod := c.pod("web-a", "v1")
			pod.OwnerReferences[0].UID = other
			created := c.create(pod)
			c.begin()
			c.deletes(created)
		}},
		"no name twice": {asItIs, func(c *court) {
			earlier := c.create(c.pod("web-a", "v1"))
			c.begin()
			c.delete(earlier)
			c.begin()
			c.creates(c.pod("web-a", "v1"))
		}},
		"names counted": {asItIs, func(c *court) {
			c.status(func(s *v1beta1.RollSetStatus) { s.IssuedIDs = 5 })
			c.begin()
			c.tells(func(s *v1beta1.RollSetStatus) { s.IssuedIDs = 4 })
		}},
		"budget": {asItIs, func(c *court) {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: c.set.Namespace, Name: c.set.Name}}
			budget.OwnerReferences = c.pod("web-a", "v1").OwnerReferences
			c.begin()
			c.creates(budget) // the set wants none
		}},
		"I1 identity": {asItIs, func(c *court) {
			pod := c.create(c.pod("web-a", "v1"))
			c.begin()
			c.deletes(pod, client.GracePeriodSeconds(0))
		}},
		"I3 upper bound": {func(s *v1beta1.RollSet) { s.Spec.Replicas = new(int32(1)) }, func(c *court) {
			c.create(c.pod("web-a", "v1"))
			c.begin()
			c.creates(c.pod("web-b", "v1"))
		}},
		"I4 availability": {asItIs, func(c *court) {
			pod := c.ready(c.pod("web-a", "v1"))
			c.ready(c.pod("web-b", "v1"))
			c.create(c.pod("web-c", "v1"))
			c.begin()
			c.deletes(pod)
		}},
		"I4 availability in place": {rolling, func(c *court) {
			pod := c.ready(c.pod("web-a", "v1"))
			c.ready(c.pod("web-b", "v1"))
			c.create(c.pod("web-c", "v1"))
			c.begin()
			moveInPlace(c, pod, "app:v2")
		}},
		"I4 gate": {rolling, func(c *court) {
			pod := c.ready(gated(c.pod("web-a", "v1")))
			c.ready(c.pod("web-b", "v1"))
			c.ready(c.pod("web-c", "v1"))
			c.begin()
			moveInPlace(c, pod, "app:v2")
		}},
		"I4 evidence": {rolling, func(c *court) {
			pod := c.ready(gated(c.pod("web-a", "v2")))
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: v1beta1.InPlaceUpdateReady, Status: corev1.ConditionFalse})
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", Image: "app:v1", ContainerID: "x", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}}
			c.update(pod, "status")
			c.begin()
			patch := `{"status":{"conditions":[{"type":%q,"status":"True"}]}}`
			_ = c.client.Status().Patch(c.t.Context(), pod, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, v1beta1.InPlaceUpdateReady)))
		}},
		"I5 order": {ordinals, func(c *court) {
			c.begin()
			c.creates(c.pod("web-1", "v1"))
		}},
		"I6 revision": {lenient, func(c *court) {
			pod := c.ready(c.pod("web-a", "v1"))
			c.begin()
			c.deletes(pod)
		}},
		"I6 revision in place": {lenient, func(c *court) {
			pod := c.ready(c.pod("web-a", "v1"))
			c.begin()
			moveInPlace(c, pod, "app:v2")
		}},
		"I6 content": {rolling, func(c *court) {
			pod := c.create(c.pod("web-a", "v1"))
			c.begin()
			moveInPlace(c, apiserver.MustBe[*corev1.Pod](pod), "app:v9")
		}},
		"I7 storage": {ordinals, func(c *court) {
			claim := c.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-0", OwnerReferences: c.owners()}})
			c.begin()
			c.deletes(claim)
		}},
		"claims in turn": {func(set *v1beta1.RollSet) {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
			set.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = new("gold")
		}, func(c *court) {
			for _, id := range []string{"a", "b"} {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-" + id, OwnerReferences: c.owners()}}
				c.create(claim)
				claim.Status.Phase = corev1.ClaimBound
				c.update(claim, "status")
				c.create(mounting(c.pod("web-"+id, "v1"), "data-web-"+id))
			}
			for _, id := range []string{"a", "b"} {
				c.begin()
				claim := apiserver.Clone(c.store.Get(apiserver.Key{Kind: apiserver.Claims, Namespace: namespace, Name: "data-web-" + id}))
				c.patches(claim, `{"metadata":{"resourceVersion":%q},"spec":{"volumeAttributesClassName":"gold"}}`, claim.GetResourceVersion())
			}
		}},
		"claims first": {asItIs, func(c *court) {
			c.begin()
			c.creates(mounting(c.pod("web-a", "v1"), "data-web-a"))
		}},
		"claims of its revision": {asItIs, func(c *court) {
			c.create(c.revision("web-3", template("app:v1"), "data"))
			c.begin()
			pod := c.pod("web-a", "v1")
			pod.Labels[v1beta1.RevisionLabel] = "web-3"
			c.creates(pod)
		}},
		"revisions in use": {asItIs, func(c *court) {
			c.create(c.pod("web-a", "v1"))
			c.begin()
			c.deletes(c.store.Get(apiserver.Key{Kind: apiserver.Revisions, Namespace: namespace, Name: "web-1"}))
		}},
		"completion": {asItIs, func(c *court) {
			c.begin()
			r := c.revision("web-3", template("app:v3"))
			r.Annotations = map[string]string{revision.CompletedAnnotation: "3"}
			c.creates(r)
		}},
		"verdict": {asItIs, func(c *court) {
			r := c.create(c.revision("web-3", template("app:v3")))
			c.begin()
			c.patches(r, `{"metadata":{"resourceVersion":%q,"annotations":{"apps.rollset.dev/rejected":"ProgressDeadlineExceeded"}}}`, r.GetResourceVersion())
		}},
		"I8 adoption": {asItIs, func(c *court) {
			pod := c.pod("web-a", "v1")
			pod.Labels["app"], pod.OwnerReferences = "another", nil
			orphan := c.create(pod)
			c.begin()
			owners, err := json.Marshal(c.owners())
			if err != nil {
				c.t.Fatal(err)
			}
			c.patches(orphan, `{"metadata":{"uid":%q,"resourceVersion":%q,"ownerReferences":%s}}`, orphan.GetUID(), orphan.GetResourceVersion(), owners)
		}},
		"I12 status": {asItIs, func(c *court) {
			c.begin()
			c.tells(func(s *v1beta1.RollSetStatus) { s.ReadyReplicas = 1 })
		}},
		"I12 words": {asItIs, func(c *court) {
			c.begin()
			c.tells(func(s *v1beta1.RollSetStatus) { s.Conditions[0].Message = "3 of 2 pods are ready" })
		}},
		"I13 deletion": {func(s *v1beta1.RollSet) { s.Finalizers = []string{"example.com/stays"} }, func(c *court) {
			c.delete(c.set)
			c.begin()
			c.creates(c.pod("web-a", "v1"))
		}},
		"I10, I11 bounded writes": {asItIs, func(c *court) {
			pod := c.create(c.pod("web-a", "v1"))
			c.begin()
			for n := range maxInARow + 1 {
				c.patches(pod, `{"metadata":{"annotations":{"n":"%d"}}}`, n)
			}
		}},
		"I15 bounded growth": {asItIs, func(c *court) {
			pod := c.create(c.pod("web-a", "v1"))
			c.begin()
			c.patches(pod, `{"metadata":{"annotations":{"n":%q}}}`, strings.Repeat("n", maxNotes))
		}},
		"guard": {rolling, func(c *court) {
			c.ready(c.pod("web-a", "v1"))
			pod := c.create(c.pod("web-b", "v1"))
			c.create(c.pod("web-c", "v2"))
			c.begin()
			c.deletes(pod)
		}},
		"guard of new pods": {rolling, func(c *court) {
			c.ready(c.pod("web-a", "v1"))
			c.create(c.pod("web-b", "v2"))
			c.begin()
			c.creates(c.pod("web-c", "v2"))
		}},
		"domains": {zoned, func(c *court) {
			pod := c.ready(inZone(c.pod("web-a", "v1"), "a"))
			c.create(inZone(c.pod("web-b", "v1"), "b"))
			c.begin()
			c.deletes(pod)
		}},
		"drain": {draining, func(c *court) {
			node := c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}})
			pod := c.pod("web-a", "v2")
			pod.Spec.NodeName = node.GetName()
			c.ready(c.pod("web-b", "v2"))
			c.ready(c.pod("web-c", "v2"))
			pod = c.ready(pod)
			c.begin()
			c.deletes(pod)
		}},
		"hooks": {hooked, func(c *court) {
			pod := c.pod("web-a", "v1")
			pod.Labels["example.com/hook"], pod.Labels[v1beta1.LifecycleStateLabel] = "true", "PreparingDelete"
			prepared := c.create(pod)
			c.clock.SetTime(c.clock.Now().Add(6 * time.Second))
			c.begin()
			c.deletes(prepared)
		}},
		"hooks at rest": {hooked, func(c *court) {
			pod := gated(c.pod("web-a", "v1"))
			pod.Labels[v1beta1.LifecycleStateLabel] = "PreparingUpdate"
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: v1beta1.InPlaceUpdateReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(c.clock.Now()),
			})
			c.create(pod)
			c.update(pod, "status")
			c.begin()
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"Normal"}}}`, v1beta1.LifecycleStateLabel)
			_ = c.client.Patch(c.t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, patch))
			c.begin()
			moveInPlace(c, pod, "app:v2")
		}},
		"steps in turn": {stepped, func(c *court) {
			c.status(rollout(1, nothing))
			c.begin()
			c.tells(rollout(3, nothing))
		}},
		"I9 soak": {stepped, func(c *court) {
			c.status(rollout(1, nothing))
			c.begin()
			c.tells(func(s *v1beta1.RollSetStatus) { s.Conditions[0].Reason = "Another" })
		}},
		"I12 steps": {stepped, func(c *court) {
			c.begin()
			c.tells(rollout(1, func(s *v1beta1.RollSetStatus) {
				s.Conditions[0].Status, s.Conditions[0].LastTransitionTime = metav1.ConditionTrue, metav1.NewTime(c.clock.Now())
			}))
		}},
		"I12 ready": {ordinals, func(c *court) {
			c.ready(c.pod("web-7", "v2"))
			c.begin()
			c.tells(func(s *v1beta1.RollSetStatus) {
				s.Conditions[0].Status, s.Conditions[0].LastTransitionTime = metav1.ConditionTrue, metav1.NewTime(c.clock.Now())
			})
		}},
	}
}

// TestEveryRuleCanFail breaks every rule once, by a write of the manager.
func TestEveryRuleCanFail(t *testing.T) {
	t.Parallel()
	all := breaches()
	every := slices.Concat(rules(), rulesOfPlans())
	if len(all) != len(every) {
		t.Errorf("%d writes for %d rules", len(all), len(every))
	}
	for _, r := range every {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			b, ok := all[r.name]
			if !ok {
				t.Fatal("no write breaks this rule")
			}
			c := newCourt(t, b.edit)
			b.do(c)
			c.checker.End()
			if err := c.checker.Violation; err == nil || !strings.HasPrefix(err.Error(), r.name+" broken") {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestAPlanIsJudgedAsAWhole moves a broken pod while two surge pods are not available, and deletes some of these later in the same plan.
func TestAPlanIsJudgedAsAWhole(t *testing.T) {
	t.Parallel()
	end := func(c *court) { c.checker.End() }
	for name, tc := range map[string]struct {
		deletes int
		end     func(*court)
		broken  bool
	}{
		"no surge goes":         {0, end, true},
		"one surge pod goes":    {1, end, true},
		"both go":               {2, end, false},
		"nobody knows who goes": {0, func(c *court) { c.checker.Crash(); c.checker.End() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, func(s *v1beta1.RollSet) {
				rolling(s)
				s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, s.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0)), new(intstr.FromInt32(2))
			})
			c.ready(c.pod("web-a", "v1"))
			c.ready(c.pod("web-b", "v1"))
			moved := c.create(c.pod("web-c", "v1"))
			var surge []client.Object
			for _, name := range []string{"web-d", "web-e"} {
				pod := c.pod(name, "v2")
				pod.Labels[v1beta1.SurgeLabel] = "true"
				surge = append(surge, c.create(pod))
			}
			c.begin()
			c.deletes(moved)
			for _, pod := range surge[:tc.deletes] {
				c.deletes(pod)
			}
			if tc.end(c); (c.checker.Violation != nil) != tc.broken {
				t.Errorf("violation: %v", c.checker.Violation)
			}
		})
	}
}

// TestTriedWrites breaks the rules about writes that the API server may have refused.
func TestTriedWrites(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(*court){
		"I11 again: web-a is created": func(c *court) {
			c.creates(c.pod("web-a", "v1"))
			c.creates(c.pod("web-a", "v1"))
		},
		"I11 again: web-a is deleted": func(c *court) {
			pod := c.create(gated(c.pod("web-a", "v1")))
			pod.SetFinalizers([]string{"example.com/stays"})
			c.update(pod, "")
			c.begin()
			for range 2 {
				c.deletes(c.store.Get(apiserver.KeyOf(pod)))
			}
		},
		"I10 hot loop": func(c *court) {
			for range maxFailures + 1 {
				c.deletes(c.pod("web-a", "v1"))
			}
		},
		"silence broken": func(c *court) {
			pod := c.create(c.pod("web-a", "v1"))
			c.begin()
			c.patches(pod, `{"metadata":{"labels":{"app":"web"}}}`)
		},
		"I17 data broken": func(c *court) {
			claim := c.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-a"}})
			c.ready(mounting(c.pod("web-a", "v1"), "data-web-a"))
			c.begin()
			c.status(func(s *v1beta1.RollSetStatus) {
				s.Conditions[0].Status, s.Conditions[0].ObservedGeneration = metav1.ConditionTrue, c.set.Generation
			})
			c.begin()
			c.deletes(claim)
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, func(s *v1beta1.RollSet) { s.Spec.Replicas = new(int32(1)) })
			c.begin()
			do(c)
			if err := c.checker.Violation; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestNamesInARow creates and deletes pods of one name, which may have as many writes as pods of one name may go in a row.
func TestNamesInARow(t *testing.T) {
	t.Parallel()
	c := newCourt(t, ordinals)
	for n := range maxInARow + 1 {
		if err := c.checker.Violation; err != nil {
			t.Fatalf("after %d pods: %v", n, err)
		}
		c.begin()
		c.creates(c.pod("web-0", "v1"))
		c.begin()
		c.deletes(c.store.Get(apiserver.KeyOf(c.pod("web-0", "v1"))))
	}
	if err := c.checker.Violation; err == nil || !strings.Contains(err.Error(), "times in a row") {
		t.Errorf("violation: %v", err)
	}
}

// TestClaimsOfAPlace lets the only replica go on with another pod. Its claim has to stay in use if that pod has one of the template.
func TestClaimsOfAPlace(t *testing.T) {
	t.Parallel()
	rest := func(c *court) {
		c.begin()
		c.tells(func(s *v1beta1.RollSetStatus) {
			s.Conditions[0].Status, s.Conditions[0].ObservedGeneration = metav1.ConditionTrue, c.set.Generation
		})
		c.begin()
		c.tells(func(s *v1beta1.RollSetStatus) { s.Conditions[0].Status = metav1.ConditionFalse })
	}
	for name, broken := range map[string]bool{"data-web-a": false, "data-web-b": true, "": false} {
		t.Run("with "+cmp.Or(name, "no claim"), func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, func(s *v1beta1.RollSet) {
				s.Spec.Replicas = new(int32(1))
				s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
			})
			for _, claim := range []string{"data-web-a", "data-web-b"} {
				c.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim}})
			}
			pod := c.ready(mounting(c.pod("web-a", "v1"), "data-web-a"))
			rest(c)
			c.delete(pod)
			next := c.pod("web-b", "v1")
			if name != "" {
				next = mounting(next, name)
			}
			if _, err := c.store.Create(apiserver.Write{Actor: "kubelet"}, next); err != nil { // a pod of the user's excuses its claims
				t.Fatal(err)
			}
			rest(c)
			if err := c.checker.Violation; (err != nil) != broken || broken && !strings.Contains(err.Error(), "no replica has claim data-web-a") {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestWaste creates pods, and deletes them before anything happens to them.
func TestWaste(t *testing.T) {
	t.Parallel()
	c := newCourt(t, asItIs)
	c.begin()
	for i := range maxWasted + 1 {
		pod := c.pod(fmt.Sprintf("web-%d", i), "v1")
		c.creates(pod)
		c.begin()
		c.deletes(c.store.Get(apiserver.KeyOf(pod)))
	}
	if err := c.checker.Violation; err == nil || !strings.Contains(err.Error(), "pods were created and deleted again") {
		t.Errorf("violation: %v", err)
	}
}

// TestCheckWanted compares a set with what is there at the end of a rollout.
func TestCheckWanted(t *testing.T) {
	t.Parallel()
	c := newCourt(t, func(s *v1beta1.RollSet) { s.Spec.Replicas = new(int32(1)) })
	c.ready(c.pod("web-a", "v1"))
	c.status(func(s *v1beta1.RollSetStatus) {
		s.UpdateRevision = "web-1"
		s.Replicas, s.ReadyReplicas, s.AvailableReplicas = 1, 1, 1
		s.Conditions[0].Status, s.Conditions[0].ObservedGeneration = metav1.ConditionTrue, c.set.Generation
	})
	if err := c.cluster.CheckWanted(c.cluster.Set(), false); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(set *v1beta1.RollSet){
		"1 active pods, 2 wanted":               func(s *v1beta1.RollSet) { s.Spec.Replicas = new(int32(2)) },
		"a is not available":                    func(s *v1beta1.RollSet) { s.Spec.MinReadySeconds = 7200 },
		"a is a stray at v1":                    func(s *v1beta1.RollSet) { s.Spec.Template, s.Status.CurrentRevision = template("app:v2"), "web-2" },
		"0 pods at the update revision v2":      rolling,
		"the rollout is over":                   func(s *v1beta1.RollSet) { s.Status.UpdateRevision = "web-2" },
		"generation 0 is observed":              func(s *v1beta1.RollSet) { s.Status.ObservedGeneration = 0 },
		"status says 4 replicas":                func(s *v1beta1.RollSet) { s.Status.Replicas = 4 },
		"status says 0 ready":                   func(s *v1beta1.RollSet) { s.Status.ReadyReplicas = 0 },
		"condition Ready is True: false":        func(s *v1beta1.RollSet) { s.Status.Conditions[0].Status = metav1.ConditionFalse },
		"condition Ready is about generation 0": func(s *v1beta1.RollSet) { s.Status.Conditions[0].ObservedGeneration = 0 },
		"1 unused revisions":                    func(s *v1beta1.RollSet) { s.Spec.RevisionHistoryLimit = new(int32(0)) },
	} {
		set := apiserver.Clone(c.cluster.Set())
		change(set)
		isWanted := func(line string) bool { return strings.HasPrefix(line, want) }
		err := c.cluster.CheckWanted(set, false)
		if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), isWanted) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

// TestCheckService leaves a healthy pod out of service for too long, counted from the last check that found a reason for it.
func TestCheckService(t *testing.T) {
	t.Parallel()
	c := newCourt(t, asItIs)
	pod := c.ready(gated(c.pod("web-a", "v1")))
	closed := metav1.NewTime(c.clock.Now())
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
		{Type: v1beta1.InPlaceUpdateReady, Status: corev1.ConditionFalse, LastTransitionTime: closed},
	}
	c.update(pod, "status")
	hasKubelet := func(is bool) func(types.UID) bool { return func(types.UID) bool { return is } }
	for _, tc := range []struct {
		after   time.Duration
		kubelet bool
		broken  bool
	}{{time.Minute, true, false}, {time.Hour, false, false}, {time.Hour, true, false}, {2 * time.Hour, true, true}} {
		c.clock.SetTime(closed.Add(tc.after))
		if err := c.cluster.CheckService(hasKubelet(tc.kubelet)); (err != nil) != tc.broken {
			t.Errorf("after %s, with kubelet %t: %v", tc.after, tc.kubelet, err)
		}
	}
}

// TestCheckPlaces deletes a pod of a set that says that it waits for the limit on creation.
func TestCheckPlaces(t *testing.T) {
	t.Parallel()
	limited := func(set *v1beta1.RollSet) {
		set.Spec.ScaleStrategy = &v1beta1.ScaleStrategy{MaxUnavailable: new(intstr.FromInt32(1))}
	}
	for name, tc := range map[string]struct {
		edit    func(*v1beta1.RollSet)
		replica int32
		after   time.Duration
		message string
		broken  bool
	}{
		"a moment ago":        {limited, 3, time.Second, "scaleStrategy.maxUnavailable: 1", false},
		"and not for longer":  {limited, 3, time.Hour, "scaleStrategy.maxUnavailable: 1", true},
		"another reason":      {limited, 3, time.Hour, "exceeded quota", false},
		"scaled down":         {limited, 1, time.Hour, "scaleStrategy.maxUnavailable: 1", false},
		"a set with no limit": {asItIs, 3, time.Hour, "scaleStrategy.maxUnavailable: 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, tc.edit)
			pods := []client.Object{c.create(c.pod("web-a", "v1")), c.create(c.pod("web-b", "v1"))}
			c.begin()
			c.tells(func(s *v1beta1.RollSetStatus) { s.Replicas = 2 })
			c.delete(pods[0])
			set := c.cluster.Set().DeepCopy()
			set.Spec.Replicas = &tc.replica
			c.update(set, "")
			c.status(func(s *v1beta1.RollSetStatus) {
				s.ReachedReplicas, s.ObservedGeneration = 2, c.cluster.Set().Generation
				s.Conditions = []metav1.Condition{{Type: "Progressing", Message: "waiting for web-a: " + tc.message}}
			})
			since := c.clock.Now()
			c.clock.SetTime(since.Add(tc.after))
			if err := c.checker.CheckPlaces(since); (err != nil) != tc.broken {
				t.Errorf("CheckPlaces: %v", err)
			}
		})
	}
}

// TestARestartExcusesOnlyRefusedDeletions counts the writes to pods across a restart of the manager.
func TestARestartExcusesOnlyRefusedDeletions(t *testing.T) {
	t.Parallel()
	b := newBounds()
	refused, other := apiserver.Key{Kind: apiserver.Pods, Namespace: "default", Name: "web-0"}, apiserver.Key{Kind: apiserver.Pods, Namespace: "default", Name: "web-00"}
	for _, key := range []apiserver.Key{refused, other} {
		b.see(&apiserver.Entry{Write: apiserver.Write{Actor: "manager", Verb: apiserver.Patch, Key: key}}, true, 1)
	}
	b.try(apiserver.Write{Actor: "manager", Verb: apiserver.Delete, Key: refused}, errors.New("not this one"), time.Time{})
	b.restart("manager")
	if n := b.inARow[refused].writes; n != 0 {
		t.Errorf("%s: %d writes are counted after the restart, want 0", refused, n)
	}
	if n := b.inARow[other].writes; n != 1 {
		t.Errorf("%s: %d writes are counted after the restart, want 1", other, n)
	}
}

// TestAPlaceIsThatOfTheSpecItWasTakenFor replaces a pod by one in another failure domain, for a spec with domains or without, and
// deletes another pod of that domain for a spec with them.
func TestAPlaceIsThatOfTheSpecItWasTakenFor(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("domains known: %t", known), func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, zoned)
			a, b := c.ready(inZone(c.pod("web-a", "v1"), "a")), inZone(c.pod("web-b", "v1"), "b")
			c.ready(inZone(c.pod("web-c", "v1"), "c"))
			b.Spec.TerminationGracePeriodSeconds = new(int64(0))
			b = c.ready(b)
			with := c.cluster.Set().DeepCopy()
			c.begin()
			if !known {
				without := with.DeepCopy()
				without.Spec.UpdateStrategy.RollingUpdate.Domains = nil
				c.update(without, "")
				c.begin()
			}
			with.ResourceVersion = c.cluster.Set().ResourceVersion
			c.update(with, "")
			c.deletes(b)
			c.creates(inZone(c.pod("web-d", "v2"), "a"))
			c.begin()
			c.deletes(a)
			if err := c.checker.Violation; (err != nil) != known {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestAMarkNeedsAClaimOfSurge deletes a surplus pod that a user named, beside broken ones. It has the mark of surge, and its claim has it or
// not.
func TestAMarkNeedsAClaimOfSurge(t *testing.T) {
	t.Parallel()
	for claimed, broken := range map[string]bool{"true": true, "": false} {
		t.Run("claim marked "+claimed, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, asItIs)
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-a", OwnerReferences: c.owners()}}
			claim.Labels = map[string]string{v1beta1.SurgeLabel: claimed}
			c.create(claim)
			pod := mounting(c.pod("web-a", "v1"), "data-web-a")
			pod.Labels[v1beta1.SpecifiedDeleteLabel], pod.Labels[v1beta1.SurgeLabel] = "true", "true"
			pod = c.ready(pod)
			for _, name := range []string{"web-b", "web-c", "web-d"} {
				c.create(c.pod(name, "v1"))
			}
			c.begin()
			c.deletes(pod)
			if err := c.checker.Violation; (err != nil) != broken {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestWhoseDomainIsKnown disturbs a pod while another is missing: one that has left the selector before or after the manager started, or
// one of two that were deleted, in one domain or in two.
func TestWhoseDomainIsKnown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		zone                       string
		relabels, restarts, broken bool
	}{
		"released":                     {"b", true, false, true},
		"released, and seen as others": {"b", true, true, false},
		"two of one domain":            {"b", false, false, true},
		"two of two domains":           {"c", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, zoned)
			a, b, other := c.ready(inZone(c.pod("web-a", "v1"), "a")), inZone(c.pod("web-b", "v1"), "b"), inZone(c.pod("web-c", "v1"), tc.zone)
			b.Spec.TerminationGracePeriodSeconds, other.Spec.TerminationGracePeriodSeconds = new(int64(0)), new(int64(0))
			b, other = c.ready(b), c.ready(other)
			born := c.store.Version()
			c.begin()
			if tc.relabels {
				b.Labels["app"] = "other"
				c.update(b, "")
			} else {
				c.delete(b)
				c.delete(other)
			}
			if tc.restarts {
				born = c.store.Version()
			}
			c.beginSince(born)
			if !tc.relabels {
				c.creates(c.pod("web-d", "v2"))
			}
			c.beginSince(born)
			c.deletes(a)
			if err := c.checker.Violation; (err != nil) != tc.broken {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestAPartitionKeepsNoClaimForAPodThatItKeeps changes the claim of a pod beside another that was created with the wanted attributes:
// one that the partition keeps, or an updated one.
func TestAPartitionKeepsNoClaimForAPodThatItKeeps(t *testing.T) {
	t.Parallel()
	for other, broken := range map[string]bool{"v1": false, "v2": true} {
		t.Run("beside a pod at "+other, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, func(set *v1beta1.RollSet) {
				rolling(set)
				set.Spec.Replicas = new(int32(2))
				set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(1))
				set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
				set.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = new("gold")
			})
			for id, class := range map[string]*string{"a": nil, "b": new("gold")} {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-" + id, OwnerReferences: c.owners()}}
				claim.Spec.VolumeAttributesClassName = class
				c.create(claim)
				claim.Status.Phase, claim.Status.CurrentVolumeAttributesClassName = corev1.ClaimBound, class
				c.update(claim, "status")
			}
			c.create(mounting(c.pod("web-a", "v2"), "data-web-a"))
			c.create(mounting(c.pod("web-b", other), "data-web-b"))
			c.begin()
			claim := apiserver.Clone(c.store.Get(apiserver.Key{Kind: apiserver.Claims, Namespace: namespace, Name: "data-web-a"}))
			c.patches(claim, `{"metadata":{"resourceVersion":%q},"spec":{"volumeAttributesClassName":"gold"}}`, claim.GetResourceVersion())
			if err := c.checker.Violation; (err != nil) != broken {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestAPauseReplacesPodsAtTheirRevision creates pods at the update revision in a pause and a partition that keeps all pods: one for a pod
// that was deleted, and one for another pod.
func TestAPauseReplacesPodsAtTheirRevision(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ version, label, want string }{
		"a named pod":        {"v2", v1beta1.SpecifiedDeleteLabel, "web-e"},
		"one that has moved": {"v1", v1beta1.SpecifiedDeleteLabel, "web-d"},
		"one that was lost":  {"v2", "example.com/other", "web-d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, func(set *v1beta1.RollSet) {
				rolling(set)
				lenient(set)
				set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateStrategy
				set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(3))
			})
			gone := c.pod("web-a", tc.version)
			gone.Labels[tc.label] = "true"
			first, second := c.create(gone), c.create(c.pod("web-b", "v1"))
			c.create(c.pod("web-c", "v1"))
			c.delete(first)
			c.begin()
			c.creates(c.pod("web-d", "v2"))
			c.delete(second)
			c.begin()
			c.creates(c.pod("web-e", "v2"))
			if err := c.checker.Violation; err == nil || !strings.Contains(err.Error(), tc.want+": ") {
				t.Errorf("want a violation by the create of %s, got: %v", tc.want, err)
			}
		})
	}
}

// TestOnlySurgeThatIsNotMarkedHoldsPlaces moves a pod to the update revision in place, beside a surplus one that may be surge.
func TestOnlySurgeThatIsNotMarkedHoldsPlaces(t *testing.T) {
	t.Parallel()
	for policy, broken := range map[v1beta1.PodUpdatePolicy]bool{v1beta1.RecreatePod: true, v1beta1.InPlaceIfPossiblePod: false} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, func(set *v1beta1.RollSet) {
				rolling(set)
				set.Spec.Replicas = new(int32(1))
				set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateStrategy
				set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = policy
				set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(1))
			})
			pod := c.create(c.pod("web-a", "v1"))
			c.create(c.pod("web-b", "v2"))
			c.begin()
			moveInPlace(c, apiserver.MustBe[*corev1.Pod](pod), "app:v2")
			if err := c.checker.Violation; (err != nil) != broken {
				t.Errorf("violation: %v", err)
			}
		})
	}
}

// TestAPartitionIsThatOfARevisionSeenComplete creates a pod at the update revision in a partition that keeps all pods, by a cache that
// shows that the current revision was complete, or not yet.
func TestAPartitionIsThatOfARevisionSeenComplete(t *testing.T) {
	t.Parallel()
	for seen, broken := range map[string]bool{"0": false, "1": true} {
		t.Run("completed "+seen, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, func(set *v1beta1.RollSet) {
				rolling(set)
				set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateStrategy
				set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(3))
			})
			note := func(number string) {
				key := apiserver.Key{Kind: apiserver.Revisions, Namespace: namespace, Name: "web-1"}
				r := apiserver.Clone(c.store.Get(key))
				r.SetAnnotations(map[string]string{completed: number})
				c.update(r, "")
			}
			note(seen)
			c.begin()
			note("1")
			c.creates(c.pod("web-a", "v2"))
			if err := c.checker.Violation; (err != nil) != broken {
				t.Errorf("violation: %v", err)
			}
		})
	}
}
