// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

var killAll = flag.Bool("kill-all", false, "Kill the moves of all workloads after every write, not only those of a few.")

// These workloads are moved in every run of the tests, one of each kind and strategy. The moves of all but the last are killed.
var (
	killed = []string{"postgresql", "vault", "web"}
	short  = append(slices.Clone(killed), "kafka")
)

// TestWorkloads moves manifests of real applications over and back. No pod and no claim is lost, and what is edited meanwhile
// is not lost either.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/workloads/*.yaml")
	if err != nil || len(files) < 14 {
		t.Fatalf("want 14 manifests, got %v: %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if testing.Short() && !slices.Contains(short, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJourney(t, file, *killAll || slices.Contains(killed, name))
			j.thereAndApplied(t)
			j.rolled(t)
			j.edited(t)
			j.backAndThereAgain(t)
		})
	}
}

// journey is the way of a workload to a RollSet, back, and there again.
type journey struct {
	user     *user
	file     string
	kind     string
	name     string
	onDelete bool
	kill     bool
	// pods and claims must not be lost; they are listed by name.
	pods, claims map[string]types.UID
}

// newJourney applies a manifest and waits for its pods.
func newJourney(t *testing.T, file string, kill bool) *journey {
	t.Helper()
	j := &journey{user: newUser(t), kill: kill}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if j.file, err = filepath.Abs(file); err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	workload := &appsv1.StatefulSet{} // a Deployment has all fields that are read
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), workload); err != nil {
		t.Fatal(err)
	}
	j.kind, j.name = strings.ToLower(workload.Kind), workload.Name
	j.onDelete = workload.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	j.user.kubectl(t, "apply", "-f", j.file)
	j.awaitReady(t, int(*workload.Spec.Replicas))
	j.remember(t)
	return j
}

// kubectl runs kubectl in the user's namespace; it must succeed.
func (u *user) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(shared.BinDir, "kubectl"), append([]string{"--kubeconfig=" + shared.Kubeconfig, "--namespace=" + u.namespace}, args...)...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	if err := command.Run(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return out.String()
}

// all lists the pods of the journey's namespace that are not terminating.
func (j *journey) all(t *testing.T) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := shared.List(t.Context(), list, client.InNamespace(j.user.namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

func (j *journey) awaitReady(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d ready pods of %s", n, j.name), func() error {
		ready := 0
		pods := j.all(t)
		for i := range pods {
			if slices.ContainsFunc(pods[i].Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready != n || len(pods) != n {
			return fmt.Errorf("%d of %d", ready, len(pods))
		}
		return nil
	})
}

// remember notes which pods and claims there are. No claim from before may be missing.
func (j *journey) remember(t *testing.T) {
	t.Helper()
	j.pods = map[string]types.UID{}
	for _, pod := range j.all(t) {
		j.pods[pod.Name] = pod.UID
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := shared.List(t.Context(), claims, client.InNamespace(j.user.namespace)); err != nil {
		t.Fatal(err)
	}
	now := map[string]types.UID{}
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.DeletionTimestamp == nil && metav1.GetControllerOf(claim) == nil { // a pod controls its ephemeral volume
			now[claim.Name] = claim.UID
		}
	}
	for name, uid := range j.claims {
		if now[name] != uid {
			t.Errorf("claim %s is lost", name)
		}
	}
	j.claims = now
}

// same fails unless pods and claims are the same as before, and a kind of object controls the pods.
func (j *journey) same(t *testing.T, when, kind string) {
	t.Helper()
	before := maps.Clone(j.pods)
	j.remember(t)
	if !maps.Equal(before, j.pods) {
		t.Errorf("%s, the pods were %v and are %v", when, before, j.pods)
	}
	pods := j.all(t)
	for i := range pods {
		if owner := metav1.GetControllerOf(&pods[i]); owner == nil || owner.Kind != kind {
			t.Errorf("%s, pod %s belongs to %v, not to a %s", when, pods[i].Name, owner, kind)
		}
		for _, c := range pods[i].Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("%s, container %s of pod %s was restarted", when, c.Name, pods[i].Name)
			}
		}
	}
}

// move runs adopt or release, dry and then for real, and kills it after each of its writes.
func (j *journey) move(t *testing.T, verb, what string) {
	t.Helper()
	contains(t, j.user.run(t, verb, what), "Nothing was done; --yes does it.")
	if !j.kill {
		contains(t, j.user.run(t, verb, what, "--yes"), fmt.Sprintf("%d of %d pods run on; their containers have been restarted 0 times", len(j.pods), len(j.pods)))
		return
	}
	if n := j.user.killedAfterWrites(t, verb, what, "--yes"); n < 4 {
		t.Errorf("%s was killed after %d writes only", verb, n)
	}
}

