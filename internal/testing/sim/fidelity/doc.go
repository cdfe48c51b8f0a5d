// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package fidelity compares the simulator's store with a real API server: the same operations, drawn at random, are carried
// out on both, and have to end alike.
package fidelity
