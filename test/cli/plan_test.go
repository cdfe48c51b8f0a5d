// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

// edits and firstSeed are the flags of TestPlanIsWhatHappens.
var (
	edits     = flag.Int("edits", 10, "how many random edits are planned and then made; make plans makes 50")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first of them")
)

const (
	// atRest is how long the manager must send nothing before an edit counts as done.
	atRest = 2 * time.Second
	// perSet is how many edits are made of a set, one after another.
	perSet = 5
	// oneNode is the node of all pods.
	oneNode = "node-1"
)

// editor makes random edits of one set.
type editor struct {
	*rand.Rand

	set *v1beta1.RollSet
	n   int
}

// newEditor returns a random set.
func newEditor(seed uint64) *editor {
	e := &editor{Rand: rand.New(rand.NewPCG(seed, seed))}
	labels := map[string]string{"app": "web"}
	e.set = &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	spec := &e.set.Spec
	spec.Replicas = new(int32(3 + e.IntN(3)))
	spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	spec.Template.Labels = map[string]string{"app": "web", "edit": "0"}
	spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:0"}}
	// Pods on crowded nodes go first, and a plan does not know which node the scheduler will choose.
	spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: oneNode}
	e.cpu(10)
	rolling := &spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable = new(intstr.FromInt(1 + e.IntN(2)))
	rolling.PodUpdatePolicy = []v1beta1.PodUpdatePolicy{v1beta1.RecreatePod, v1beta1.InPlaceIfPossiblePod}[e.IntN(2)]
	if e.IntN(2) == 0 {
		spec.PodIdentity = v1beta1.OrdinalIdentity
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: new(nodes.ClaimClass), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			},
		}}
		e.storage(1)
	}
	return e
}

func (e *editor) cpu(milli int) {
	quantity := *resource.NewMilliQuantity(int64(milli), resource.DecimalSI)
	e.set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity}
}

func (e *editor) storage(gigabytes int) {
	quantity := resource.MustParse(fmt.Sprintf("%dGi", gigabytes))
	e.set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity}
}

// edit changes the set at random, and describes the change.
func (e *editor) edit() string {
	e.n++
	spec := &e.set.Spec
	rolling := &spec.UpdateStrategy.RollingUpdate
	kinds := 6
	if spec.PodIdentity == v1beta1.OrdinalIdentity {
		kinds = 8
	}
	switch e.IntN(kinds) {
	case 0:
		spec.Template.Spec.Containers[0].Image = fmt.Sprintf("nginx:%d", e.n)
		return "image"
	case 1:
		e.cpu(10 + 10*e.n)
		return "resources"
	case 2:
		spec.Template.Labels["edit"] = strconv.Itoa(e.n)
		return "labels"
	case 3:
		*spec.Replicas = 1 + (*spec.Replicas+int32(e.IntN(4)))%6
		return "scale"
	case 4:
		rolling.Partition = new(intstr.FromInt(e.IntN(4)))
		if e.IntN(2) == 0 {
			spec.Template.Spec.Containers[0].Image = fmt.Sprintf("nginx:%d", e.n)
		}
		return "partition"
	case 5:
		// Together with updates in place, fractions of a second decide whether a pod is changed or replaced by a surplus
		// one.
		if spec.PodIdentity != v1beta1.OrdinalIdentity && rolling.PodUpdatePolicy == v1beta1.RecreatePod {
			rolling.MaxSurge = new(intstr.FromInt(e.IntN(3)))
		}
		spec.Template.Spec.Containers[0].Image = fmt.Sprintf("nginx:%d", e.n)
		return "surge"
	case 6:
		e.storage(1 + e.n)
		return "claims"
	default:
		spec.Ordinals = &v1beta1.Ordinals{Start: int32(e.IntN(4))}
		return "ordinals"
	}
}

