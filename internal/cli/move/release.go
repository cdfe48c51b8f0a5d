// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/cli/session"
)

// release is the command release.
type release struct {
	session *session.Session
	yes     bool
	timeout time.Duration
}

func newRelease(s *session.Session) *cobra.Command {
	r := &release{session: s}
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Move a RollSet that was adopted back to the kind that it was, without a restart",
		Long: templates.LongDesc(`Move a RollSet that was adopted back to the StatefulSet or Deployment that it was. It gets the template, the
			claim templates and the number of replicas that the RollSet has now. Its pods run on, and no container is restarted.

			Without --yes the steps are printed and nothing is written. It can be ended at any time: the same command goes on where it
			was.`),
		Example:           templates.Examples(`kubectl rollset release db --yes`),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&r.yes, "yes", false, "Do it; without this nothing is written")
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
		return fmt.Errorf("there is no configmap %s: rollset %s was not adopted by this plugin, or the way back was deleted", recordName(name), name)
	}
	set, err := m.get(ctx, m.Set)
	if err != nil {
		return err
	}
	switch {
	case set != nil && set.GetDeletionTimestamp() == nil:
		if err := m.prepareRelease(ctx, set); err != nil {
			return err
		}
	case !m.Back:
		return fmt.Errorf("there is no rollset %s in namespace %s", name, m.namespace)
	}
	steps := m.release()
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

// prepareRelease records what a set becomes. Nothing is written.
func (m *mover) prepareRelease(ctx context.Context, raw *unstructured.Unstructured) error {
	if m.Old.GetKind() == cloneSet {
		return errors.New("the way back to a CloneSet is OpenKruise's: delete the RollSet with --cascade=orphan and apply the CloneSet paused")
	}
	set := &v1alpha1.RollSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, set); err != nil {
		return fmt.Errorf("decode rollset %s: %w", raw.GetName(), err)
	}
	if len(set.Spec.VolumeClaimTemplates) > 0 && m.Old.GetKind() == deployment {
		return fmt.Errorf("rollset %s has claim templates, which a Deployment cannot have", set.Name)
	}
	if err := m.bringUpToDate(raw); err != nil {
		return err
	}
	m.Pods = map[string]types.UID{}
	list, err := m.ownPods(ctx, set)
	if err != nil {
		return err
	}
	for name, p := range list {
		if p.revision != set.Status.UpdateRevision {
			return fmt.Errorf("pod %s is not at the update revision: end the rollout of rollset %s first", name, set.Name)
		}
		m.Pods[name] = p.uid
	}
	judged := m.Old.DeepCopy()
	judged.SetNamespace(m.namespace)
	if err := m.client.Create(ctx, judged, client.DryRunAll); err != nil {
		return fmt.Errorf("the API server refuses the %s: %w", m.Old.GetKind(), err)
	}
	m.UID, m.Generation, m.Back = set.UID, set.Generation, true
	return nil
}

// bringUpToDate updates the manifest of the old kind to what the set has now. The set of a Deployment has no claim
// templates.
func (m *mover) bringUpToDate(set *unstructured.Unstructured) error {
	for _, field := range []string{"replicas", "template", "volumeClaimTemplates"} {
		value, ok, err := unstructured.NestedFieldCopy(set.Object, "spec", field)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := unstructured.SetNestedField(m.Old.Object, value, "spec", field); err != nil {
			return err
		}
	}
	return nil
}

// ownPod is what matters of a pod for its release.
type ownPod struct {
	uid      types.UID
	revision string
}

// ownPods returns the pods of a set by name.
func (m *mover) ownPods(ctx context.Context, set *v1alpha1.RollSet) (map[string]ownPod, error) {
	m.ReplicaSets = nil
	pods, err := m.findPods(ctx, &unstructured.Unstructured{Object: map[string]any{"kind": "RollSet", "metadata": map[string]any{"uid": string(set.UID)}}})
	if err != nil {
		return nil, err
	}
	all := map[string]ownPod{}
	for _, pod := range pods {
		all[pod.Name] = ownPod{pod.UID, pod.Labels[v1alpha1.RevisionLabel]}
	}
	return all, nil
}

