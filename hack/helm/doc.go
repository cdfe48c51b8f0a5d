// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package helm tests the charts with Helm: what they render, and what they reject.
package helm
