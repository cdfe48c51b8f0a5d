// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"
	"slices"
	"strings"
)

// String describes the change, for logs and events: "images of app, log; resources of app".
func (c Change) String() string {
	var parts []string
	if len(c.Images) > 0 {
		parts = append(parts, "images of "+strings.Join(slices.Sorted(maps.Keys(c.Images)), ", "))
	}
	if len(c.Resources) > 0 {
		parts = append(parts, "resources of "+strings.Join(slices.Sorted(maps.Keys(c.Resources)), ", "))
	}
	if len(parts) == 0 && c.Restarted && c.Labels.empty() && c.Annotations.empty() {
		return "its update is done"
	}
	if len(parts) == 0 {
		return "metadata"
	}
	return strings.Join(parts, "; ")
}
