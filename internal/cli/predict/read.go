// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/forecast"
	"rollset.dev/rollset/internal/model/podstate"
)

// readRevisions reads the revisions of all sets of a namespace.
func readRevisions(ctx context.Context, c client.Client, namespace string) ([]client.Object, error) {
	revisions := &appsv1.ControllerRevisionList{}
	if err := c.List(ctx, revisions, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("read what the controller sees: %w", err)
	}
	return pointers(revisions.Items), nil
}

// readObjects reads what else the controller sees around a set. The user may have no access to storage classes.
func readObjects(ctx context.Context, c client.Client, namespace string) (objects []client.Object, notes []string, err error) {
	pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{pods, claims} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, nil, fmt.Errorf("read what the controller sees: %w", err)
		}
	}
	classes := &storagev1.StorageClassList{}
	if err := c.List(ctx, classes); err != nil {
		notes = append(notes, "storage classes: "+session.Explain(err))
	}
	objects = append(objects, pointers(claims.Items)...)
	objects = append(objects, pointers(pods.Items)...)
	return append(objects, pointers(classes.Items)...), notes, nil
}

// readAround reads what spec.disruption makes matter to a set. The user may lack the rights.
func readAround(ctx context.Context, c client.Client, set *v1beta1.RollSet) (objects []client.Object, notes []string) {
	if set.Spec.ReplacesOnDrain() {
		nodes := &corev1.NodeList{}
		if err := c.List(ctx, nodes); err != nil {
			notes = append(notes, "nodes: all are assumed to stay, because they could not be read: "+session.Explain(err))
		}
		objects = append(objects, pointers(nodes.Items)...)
	}
	if set.Spec.WantsBudget() {
		budgets := &policyv1.PodDisruptionBudgetList{}
		if err := c.List(ctx, budgets, client.InNamespace(set.Namespace)); err != nil {
			notes = append(notes, "disruption budgets: none is assumed to exist, because they could not be read: "+session.Explain(err))
		}
		objects = append(objects, pointers(budgets.Items)...)
	}
	return objects, notes
}

func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

// obstacles returns the budgets and quotas that the plan meets, as far as the user may read them.
func (*plan) obstacles(ctx context.Context, c client.Client, in forecast.Input, f *forecast.Forecast) []string {
	var all []string
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := c.List(ctx, budgets, client.InNamespace(in.After.Namespace)); err == nil {
		for i := range budgets.Items {
			if metav1.IsControlledBy(&budgets.Items[i], in.After) {
				continue // it follows the set
			}
			if text := ofBudget(&budgets.Items[i], in, f); text != "" {
				all = append(all, text)
			}
		}
	}
	quotas := &corev1.ResourceQuotaList{}
	if err := c.List(ctx, quotas, client.InNamespace(in.After.Namespace)); err == nil {
		for i := range quotas.Items {
			if text := ofQuota(&quotas.Items[i], in, f); text != "" {
				all = append(all, text)
			}
		}
	}
	return all
}

// ofBudget describes the effect of the plan on a budget that selects the pods; empty if the budget is kept. The controller
// deletes pods and does not evict them, so no budget stops it. A budget may select pods of other workloads too, which stay as
// they are.
func ofBudget(budget *policyv1.PodDisruptionBudget, in forecast.Input, f *forecast.Forecast) string {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(in.After.Spec.Template.Labels)) {
		return ""
	}
	expected, healthy := f.Replicas, f.LowestAvailable
	for _, obj := range in.Objects {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.DeletionTimestamp != nil || podstate.Finished(pod) || !selector.Matches(labels.Set(pod.Labels)) ||
			in.Before != nil && metav1.IsControlledBy(pod, in.Before) {
			continue
		}
		expected++
		if _, ready := podstate.ReadySince(pod); ready {
			healthy++
		}
	}
	least := 0
	switch {
	case budget.Spec.MinAvailable != nil:
		least, err = intstr.GetScaledValueFromIntOrPercent(budget.Spec.MinAvailable, expected, true)
	case budget.Spec.MaxUnavailable != nil:
		least, err = intstr.GetScaledValueFromIntOrPercent(budget.Spec.MaxUnavailable, expected, true)
		least = expected - least
	}
	if err != nil || healthy > least {
		return ""
	}
	if healthy == least {
		return fmt.Sprintf("PodDisruptionBudget %s asks for %d available pods, and there will be no more: drains wait meanwhile", budget.Name, least)
	}
	return fmt.Sprintf("PodDisruptionBudget %s asks for %d available pods, and there will be %d: a budget does not stop the controller, and drains wait meanwhile",
		budget.Name, least, healthy)
}

