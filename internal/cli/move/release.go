// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/snapshot"
)

// release is the command release.
type release struct {
	session    *session.Session
	yes, lossy bool
	timeout    time.Duration
}

func newRelease(s *session.Session) *cobra.Command {
	r := &release{session: s}
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Move a RollSet that was adopted back to the kind that it was, without a restart",
		Long: templates.LongDesc(`Move a RollSet that was adopted back to the StatefulSet or Deployment that it was, with the metadata and the spec
			that the RollSet has now. Its pods run on, and no container is restarted.

			A field that the old kind does not have is an error that names it, unless --lossy leaves it out. A set with a pod that the
			old kind would delete or replace is not released: a rollout or a scale-down must end first.

			Without --yes the steps are printed and nothing is written. It can be ended at any time: the same command goes on where it
			was.`),
		Example:           templates.Examples(`kubectl rollset release db --yes`),
		Args:              session.Arguments(1, 1, "which RollSet? Give its NAME"),
		ValidArgsFunction: s.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&r.yes, "yes", false, "Do it; without this nothing is written")
	cmd.Flags().BoolVar(&r.lossy, "lossy", false, "Leave out what has no counterpart")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 5*time.Minute, "How long to wait for each step")
	return cmd
}

func (r *release) run(ctx context.Context, arg string) error {
	name, err := session.NameOf(arg)
	if err != nil {
		return err
	}
	m, err := newMover(r.session, r.timeout)
	if err != nil {
		return err
	}
	if m.record, err = load(ctx, m.client, m.namespace, name); err != nil {
		return err
	}
	if m.record == nil {
		return releaser{m}.done(ctx, name)
	}
	set, err := m.get(ctx, m.Set)
	if err != nil {
		return err
	}
	switch {
	case set != nil && set.GetDeletionTimestamp() == nil:
		if err := (releaser{m}).prepare(ctx, set, r.lossy); err != nil {
			return err
		}
	case !m.Back:
		return fmt.Errorf("there is no rollset %s in namespace %s", name, m.namespace)
	}
	steps := releaser{m}.releasing()
	if !r.yes {
		m.list(steps)
		_, err := fmt.Fprintln(r.session.Out, "Nothing was done; --yes does it.")
		return err
	}
	if err := m.carryOut(ctx, steps, fmt.Sprintf("kubectl rollset release %s --yes", arg)); err != nil {
		return err
	}
	return m.tellPods(ctx)
}

// releaser moves the pods of a RollSet to another workload.
type releaser struct{ *mover }

// done judges a set without a record. If the set is gone and the old kind is there, it was released before.
func (m releaser) done(ctx context.Context, name string) error {
	for _, gvk := range []schema.GroupVersionKind{v1beta1.GroupVersion.WithKind("RollSet"), appsv1.SchemeGroupVersion.WithKind(statefulSet), appsv1.SchemeGroupVersion.WithKind(deployment)} {
		like := &unstructured.Unstructured{}
		like.SetGroupVersionKind(gvk)
		like.SetName(name)
		o, err := m.get(ctx, like)
		switch {
		case err != nil:
			return err
		case o != nil && gvk.Group == appsv1.GroupName:
			_, err := fmt.Fprintf(m.session.Out, "rollset/%s is gone, and there is %s: nothing is left to do\n", name, describe(o))
			return err
		case o != nil:
			return fmt.Errorf("there is no configmap %s: rollset %s was not adopted by this plugin, or the way back was deleted", recordName(name), name)
		}
	}
	return fmt.Errorf("there is no rollset %s in namespace %s", name, m.namespace)
}

// prepare records what a set becomes. Nothing is written.
func (m releaser) prepare(ctx context.Context, raw *unstructured.Unstructured, lossy bool) error {
	if m.Old.GetKind() == cloneSet {
		return errors.New("the way back to a CloneSet is OpenKruise's: delete the RollSet with --cascade=orphan and apply the CloneSet paused")
	}
	set := &v1beta1.RollSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, set); err != nil {
		return fmt.Errorf("decode rollset %s: %w", raw.GetName(), err)
	}
	if err := uncontrolled(raw); err != nil {
		return err
	}
	if set.Status.ObservedGeneration != set.Generation {
		return fmt.Errorf("the manager has not observed the newest spec of rollset %s: it has generation %d, and the status is about %d; wait for it with kubectl rollset status %s",
			set.Name, set.Generation, set.Status.ObservedGeneration, set.Name)
	}
	limits, err := snapshot.ResolveLimits(&set.Spec)
	if err != nil {
		return fmt.Errorf("rollset %s: %w", set.Name, err)
	}
	old, lost := restore(raw, m.Old, limits)
	if err := acceptLoss(m.session, lost, lossy); err != nil {
		return err
	}
	m.ReplicaSets = nil
	pods, err := adopter(m).findPods(ctx, raw)
	if err != nil {
		return err
	}
	m.Pods = map[string]types.UID{}
	for _, pod := range pods {
		m.Pods[pod.Name] = pod.UID
	}
	if err := staysAll(set, limits, pods); err != nil {
		return err
	}
	if _, err := m.tryOut(ctx, old); err != nil {
		return err
	}
	m.Old, m.UID, m.Generation, m.Revision, m.Back = old, set.UID, set.Generation, set.Status.UpdateRevision, true
	return nil
}

