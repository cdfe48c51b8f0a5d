// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// budgetCommands returns the commands about disruption budgets: the set's own, and those of users.
func budgetCommands() []command {
	return []command{
		specWord("budget", func(s *v1beta1.RollSetSpec, v string) {
			disruption(s).PodDisruptionBudget = v1beta1.BudgetPolicy(v)
		}),
		{"make-budget", 2, makeBudget},
		{"edit-budget", 2, editBudget},
		{"disown-budget", 1, disownBudget},
		{"delete-budget", 1, deleteBudget},
		read("budgets", reader.budgets),
	}
}

// budgets returns all disruption budgets, sorted by name.
func budgets(store *apiserver.Store) []*policyv1.PodDisruptionBudget {
	return slices.SortedFunc(apiserver.Each[*policyv1.PodDisruptionBudget](store), byName)
}

// byName compares objects by their names.
func byName[T client.Object](a, b T) int { return strings.Compare(a.GetName(), b.GetName()) }

// budgetNamed returns a budget; nil if there is none of the name.
func budgetNamed(store *apiserver.Store, name string) *policyv1.PodDisruptionBudget {
	budget, _ := store.Get(apiserver.Key{Kind: apiserver.Budgets, Namespace: Namespace, Name: name}).(*policyv1.PodDisruptionBudget)
	return budget
}

// makeBudget lets a user make a budget that selects pods by a label: "make-budget mine app=web". With "all" it selects every
// pod, and with "none" no pod.
func makeBudget(_ context.Context, w *World, args []string) error {
	if budgetNamed(w.Store, args[0]) != nil {
		return nil
	}
	w.note("make budget " + strings.Join(args, " "))
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: args[0]}}
	budget.Spec.MaxUnavailable = new(intstr.FromInt32(0))
	switch key, value, _ := strings.Cut(args[1], "="); key {
	case "none":
	case "all":
		budget.Spec.Selector = &metav1.LabelSelector{}
	default:
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	_, err := w.Store.Create(apiserver.Write{Actor: userActor}, budget)
	return err
}

// changeBudget lets a user change a budget, if it exists.
func (u *user) changeBudget(what, name string, change func(*policyv1.PodDisruptionBudget)) error {
	budget := budgetNamed(u.world.Store, name)
	if budget == nil {
		return nil
	}
	u.note(what)
	return edit(u.world, budget, change)
}

// editBudget lets a user write another number into a budget.
func editBudget(_ context.Context, w *World, args []string) error {
	n, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil {
		return err
	}
	return w.changeBudget("edit budget "+strings.Join(args, " "), args[0], func(b *policyv1.PodDisruptionBudget) {
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(int32(n)))
		b.Spec.UnhealthyPodEvictionPolicy = nil
	})
}

// disownBudget lets a user take the owners off a budget.
func disownBudget(_ context.Context, w *World, args []string) error {
	return w.changeBudget("disown budget "+args[0], args[0], func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil })
}

// deleteBudget lets a user delete a budget.
func deleteBudget(_ context.Context, w *World, args []string) error {
	if budgetNamed(w.Store, args[0]) == nil {
		return nil
	}
	w.note("delete budget " + args[0])
	key := apiserver.Key{Kind: apiserver.Budgets, Namespace: Namespace, Name: args[0]}
	return w.Store.Delete(apiserver.Write{Actor: userActor, Key: key})
}

// budgets puts the budgets and the condition about them into the strip.
func (r reader) budgets() {
	set := r.Set()
	all := []string{}
	for _, b := range budgets(r.Store) {
		whose := "not the set's"
		if set != nil && invariants.OwnerOf(b) == set.UID {
			whose = "the set's"
		}
		number := fmt.Sprintf("maxUnavailable %s", b.Spec.MaxUnavailable)
		if b.Spec.MinAvailable != nil {
			number = fmt.Sprintf("minAvailable %s", b.Spec.MinAvailable)
		}
		all = append(all, fmt.Sprintf("%s (%s, %s)", b.Name, whose, number))
	}
	r.Film.tell("budgets: " + cmp.Or(strings.Join(all, ", "), "none"))
	if set == nil {
		return
	}
	if c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionDisruptionReady); c != nil {
		r.Film.tell(fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
}

// observeBudget adds a line for a write of a manager, or of the garbage collector, to a budget.
func (f *Film) observeBudget(e *apiserver.Entry) {
	if e.Actor == userActor {
		return // the command has its own line
	}
	budget, exists := e.New.(*policyv1.PodDisruptionBudget)
	if !exists {
		f.note(e.Actor, "delete budget "+e.Key.Name)
		return
	}
	f.note(e.Actor, fmt.Sprintf("%s budget %s (minAvailable %s)", e.Verb, e.Key.Name, budget.Spec.MinAvailable))
}

// checkBudgets checks that a set that wants a budget of its own has exactly one, with the right number, unless a budget of
// another client selects its pods or has its name, and that any other set has none.
func (j judge) checkBudgets() error {
	set := j.Set()
	if set == nil || set.DeletionTimestamp != nil || len(j.refusals.policies) > 0 {
		return nil
	}
	want := j.WantsBudget(set, budgets(j.Store))
	var own []*policyv1.PodDisruptionBudget
	for _, b := range budgets(j.Store) {
		if invariants.OwnerOf(b) == set.UID {
			own = append(own, b)
		}
	}
	switch {
	case !want && len(own) > 0:
		return fmt.Errorf("budget %s is there, and none is wanted", own[0].Name)
	case want && len(own) != 1:
		return fmt.Errorf("the set has %d budgets, and wants one", len(own))
	case want:
		if wrong := invariants.WrongBudget(set, own[0]); wrong != "" {
			return fmt.Errorf("budget %s: %s", own[0].Name, wrong)
		}
	}
	condition := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionDisruptionReady)
	asked := set.Spec.Disruption != nil && set.Spec.Disruption.PodDisruptionBudget == v1beta1.AutoBudget
	if asked && (condition == nil || (condition.Status == metav1.ConditionTrue) != want) {
		return fmt.Errorf("a budget is wanted: %t, and the condition says %+v", want, condition)
	}
	return nil
}
