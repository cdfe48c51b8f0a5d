// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package fidelity checks that the simulator's store tells the truth: the same operations, drawn at random, are carried
// out on it and on a real API server, and have to end alike.
package fidelity
