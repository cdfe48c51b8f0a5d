// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "fmt"

// Passed is a lifecycle hook that a pod has waited for as long as it may, and goes on without. The zero Passed is none.
type Passed struct {
	// Hook is the name of the hook, and Seconds its limit.
	Hook    string
	Seconds int32
	// Why says what the pod waited for, in a sentence that is still true; it may be empty.
	Why string
}

// String describes the hook; it returns an empty string for none.
func (p Passed) String() string {
	switch {
	case p.Hook == "":
		return ""
	case p.Why == "":
		return fmt.Sprintf("without lifecycle hook %s, whose limit of %d seconds has passed", p.Hook, p.Seconds)
	default:
		return fmt.Sprintf("without lifecycle hook %s, whose limit of %d seconds has passed: %s", p.Hook, p.Seconds, p.Why)
	}
}
