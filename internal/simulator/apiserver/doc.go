// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver simulates an API server, its caches and its clients in memory. It does not depend on its users.
//
// The rule: a supported request is answered as by a real API server, which package fidelity checks. Any other request panics.
// Nothing here has a goroutine, reads a clock of its own or depends on the order of a map.
//
// A [Store] keeps the objects, logs every write and collects garbage on demand. A [View] models the caches of one process:
// each kind lags behind the log on its own. A [Client] reads from a view and writes to the store, through a plan of faults.
package apiserver
