// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package helm tests the charts with Helm: what they give, and what they refuse.
package helm