// release returns the steps from a RollSet back to its old kind.
func (m *mover) release() []step {
	name, old := m.Set.GetName(), describe(m.Old)
	keep := step{"record the move of rollset/" + name + " in configmap/" + recordName(name), func(ctx context.Context) error {
		return m.save(ctx, m.client, m.namespace, nil)
	}}
	letGo := step{"delete rollset/" + name + ", and leave what it owns", func(ctx context.Context) error {
		if err := m.letGo(ctx, v1alpha1.GroupVersion.WithKind("RollSet"), name, m.UID, m.Generation); err != nil {
			return err
		}
		return m.orphaned(ctx, m.UID)
	}}
	var steps []step
	if m.Old.GetKind() == statefulSet {
		steps = []step{
			keep, letGo,
			{"create " + old + ", which is to leave pods alone for now", m.createResting},
			{"label the pods as " + old + " knows them", m.labelForStatefulSet},
			{"give " + old + " its update strategy", m.wakeStatefulSet},
		}
	} else {
		hash := m.podTemplateHash()
		steps = []step{
			keep,
			{"label the pods pod-template-hash=" + hash, func(ctx context.Context) error { return m.label(ctx, appsv1.DefaultDeploymentUniqueLabelKey, hash) }},
			letGo,
			{"create a ReplicaSet that adopts the pods", m.createReplicaSet},
			{"create " + old, func(ctx context.Context) error { return m.create(ctx, m.Old) }},
		}
	}
	return append(steps,
		step{"wait until " + old + " has the pods", m.awaitOld},
		step{"point autoscalers of rollset/" + name + " to " + old, func(ctx context.Context) error { return m.retargetAll(ctx, m.Set, m.Old) }},
		step{"delete configmap/" + recordName(name), func(ctx context.Context) error { return drop(ctx, m.client, m.namespace, name) }},
	)
}

// createResting creates a StatefulSet that updates no pod, to learn the name of its revision.
func (m *mover) createResting(ctx context.Context) error {
	resting := m.Old.DeepCopy()
	if err := unstructured.SetNestedMap(resting.Object, map[string]any{"type": "OnDelete"}, "spec", "updateStrategy"); err != nil {
		return err
	}
	return m.create(ctx, resting)
}

// labelForStatefulSet labels the pods with the StatefulSet's name of their revision.
func (m *mover) labelForStatefulSet(ctx context.Context) error {
	revision := ""
	err := m.await(ctx, describe(m.Old)+" to name its revision", func(ctx context.Context) (bool, error) {
		o, err := m.get(ctx, m.Old)
		if err != nil || o == nil {
			return false, err
		}
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		revision, _, _ = unstructured.NestedString(o.Object, "status", "updateRevision")
		return revision != "" && observed == o.GetGeneration(), nil
	})
	if err != nil {
		return err
	}
	return m.label(ctx, appsv1.ControllerRevisionHashLabelKey, revision)
}

// wakeStatefulSet gives a StatefulSet the update strategy of its manifest.
func (m *mover) wakeStatefulSet(ctx context.Context) error {
	o, err := m.get(ctx, m.Old)
	if err != nil || o == nil {
		return errors.Join(err, errors.New("the StatefulSet is gone"))
	}
	after := o.DeepCopy()
	strategy, ok, err := unstructured.NestedMap(m.Old.Object, "spec", "updateStrategy")
	if err != nil {
		return err
	}
	if !ok {
		strategy = map[string]any{"type": "RollingUpdate"}
	}
	if err := unstructured.SetNestedMap(after.Object, strategy, "spec", "updateStrategy"); err != nil {
		return err
	}
	return m.client.Patch(ctx, after, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{}))
}

// podTemplateHash returns the value in the selector of a ReplicaSet. A Deployment accepts any.
func (m *mover) podTemplateHash() string {
	uid := strings.ReplaceAll(string(m.UID), "-", "")
	return uid[:min(10, len(uid))]
}

// createReplicaSet creates the ReplicaSet that a Deployment with this template will adopt.
func (m *mover) createReplicaSet(ctx context.Context) error {
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
	return m.create(ctx, o)
}

// awaitOld waits until all pods of a workload of the old kind are up to date.
func (m *mover) awaitOld(ctx context.Context) error {
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