// staysAll returns an error that names a pod which the old kind would delete or replace.
func staysAll(set *v1beta1.RollSet, limits snapshot.Limits, pods []*corev1.Pod) error {
	ordinal := set.Spec.PodIdentity == v1beta1.OrdinalIdentity
	first := 0
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	for _, pod := range pods {
		if pod.Labels[v1beta1.RevisionLabel] != set.Status.UpdateRevision {
			return fmt.Errorf("pod %s is not at the update revision and would be replaced: end the rollout of rollset %s first", pod.Name, set.Name)
		}
		n, err := strconv.Atoi(strings.TrimPrefix(pod.Name, set.Name+"-"))
		if ordinal && (err != nil || n < first || n >= first+limits.Replicas) {
			return fmt.Errorf("pod %s would be deleted: a StatefulSet with spec.replicas %d and spec.ordinals.start %d has no such ordinal; rollset %s has spec.reserveOrdinals, or is being scaled",
				pod.Name, limits.Replicas, first, set.Name)
		}
	}
	if !ordinal && len(pods) > limits.Replicas {
		return fmt.Errorf("rollset %s has %d pods and spec.replicas is %d, so that %d would be deleted: wait until it is scaled", set.Name, len(pods), limits.Replicas, len(pods)-limits.Replicas)
	}
	return nil
}

// releasing returns the steps from a RollSet back to its old kind.
func (m releaser) releasing() []step {
	name, old := m.Set.GetName(), describe(m.Old)
	keep := step{"record the move of rollset/" + name + " in configmap/" + recordName(name), func(ctx context.Context) error {
		return m.save(ctx, m.client, m.namespace, nil)
	}}
	letGo := step{"delete rollset/" + name + ", and leave what it owns", func(ctx context.Context) error {
		return m.letGo(ctx, v1beta1.GroupVersion.WithKind("RollSet"), name, m.UID, m.Generation)
	}}
	var steps []step
	if m.Old.GetKind() == statefulSet {
		steps = []step{
			keep, letGo,
			{"create " + old + ", which is to leave pods alone for now", rest(m).createResting},
			{"label the pods as " + old + " knows them", rest(m).labelForStatefulSet},
			{"give " + old + " its update strategy", rest(m).wakeStatefulSet},
		}
	} else {
		hash := m.podTemplateHash()
		steps = []step{
			keep, letGo,
			{"label the pods pod-template-hash=" + hash, func(ctx context.Context) error {
				if err := m.free(ctx, m.Set); err != nil {
					return err
				}
				return m.label(ctx, appsv1.DefaultDeploymentUniqueLabelKey, hash)
			}},
			{"create a ReplicaSet that adopts the pods", m.createReplicaSet},
			{"create " + old, func(ctx context.Context) error { return m.create(ctx, m.Old) }},
		}
	}
	return append(steps,
		step{"point autoscalers of rollset/" + name + " to " + old, func(ctx context.Context) error { return m.retargetAll(ctx, m.Set, m.Old) }},
		step{"wait until " + old + " has the pods", m.awaitOld},
		step{"delete configmap/" + recordName(name), func(ctx context.Context) error { return forget(ctx, m.client, m.namespace, name) }},
	)
}

// podTemplateHash returns the value in the selector of a ReplicaSet. A Deployment accepts any.
func (m releaser) podTemplateHash() string {
	uid := strings.ReplaceAll(string(m.UID), "-", "")
	return uid[:min(10, len(uid))]
}

// createReplicaSet creates the ReplicaSet that a Deployment with this template will adopt, and waits until the controller manager has seen
// it. A Deployment whose controller does not see it makes another one, and replaces all pods.
func (m releaser) createReplicaSet(ctx context.Context) error {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Old.Object, d); err != nil {
		return fmt.Errorf("decode the Deployment: %w", err)
	}
	hash := m.podTemplateHash()
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: d.Name + "-" + hash, Labels: map[string]string{}},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: d.Spec.Replicas, MinReadySeconds: d.Spec.MinReadySeconds, Selector: d.Spec.Selector.DeepCopy(), Template: *d.Spec.Template.DeepCopy(),
		},
	}
	maps.Copy(rs.Labels, d.Spec.Template.Labels)
	rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	metav1.AddLabelToSelector(rs.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	metav1.SetMetaDataLabel(&rs.Spec.Template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rs)
	if err != nil {
		return fmt.Errorf("encode the ReplicaSet: %w", err)
	}
	o := &unstructured.Unstructured{Object: raw}
	o.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	unstructured.RemoveNestedField(o.Object, "status")
	if err := m.create(ctx, o); err != nil {
		return err
	}
	return m.await(ctx, describe(o)+" to be observed", func(ctx context.Context) (bool, error) {
		seen, err := m.get(ctx, o)
		if err != nil || seen == nil {
			return false, err
		}
		observed, _, _ := unstructured.NestedInt64(seen.Object, "status", "observedGeneration")
		return observed >= seen.GetGeneration(), nil
	})
}

// awaitOld waits until all pods of a workload of the old kind are up to date.
func (m releaser) awaitOld(ctx context.Context) error {
	return m.await(ctx, describe(m.Old)+" to have the pods", func(ctx context.Context) (bool, error) {
		o, err := m.get(ctx, m.Old)
		if err != nil || o == nil {
			return false, err
		}
		status := func(field string) int64 {
			n, _, _ := unstructured.NestedInt64(o.Object, "status", field)
			return n
		}
		replicas, ok, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if !ok {
			replicas = 1
		}
		return status("observedGeneration") == o.GetGeneration() && status("updatedReplicas") == replicas &&
			status("replicas") == replicas && status("readyReplicas") == replicas, nil
	})
}
