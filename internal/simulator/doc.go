// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulator runs the real controller in one goroutine, against an API server in memory and on a clock that is set.
// The plugin uses it to forecast a rollout, and the tests to play one in any order.
//
// The rule: the simulator does not reimplement what the project delivers. The reconciler, its event handlers, its queue and
// its expectations are the real ones. Only what they talk to is imitated: the package apiserver imitates the API server and
// the caches, the package kubelet imitates kubelets, and the package actors imitates the scheduler and the controllers of
// claims. What is not imitated panics.
//
// A [Process] is a manager. Its caller delivers events to it and lets it reconcile. A [Solo] is a process that nothing disturbs.
package simulator
