// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver imitates an API server, its caches and its clients in memory. It does not know what uses them.
//
// The rule: whatever is imitated answers like the real one, which the package fidelity checks, and whatever is not
// imitated panics instead of guessing. Nothing here has a goroutine, reads a clock of its own or depends on the order
// of a map.
//
// A [Store] keeps the objects, logs every write and collects garbage when it is told to. A [View] stands for the caches
// of one process: each kind lags behind the log on its own. A [Client] reads from a view and writes to the store,
// through a plan of faults.
package apiserver
