// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package integrations tests what config/ gives to other programs (Prometheus, Grafana, kube-state-metrics, Argo CD,
// Flux) with the code of those programs. It is a module of its own, so that nothing of theirs is built into RollSet.
package integrations