// ofQuota describes the quota that is too small for the largest number of pods at a time; empty if none is.
func ofQuota(quota *corev1.ResourceQuota, in forecast.Input, f *forecast.Forecast) string {
	more := f.MostPods - f.PodsNow()
	if more <= 0 || len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
		return ""
	}
	spec := &in.After.Spec.Template.Spec
	if in.Sample != nil { // with the defaults of a LimitRange, and injected containers
		spec = &in.Sample.Spec
	}
	needs := forecast.QuotaOf(spec)
	for _, name := range []corev1.ResourceName{
		corev1.ResourcePods, "count/pods", corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceCPU, corev1.ResourceMemory,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	} {
		hard, limited := quota.Status.Hard[name]
		need, needed := needs[name]
		if !limited || !needed {
			continue
		}
		sum := quota.Status.Used[name].DeepCopy()
		for range more {
			sum.Add(need)
		}
		if sum.Cmp(hard) > 0 {
			return fmt.Sprintf("ResourceQuota %s allows %s=%s, and %d more pods take it to %s: some will be refused", quota.Name, name, hard.String(), more, sum.String())
		}
	}
	return ""
}

// fromFiles returns the input of a plan without a cluster: from one file for a new set, or from two for a running one.
func (p *plan) fromFiles(ctx context.Context, args []string) (in forecast.Input, err error) {
	switch {
	case len(args) > 0:
		return in, fmt.Errorf("--offline asks no cluster for %s; give -f OLD -f NEW", args[0])
	case p.edit.toRevision > 0:
		return in, errors.New("--offline knows no revisions; give -f OLD -f NEW")
	case len(p.edit.filenames) == 0:
		return in, errors.New("--offline asks no cluster for the set; give -f OLD -f NEW")
	}
	files, err := rollSets(p.session, p.edit.filenames)
	if err != nil {
		return in, err
	}
	if len(files) == 0 || len(files) > 2 {
		return in, fmt.Errorf("%s: %d RollSets; --offline takes the set as it is and as it will be (-f OLD -f NEW), or a new one (-f NEW)",
			strings.Join(p.edit.filenames, ", "), len(files))
	}
	before, err := typed(files[0])
	if err != nil {
		return in, err
	}
	after, err := typed(files[len(files)-1])
	if err != nil {
		return in, err
	}
	if err := p.edit.change(after, nil); err != nil {
		return in, err
	}
	switch {
	case after.Name == "":
		return in, errors.New("the RollSet has no name")
	case before.Name != after.Name:
		return in, fmt.Errorf("the files are about two sets, %s and %s; give two versions of one", before.Name, after.Name)
	}
	if err := errors.Join(outOfRange(before), outOfRange(after), forecast.TooLarge(nil, before), forecast.TooLarge(nil, after)); err != nil {
		return in, err
	}
	if len(files) == 1 && !slices.ContainsFunc([]string{"set-image", "replicas", "partition", "patch"}, p.edit.given) {
		before = nil
	}
	return forecast.Offline(ctx, before, after, p.session.Clock.Now())
}

// outOfRange returns an error for the figures of a set that the API server would refuse.
func outOfRange(set *v1beta1.RollSet) error {
	spec := &set.Spec
	counts := map[string]*int32{"replicas": spec.Replicas, "minReadySeconds": &spec.MinReadySeconds, "revisionHistoryLimit": spec.RevisionHistoryLimit}
	if spec.Ordinals != nil {
		counts["ordinals.start"] = &spec.Ordinals.Start
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n != nil && *n < 0 {
			return fmt.Errorf("rollset %s: spec.%s is %d; it must be 0 or more", set.Name, name, *n)
		}
	}
	rolling := &spec.UpdateStrategy.RollingUpdate
	shares := map[string]*intstr.IntOrString{"partition": rolling.Partition, "maxUnavailable": rolling.MaxUnavailable, "maxSurge": rolling.MaxSurge}
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		if shares[name] == nil {
			continue
		}
		if n, err := intstr.GetScaledValueFromIntOrPercent(shares[name], 100, true); err != nil || n < 0 || name != "maxSurge" && shares[name].Type == intstr.String && n > 100 {
			return fmt.Errorf("rollset %s: spec.updateStrategy.rollingUpdate.%s is %s; it must be a number from 0 on, or a percentage", set.Name, name, shares[name])
		}
	}
	return nil
}
