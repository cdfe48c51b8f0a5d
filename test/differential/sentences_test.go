// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

// sentence says in what a RollSet differs from other kinds, and why that is better.
type sentence struct {
	says     string
	explains func(*pair, difference) bool
}

// sentences returns all of them.
func sentences() []sentence {
	return []sentence{}
}
