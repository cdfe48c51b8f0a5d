// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/cli/view"
)

// adopt is the command adopt.
type adopt struct {
	session                   *session.Session
	yes, lossy, allowRestarts bool
	timeout                   time.Duration
}

func newAdopt(s *session.Session) *cobra.Command {
	a := &adopt{session: s}
	cmd := &cobra.Command{
		Use:   "adopt (statefulset/NAME | deployment/NAME | cloneset/NAME)",
		Short: "Move a running workload over to a RollSet, without a restart",
		Long: templates.LongDesc(`Move a running workload over to a RollSet of the same name. Its pods run on, and no container is restarted.

			Without --yes nothing is written: the API server is asked what it makes of both templates, and the steps are printed. A
			pod that differs from what the RollSet's template gives would be replaced; that is an error unless --allow-restarts.

			It can be ended at any time: the same command goes on where it was. What it has to remember is in the ConfigMap
			NAME-rollset-adoption, which is also how release knows the way back. While it works, no controller replaces a lost pod.`),
		Example: templates.Examples(`
			kubectl rollset adopt statefulset/db
			kubectl rollset adopt statefulset/db --yes`),
		Args: session.Arguments(1, 2, "which workload? Give KIND/NAME, such as statefulset/db"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), strings.Join(args, "/")) },
	}
	cmd.Flags().BoolVar(&a.yes, "yes", false, "Do it; without this nothing is written")
	cmd.Flags().BoolVar(&a.lossy, "lossy", false, "Leave out what has no counterpart")
	cmd.Flags().BoolVar(&a.allowRestarts, "allow-restarts", false, "Go on though pods will be replaced, within maxUnavailable")
	cmd.Flags().DurationVar(&a.timeout, "timeout", 5*time.Minute, "How long to wait for each step")
	return cmd
}

// parseWorkload returns the kind and name in an argument such as statefulset/db.
func parseWorkload(arg string) (schema.GroupVersionKind, string, error) {
	kind, name, _ := strings.Cut(arg, "/")
	if name == "" || strings.Contains(name, "/") {
		return schema.GroupVersionKind{}, "", fmt.Errorf("%q is not KIND/NAME, such as statefulset/db", arg)
	}
	resource, _, _ := strings.Cut(strings.ToLower(kind), ".")
	switch resource {
	case "statefulset", "statefulsets", "sts":
		return appsv1.SchemeGroupVersion.WithKind(statefulSet), name, nil
	case "deployment", "deployments", "deploy":
		return appsv1.SchemeGroupVersion.WithKind(deployment), name, nil
	case "cloneset", "clonesets", "clone":
		return session.CloneSet(), name, nil
	default:
		return schema.GroupVersionKind{}, "", fmt.Errorf("%s cannot be moved to a RollSet; a statefulset, deployment or cloneset can", kind)
	}
}

func (a *adopt) run(ctx context.Context, arg string) error {
	gvk, name, err := parseWorkload(arg)
	if err != nil {
		return err
	}
	m, err := newMover(a.session, a.timeout)
	if err != nil {
		return err
	}
	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(gvk)
	like.SetName(name)
	old, err := m.get(ctx, like)
	if err != nil {
		return err
	}
	if m.record, err = load(ctx, m.client, m.namespace, name); err != nil {
		return err
	}
	switch {
	case m.record != nil && m.Back:
		return fmt.Errorf("a release of rollset %s is under way; end it first with kubectl rollset release %s --yes", name, name)
	case old == nil && m.record == nil:
		return fmt.Errorf("there is no %s in namespace %s", describe(like), m.namespace)
	case old == nil || m.record != nil && old.GetUID() == m.UID && old.GetDeletionTimestamp() != nil:
		fmt.Fprintf(a.session.Out, "%s is on its way to rollset/%s\n", describe(m.Old), name)
	default:
		if err := a.prepare(ctx, m, old); err != nil {
			return err
		}
	}
	steps := adopter{m}.adopting()
	if !a.yes {
		m.list(steps)
		_, err := fmt.Fprintln(a.session.Out, "Nothing was done; --yes does it.")
		return err
	}
	if err := m.carryOut(ctx, steps, fmt.Sprintf("kubectl rollset adopt %s --yes", arg)); err != nil {
		return err
	}
	return m.tellPods(ctx)
}

func newMover(s *session.Session, timeout time.Duration) (*mover, error) {
	namespace, err := s.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	return &mover{session: s, client: c, namespace: namespace, timeout: timeout}, nil
}

