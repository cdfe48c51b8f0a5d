// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
)

// OptionalSources are the kinds that matter only to sets with spec.disruption. A generic event with an object without a name
// concerns all of these sets.
func (r *Router) OptionalSources(c Cluster) []Source {
	e := events{Router: r, Cluster: c}
	return []Source{
		{Object: &corev1.Node{}, Handler: wakeUp{events: e, sets: e.setsOfNode, changed: nodeChanged}},
		{Object: &policyv1.PodDisruptionBudget{}, Handler: wakeUp{events: e, sets: e.setsOfBudget, changed: budgetChanged}},
	}
}

// HadBudget reports whether an event showed a disruption budget that the set controls. Such a set looks at budgets even if it
// wants none now, or its status does not say that it ever did.
func (r *Router) HadBudget(set types.UID) bool { return r.budgeted.has(set) }

// budgeted holds the owners of disruption budgets.
type budgeted struct {
	mu     sync.Mutex
	owners map[types.UID]bool
}

func (b *budgeted) note(owner types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owners == nil {
		b.owners = map[types.UID]bool{}
	}
	b.owners[owner] = true
}

func (b *budgeted) has(owner types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owners[owner]
}

func (b *budgeted) forget(owner types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.owners, owner)
}

func nodeChanged(_ context.Context, before, after client.Object) bool {
	a, isNode := before.(*corev1.Node)
	b, isNodeToo := after.(*corev1.Node)
	return !isNode || !isNodeToo || informer.NodeChanged(a, b)
}

func budgetChanged(_ context.Context, before, after client.Object) bool {
	a, isBudget := before.(*policyv1.PodDisruptionBudget)
	b, isBudgetToo := after.(*policyv1.PodDisruptionBudget)
	return !isBudget || !isBudgetToo || informer.BudgetChanged(a, b)
}

// setsOfNode returns all sets that replace pods of nodes that leave: any of them may have pods on the node, or wait for one
// that stays.
func (e events) setsOfNode(ctx context.Context, _ client.Object) []reconcile.Request {
	return e.setsThat(ctx, "", func(set *v1beta1.RollSet) bool { return set.Spec.ReplacesOnDrain() })
}

// setsOfBudget returns the set that controls a budget, and all sets of its namespace with a budget of their own: a budget that
// selects their pods, or has their name, changes what is wanted.
func (e events) setsOfBudget(ctx context.Context, budget client.Object) []reconcile.Request {
	owner, owned := informer.SetOf(budget)
	if owned {
		e.budgeted.note(metav1.GetControllerOfNoCopy(budget).UID)
	}
	return e.setsThat(ctx, budget.GetNamespace(), func(set *v1beta1.RollSet) bool {
		return set.Spec.WantsBudget() || client.ObjectKeyFromObject(set) == owner
	})
}

// setsThat returns the sets of a namespace, or of all if it is empty, for which a condition holds.
func (e events) setsThat(ctx context.Context, namespace string, holds func(*v1beta1.RollSet) bool) []reconcile.Request {
	sets := &v1beta1.RollSetList{}
	if err := e.Cache.List(ctx, sets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // a cache that cannot list sets does not start
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		if holds(&sets.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}