func (j *journey) adopt(t *testing.T) {
	t.Helper()
	j.move(t, "adopt", j.kind+"/"+j.name)
	j.settled(t)
	j.same(t, "after adopt", "RollSet")
	j.user.scales(t, j.name, "RollSet")
}

// thereAndApplied adopts the workload, and applies its converted manifest by both ways that kubectl has.
func (j *journey) thereAndApplied(t *testing.T) {
	t.Helper()
	j.adopt(t)
	converted := filepath.Join(t.TempDir(), "converted.yaml")
	text := j.user.run(t, "convert", "-f", j.file)
	if err := os.WriteFile(converted, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ways := [][]string{{"apply", "-f", converted}}
	if !strings.Contains(text, ": null") { // the two ways take a null in a map for different values, in each kind
		ways = append(ways, []string{"apply", "--server-side", "--force-conflicts", "-f", converted})
	}
	before := j.settled(t)
	for _, how := range ways {
		j.user.kubectl(t, how...)
		after := j.settled(t)
		if before.Status.UpdateRevision != after.Status.UpdateRevision {
			t.Errorf("kubectl %s makes revision %s of %s\n%s", strings.Join(how, " "), after.Status.UpdateRevision, before.Status.UpdateRevision, j.user.run(t, "diff", j.name))
		}
		j.same(t, "after kubectl "+strings.Join(how, " "), "RollSet")
	}
}

// settled waits until all pods of the set are available at its newest revision, and returns it. Under OnDelete it deletes the
// others, as a user does.
func (j *journey) settled(t *testing.T) *v1beta1.RollSet {
	t.Helper()
	var set *v1beta1.RollSet
	eventually(t, "rollset "+j.name+" to be done", func() error {
		set = j.user.get(t, j.name)
		s := &set.Status
		if s.ObservedGeneration != set.Generation {
			return errors.New("it is not observed")
		}
		if j.onDelete {
			j.deleteOutdated(t, s.UpdateRevision)
		}
		if ready := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue ||
			s.Replicas != *set.Spec.Replicas || s.UpdatedAvailableReplicas != s.Replicas {
			return fmt.Errorf("%+v", *s)
		}
		return nil
	})
	return set
}

// deleteOutdated deletes the pods at another revision.
func (j *journey) deleteOutdated(t *testing.T, revision string) {
	t.Helper()
	pods := j.all(t)
	for i := range pods {
		if pods[i].Labels[v1beta1.RevisionLabel] != revision {
			if err := shared.Delete(t.Context(), &pods[i]); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
}

// rolled gives all containers another image, and undoes that. All pods are replaced twice, with their claims.
func (j *journey) rolled(t *testing.T) {
	t.Helper()
	before := j.settled(t)
	for _, verb := range [][]string{{"set", "image", j.name, "*=example.com/next:2"}, {"undo", j.name}} {
		old := maps.Clone(j.pods)
		j.user.run(t, verb...)
		j.settled(t)
		j.remember(t)
		for name, uid := range j.pods {
			if old[name] == uid {
				t.Errorf("after %v, pod %s was not replaced", verb, name)
			}
		}
	}
	if after := j.settled(t); after.Status.UpdateRevision != before.Status.UpdateRevision {
		t.Errorf("undo leads to revision %s, not to %s", after.Status.UpdateRevision, before.Status.UpdateRevision)
	}
}

// edits change each field that the old kind has too, one after the other. Those that move pods come first.
func (j *journey) edits() map[string]func(*v1beta1.RollSet) {
	edits := map[string]func(*v1beta1.RollSet){
		"1 template": func(set *v1beta1.RollSet) {
			set.Spec.Template.Labels["edited"] = "yes"
			metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, "example.com/edited", "yes")
			c := &set.Spec.Template.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}
			set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(7))
		},
		"2 replicas": func(set *v1beta1.RollSet) { *set.Spec.Replicas++ },
		"3 metadata": func(set *v1beta1.RollSet) {
			metav1.SetMetaDataLabel(&set.ObjectMeta, "edited", "yes")
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, "example.com/edited", "yes")
		},
		"4 minReadySeconds":      func(set *v1beta1.RollSet) { set.Spec.MinReadySeconds = 2 },
		"5 revisionHistoryLimit": func(set *v1beta1.RollSet) { set.Spec.RevisionHistoryLimit = new(int32(4)) },
	}
	rolling := func(edit func(*v1beta1.RollingUpdate)) func(*v1beta1.RollSet) {
		return func(set *v1beta1.RollSet) { edit(&set.Spec.UpdateStrategy.RollingUpdate) }
	}
	if j.kind == "deployment" {
		edits["6 progressDeadlineSeconds"] = func(set *v1beta1.RollSet) { set.Spec.ProgressDeadlineSeconds = new(int32(400)) }
		edits["7 type"] = func(set *v1beta1.RollSet) { set.Spec.UpdateStrategy.Type = v1beta1.RollingUpdateStrategy }
		edits["8 maxSurge"] = rolling(func(r *v1beta1.RollingUpdate) { r.MaxSurge = new(intstr.FromString("50%")) })
		edits["8 maxUnavailable"] = rolling(func(r *v1beta1.RollingUpdate) { r.MaxUnavailable = new(intstr.FromInt32(1)) })
		edits["9 paused"] = rolling(func(r *v1beta1.RollingUpdate) { r.Paused = true })
		return edits
	}
	edits["2 ordinals"] = func(set *v1beta1.RollSet) {
		if j.name == "queue-rabbitmq" {
			set.Spec.Ordinals = &v1beta1.Ordinals{Start: 1}
		}
	}
	edits["4 podManagementPolicy"] = func(set *v1beta1.RollSet) {
		set.Spec.PodManagementPolicy = v1beta1.ParallelPodManagement
	}
	edits["5 retention"] = func(set *v1beta1.RollSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: v1beta1.RetainClaims, WhenScaled: v1beta1.DeleteClaims}
	}
	edits["6 claim template"] = func(set *v1beta1.RollSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("200Gi")
		metav1.SetMetaDataLabel(&set.Spec.VolumeClaimTemplates[0].ObjectMeta, "edited", "yes")
	}
	if !j.onDelete {
		edits["8 partition"] = rolling(func(r *v1beta1.RollingUpdate) { r.Partition = new(intstr.FromInt32(1)) })
		edits["8 maxUnavailable"] = rolling(func(r *v1beta1.RollingUpdate) { r.MaxUnavailable = new(intstr.FromString("40%")) })
	}
	return edits
}

