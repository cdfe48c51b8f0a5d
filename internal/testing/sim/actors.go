// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// The names under which the simulated parts of the cluster write.
const (
	userActor     = invariants.User
	kubeletActor  = "kubelet"
	managerActor  = simulator.ManagerActor
	nodeActor     = "node"
	networkActor  = "network"
	gateActor     = "gates"
	strangerActor = "strangers"
)

// Namespace is the namespace of all objects in a world. SetName is the name of the set in scripts.
const (
	Namespace = "default"
	SetName   = "web"
)
