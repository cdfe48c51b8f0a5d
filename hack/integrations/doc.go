// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package integrations tests what config/ provides for other programs (Prometheus, Grafana, kube-state-metrics, Argo CD,
// Flux) with the code of those programs. It is a separate module, so that RollSet does not depend on them.
package integrations
