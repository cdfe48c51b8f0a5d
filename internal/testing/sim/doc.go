// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim runs the real controller in a simulated cluster: one goroutine, a virtual clock, and an order of events
// that a seed chooses.
//
// The rule: the simulator does not reimplement what the project delivers. The reconciler, its event mapping and its
// expectations are the real ones, and so is the model of the kubelet. Only what they talk to is imitated, and whatever
// is not imitated panics instead of guessing. Nothing depends on the wall clock, on the order of a map or on a
// goroutine, so that the same seed gives the same history to the byte.
//
// The package apiserver imitates the API server, with a log of every write, caches that lag behind it, and clients
// whose writes meet planned faults. The [World] lets managers, kubelets, scheduler, garbage collector and users take
// turns. The package invariants judges every single write, and the film strip says what happened, one line a write.
package sim
