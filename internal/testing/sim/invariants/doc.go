// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package invariants judges every write of the controller in the simulated cluster.
//
// The rule: a write is judged at the moment at which it is committed, by what its manager could know then. An invariant
// is a function of one write that returns what is wrong with it. What a set wants is computed a second time here, so
// that an invariant does not share the controller's mistakes. What shows only at the end of a rollout is compared by
// [Cluster.CheckWanted].
//
// A [Cluster] reads the store of package apiserver. The simulator uses it to draw its film strips.
package invariants