// prepare finds out what a workload becomes, and records it. Nothing is written.
func (a *adopt) prepare(ctx context.Context, m *mover, old *unstructured.Unstructured) error {
	if err := uncontrolled(old); err != nil {
		return err
	}
	set, lost := translate(old)
	if err := acceptLoss(m.session, lost, a.lossy); err != nil {
		return err
	}
	m.record = &record{Old: manifest(old), UID: old.GetUID(), Generation: old.GetGeneration(), Set: set, Pods: map[string]types.UID{}}
	pods, err := adopter{m}.findPods(ctx, old)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		m.Pods[pod.Name] = pod.UID
	}
	judged, err := m.tryOut(ctx, set)
	if err != nil {
		return err
	}
	typed := &v1beta1.RollSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(judged.Object, typed); err != nil {
		return fmt.Errorf("decode the RollSet: %w", err)
	}
	different, err := compare(ctx, m.client, typed, pods)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.session.Out, "%s becomes rollset/%s; %d of %d pods match its template\n",
		describe(old), set.GetName(), len(pods)-len(different), len(pods))
	if len(different) == 0 {
		return nil
	}
	if a.allowRestarts {
		fmt.Fprintln(a.session.ErrOut, "warning: will be replaced:", strings.Join(different, "; "))
		return nil
	}
	return fmt.Errorf("pods differ from the template and would be replaced: %s; --allow-restarts accepts that", strings.Join(different, "; "))
}

// manifest returns an object without the fields that the API server sets.
func manifest(o *unstructured.Unstructured) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata(o)}}
	m.SetGroupVersionKind(o.GroupVersionKind())
	if spec, ok := o.DeepCopy().Object["spec"]; ok {
		m.Object["spec"] = spec
	}
	return m
}

// adopter moves the pods of another workload to a RollSet.
type adopter struct{ *mover }

// findPods returns the pods that a workload controls, directly or through its ReplicaSets, which it records.
func (m adopter) findPods(ctx context.Context, old *unstructured.Unstructured) ([]*corev1.Pod, error) {
	owners := map[types.UID]bool{old.GetUID(): true}
	if old.GetKind() == deployment {
		list := &appsv1.ReplicaSetList{}
		if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
			return nil, fmt.Errorf("list replicasets: %w", err)
		}
		m.ReplicaSets = map[string]types.UID{}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], old) {
				m.ReplicaSets[list.Items[i].Name] = list.Items[i].UID
				owners[list.Items[i].UID] = true
			}
		}
	}
	list := &corev1.PodList{}
	if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owners[owner.UID] && list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// adopting returns the steps from another kind to a RollSet.
func (m adopter) adopting() []step {
	name, old := m.Set.GetName(), describe(m.Old)
	steps := []step{
		{"keep the manifest of " + old + " in configmap/" + recordName(name), func(ctx context.Context) error {
			return m.save(ctx, m.client, m.namespace, nil)
		}},
		{"delete " + old + ", and leave what it owns", func(ctx context.Context) error {
			return m.letGo(ctx, m.Old.GroupVersionKind(), m.Old.GetName(), m.UID, m.Generation)
		}},
	}
	if len(m.ReplicaSets) > 0 {
		steps = append(steps, step{fmt.Sprintf("delete its %d ReplicaSets, and leave the pods", len(m.ReplicaSets)), m.letGoReplicaSets})
	}
	return append(steps,
		step{"create rollset/" + name, func(ctx context.Context) error {
			if err := m.free(ctx, m.Old); err != nil {
				return err
			}
			return m.create(ctx, m.Set)
		}},
		step{"point autoscalers of " + old + " to rollset/" + name, func(ctx context.Context) error {
			return m.retargetAll(ctx, m.Old, m.Set)
		}},
		step{fmt.Sprintf("wait until rollset/%s has adopted the pods and is done", name), func(ctx context.Context) error {
			err := view.Await(ctx, m.session, client.ObjectKey{Namespace: m.namespace, Name: name}, view.AwaitOptions{Timeout: m.timeout})
			if exit := (*session.ExitError)(nil); errors.As(err, &exit) && (exit.Code == session.ExitPaused || exit.Code == session.ExitOnDelete) {
				return nil // the pods are adopted; the rollout rests as that of the old workload did
			}
			return err
		}},
		step{"keep configmap/" + recordName(name) + " for as long as the set is there", m.handOver},
	)
}

// letGoReplicaSets deletes the ReplicaSets of a deleted Deployment.
func (m adopter) letGoReplicaSets(ctx context.Context) error {
	for name, uid := range m.ReplicaSets {
		if err := m.letGo(ctx, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), name, uid, 0); err != nil {
			return err
		}
	}
	return nil
}

// handOver makes the set the owner of the record.
func (m adopter) handOver(ctx context.Context) error {
	set := &v1beta1.RollSet{}
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: m.Set.GetName()}, set); err != nil {
		return err
	}
	return m.save(ctx, m.client, m.namespace, set)
}