// patch returns the edit as a merge patch.
func (e *editor) patch(t *testing.T) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"spec": e.set.Spec})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestPlanIsWhatHappens plans random edits, makes them, and compares the plan with the manager's requests in the audit log
// of the API server: the same writes to each object in the same order. If one pod moves at a time, the order of all writes
// must be the same, except for those sent together. The namespace is full of what others have in it.
func TestPlanIsWhatHappens(t *testing.T) {
	t.Parallel()
	for first := 0; first < *edits; first += perSet {
		seed := *firstSeed + uint64(first/perSet)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			e := newEditor(seed)
			u := newUser(t)
			u.others(t)
			u.newSet(t, "web", func(set *v1beta1.RollSet) { set.Spec = *e.set.Spec.DeepCopy() })
			u.rest(t, -1)
			for range min(perSet, *edits-first) {
				what := e.edit()
				patch := e.patch(t)
				u.awaitSteady(t, e.set.Spec.PodIdentity)
				steady := time.Now()
				plan := u.plan(t, "--patch", patch)
				planned := plan.lines()
				if what == "claims" && plan.IfBroken.BrokenPods > 0 {
					t.Errorf("-seed=%d: %d pods would break, though no new ones come", seed, plan.IfBroken.BrokenPods)
				}
				if why := plan.impossible(u.get(t, "web"), &e.set.Spec); why != "" {
					t.Errorf("-seed=%d, %s: %s\n%s\nplanned:\n%s", seed, what, why, patch, strings.Join(planned, "\n"))
				}
				log, err := audit.From(shared.AuditLog)
				if err != nil {
					t.Fatal(err)
				}
				if err := shared.Patch(t.Context(), u.get(t, "web"), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
					t.Fatal(err)
				}
				u.log = &log
				made := u.rest(t, len(planned))
				t.Logf("%s: %d writes, %d objects in doubt", what, len(made), len(plan.inDoubt()))
				if diff := gocmp.Diff(plan.known(planned), plan.known(made)); diff != "" {
					t.Fatalf("-seed=%d, %s: %s\n(-planned +made):\n%s\nmade:\n%s", seed, what, patch, diff, strings.Join(made, "\n"))
				}
				inTime := time.Since(steady) < soon+atRest // on a busy machine ages may have changed the order meanwhile
				// How long a pod takes to go is assumed. It decides whether another one comes before, when the range of ordinals moves.
				inOrder := inTime && what != "ordinals" && len(plan.inDoubt()) == 0
				if inOrder && oneByOne(&e.set.Spec) && !slices.Equal(batches(planned, planned), batches(planned, made)) {
					t.Fatalf("-seed=%d, %s: the order differs (-planned +made):\n%s", seed, what, gocmp.Diff(planned, made))
				}
			}
		})
	}
}

// oneByOne reports whether pods of a set move one after another, so that the duration of requests does not matter.
func oneByOne(spec *v1beta1.RollSetSpec) bool {
	rolling := &spec.UpdateStrategy.RollingUpdate
	return rolling.MaxUnavailable.IntValue() == 1 && (rolling.MaxSurge == nil || rolling.MaxSurge.IntValue() == 0)
}

// batches sorts the writes that are sent at the same time: those that are adjacent in the plan, and do the same to objects
// of one kind. Claims grow and gates open after events of two kinds, which may arrive in any order.
func batches(planned, writes []string) []string {
	kind := func(i int) string {
		what := planned[i][:strings.LastIndex(planned[i], " ")]
		return strings.Replace(what, "patch persistentvolumeclaims", "patch pods/status", 1)
	}
	sorted := slices.Clone(writes)
	for from, i := 0, 0; i < len(planned); i++ {
		if i+1 == len(planned) || kind(i+1) != kind(from) {
			slices.Sort(sorted[from : i+1])
			from = i + 1
		}
	}
	return sorted
}

// soon is how long an edit takes to be planned and made. Nothing that it depends on may change in this time.
const soon = 8 * time.Second

// awaitSteady waits until no pod is about to change its rank by age alone. Pods without ordinals are deleted in the order of
// how long they have been ready, in powers of two.
func (u *user) awaitSteady(t *testing.T, identity v1beta1.PodIdentity) {
	t.Helper()
	if identity == v1beta1.OrdinalIdentity {
		return
	}
	eventually(t, "pods of a steady age", func() error {
		for _, pod := range u.pods(t, "web") {
			for _, c := range pod.Status.Conditions {
				age := time.Since(c.LastTransitionTime.Time)
				if c.Type == corev1.PodReady && bits.Len64(uint64(age/time.Second)) != bits.Len64(uint64((age+soon)/time.Second)) {
					return fmt.Errorf("%s is ready for %s", pod.Name, age)
				}
			}
		}
		return nil
	})
}

// figures holds the figures of a plan.
type figures struct {
	Class                     string
	Writes                    []struct{ Verb, Resource, Name string }
	LowestAvailable, MostPods int
	InTheWay, CannotKnow      []string
	IfBroken                  struct{ BrokenPods, LowestAvailable int }
}