// edited makes each edit, and waits for what it does.
func (j *journey) edited(t *testing.T) {
	t.Helper()
	edits := j.edits()
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		eventually(t, "edit "+name, func() error {
			set := j.user.get(t, j.name)
			edits[name](set)
			return shared.Update(t.Context(), set)
		})
		j.settled(t)
		j.remember(t)
	}
}

// backAndThereAgain releases the set and adopts the workload again. The set ends as it was.
func (j *journey) backAndThereAgain(t *testing.T) {
	t.Helper()
	before := j.settled(t)
	j.remember(t)
	j.move(t, "release", j.name)
	j.same(t, "after release", map[string]string{"statefulset": "StatefulSet", "deployment": "ReplicaSet"}[j.kind])
	j.user.scales(t, j.name, map[string]string{"statefulset": "StatefulSet", "deployment": "Deployment"}[j.kind])
	j.kill = false
	j.adopt(t)
	after := j.settled(t)
	for _, part := range []struct {
		name          string
		before, after any
	}{{"spec", before.Spec, after.Spec}, {"labels", before.Labels, after.Labels}, {"annotations", withoutOwn(before), withoutOwn(after)}} {
		if path := differs(part.name, plain(t, part.before), plain(t, part.after)); path != "" {
			t.Errorf("there and back again, %s is not the same:\n%v\n%v", path, plain(t, part.before), plain(t, part.after))
		}
	}
}

// withoutOwn returns the annotations that a user wrote.
func withoutOwn(set *v1beta1.RollSet) map[string]string {
	kept := maps.Clone(set.Annotations)
	delete(kept, corev1.LastAppliedConfigAnnotation)
	return kept
}

// plain returns a value as JSON has it.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// differs returns the path of the first field of one value that another value has not, or not so; empty if there is none. The
// other may have more, because the API server spells out defaults.
func differs(path string, one, other any) string {
	fields, isObject := one.(map[string]any)
	if !isObject {
		if reflect.DeepEqual(one, other) {
			return ""
		}
		items, ok := one.([]any)
		others, isList := other.([]any)
		if !ok || !isList || len(items) != len(others) {
			return path
		}
		for i := range items {
			if found := differs(fmt.Sprintf("%s[%d]", path, i), items[i], others[i]); found != "" {
				return found
			}
		}
		return ""
	}
	others, _ := other.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if found := differs(path+"."+key, fields[key], others[key]); found != "" {
			return found
		}
	}
	return ""
}
