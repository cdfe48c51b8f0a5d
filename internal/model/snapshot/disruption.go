// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import policyv1 "k8s.io/api/policy/v1"

// Access is whether the objects of a kind that the manager may lack the rights for can be read. The zero Access means that
// this is not known yet, or that the set does not need them.
type Access struct {
	// Served is true if they can be read.
	Served bool
	// Denied says why they cannot; empty if they can, or if that is not known yet.
	Denied string
}

// Budgets are the disruption budgets of the set's namespace. They are known only to a set that wants one of its own, or wanted
// one a moment ago.
type Budgets struct {
	Access

	All []*policyv1.PodDisruptionBudget
}