// plan returns what the plan of an edit says.
func (u *user) plan(t *testing.T, args ...string) (plan figures) {
	t.Helper()
	out := u.here().run(t, append([]string{"plan", "web", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return plan
}

// lines returns the planned writes, one a line.
func (f *figures) lines() []string {
	writes := []string{}
	for _, w := range f.Writes {
		writes = append(writes, w.Verb+" "+w.Resource+" "+w.Name)
	}
	return writes
}

// inDoubt returns the objects whose writes depend on the order in which pods become ready, as the plan says.
func (f *figures) inDoubt() []string {
	for _, note := range f.CannotKnow {
		if _, objects, ok := strings.Cut(note, "it decides what is written to "); ok {
			return strings.Split(objects, ", ")
		}
	}
	return nil
}

// known returns what is written to each object, in order. It leaves out what the plan calls unknown.
func (f *figures) known(writes []string) map[string][]string {
	objects := byObject(writes)
	for _, object := range f.inDoubt() {
		delete(objects, object)
	}
	return objects
}

// impossible returns which figure of a plan cannot be about the pods of the set alone, or contradicts its writes.
func (f *figures) impossible(set *v1beta1.RollSet, after *v1beta1.RollSetSpec) string {
	most := max(int(*set.Spec.Replicas), int(*after.Replicas))
	if surge := after.UpdateStrategy.RollingUpdate.MaxSurge; surge != nil {
		most += surge.IntValue()
	}
	if out := firstOrdinal(after) - firstOrdinal(&set.Spec); out != 0 { // what is out of range goes one by one, in order
		most += min(int(*after.Replicas), max(out, -out))
	}
	touched := slices.ContainsFunc(f.lines(), func(line string) bool { return !strings.Contains(line, "controllerrevisions") })
	switch {
	case f.MostPods > most, f.LowestAvailable > most, f.IfBroken.LowestAvailable > f.LowestAvailable:
		return fmt.Sprintf("%d pods at most, %d available at least, %d if new ones break, in a set of %d", f.MostPods, f.LowestAvailable, f.IfBroken.LowestAvailable, most)
	case f.Class == "nothing" && touched, f.Class != "nothing" && !touched:
		return fmt.Sprintf("class %s, writes %v", f.Class, f.lines())
	case len(f.InTheWay) > 0:
		return "in the way: " + strings.Join(f.InTheWay, "; ")
	default:
		return ""
	}
}

// firstOrdinal returns the first ordinal of a set.
func firstOrdinal(spec *v1beta1.RollSetSpec) int {
	if spec.Ordinals == nil {
		return 0
	}
	return int(spec.Ordinals.Start)
}

// others fills the namespace with what other teams have in it: workloads with claims, of them one that never gets ready, a pod without
// an owner with a name like those of the set, budgets that others keep, and quotas that are wide or about other pods.
func (u *user) others(t *testing.T) {
	t.Helper()
	at := metav1.ObjectMeta{Namespace: u.namespace, Name: "other"}
	labels := map[string]string{"app": "other"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	template.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1.28", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
	}}}
	deployment := &appsv1.Deployment{ObjectMeta: at}
	deployment.Spec = appsv1.DeploymentSpec{Replicas: new(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}
	broken := deployment.DeepCopy()
	broken.Name, broken.Spec.Template.Spec.Containers[0].Image = "other-broken", "nginx:broken"
	broken.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other-broken"}}
	broken.Spec.Template.Labels = broken.Spec.Selector.MatchLabels
	set := &v1beta1.RollSet{ObjectMeta: at}
	set.Name = "other-set"
	set.Spec.Replicas, set.Spec.PodIdentity = new(int32(2)), v1beta1.OrdinalIdentity
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other-set"}}
	set.Spec.Template = *template.DeepCopy()
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	set.Spec.VolumeClaimTemplates[0].Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: new(nodes.ClaimClass), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	alike := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "web-other", Labels: labels}, Spec: template.Spec}
	lost := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "data-other"}, Spec: set.Spec.VolumeClaimTemplates[0].Spec}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: at}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt(4)), Selector: &metav1.LabelSelector{MatchLabels: labels}}
	wide := &corev1.ResourceQuota{ObjectMeta: at}
	wide.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100"), corev1.ResourceRequestsCPU: resource.MustParse("50")}
	jobs := &corev1.ResourceQuota{ObjectMeta: at}
	jobs.Name = "other-jobs"
	jobs.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	jobs.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
	for _, object := range []client.Object{deployment, broken, set, alike, lost, budget, wide, jobs} {
		if err := shared.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	u.here().run(t, "status", set.Name, longest())
}

// rest waits until the manager has sent at least the given number of writes and then no more, and returns them.
func (u *user) rest(t *testing.T, least int) []string {
	t.Helper()
	var lines []string
	var since time.Time
	began := time.Now()
	eventually(t, "the manager to come to rest", func() error {
		now := u.writes(t)
		if len(now) != len(lines) || since.IsZero() {
			lines, since = now, time.Now()
		}
		enough := len(lines) >= least || time.Since(began) > patience.Long()/4
		if !enough || time.Since(since) < atRest {
			return errors.New(strings.Join(lines, "\n"))
		}
		return nil
	})
	return lines
}

// writes returns what the manager has written in the user's namespace since the log began, one request a line.
func (u *user) writes(t *testing.T) []string {
	t.Helper()
	lines := []string{}
	if u.log == nil {
		return lines
	}
	requests, err := u.log.Requests(manager.User)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(requests, func(a, b audit.Request) int { return a.At.Compare(b.At) })
	for _, r := range requests {
		kind, _, _ := strings.Cut(r.Resource, "/")
		told := slices.Contains([]string{"pods", "persistentvolumeclaims", "controllerrevisions"}, kind)
		writes := slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
		ofOthers := strings.Contains(r.Name, "other") // the set of others
		if told && writes && !ofOthers && r.Namespace == u.namespace && r.Code < 300 {
			lines = append(lines, r.Verb+" "+r.Resource+" "+r.Name)
		}
	}
	return lines
}

// byObject returns what is written to each object, in order.
func byObject(writes []string) map[string][]string {
	objects := map[string][]string{}
	for _, w := range writes {
		verb, object, _ := strings.Cut(w, " ")
		path, name, _ := strings.Cut(object, " ")
		kind, subresource, _ := strings.Cut(path, "/")
		objects[kind+" "+name] = append(objects[kind+" "+name], strings.TrimSuffix(verb+"/"+subresource, "/"))
	}
	return objects
}
