// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
)

var percentage = regexp.MustCompile(`^(100|[1-9]?[0-9])%$`)

// ParsePartition parses a number or a percentage.
func ParsePartition(text string) (intstr.IntOrString, error) {
	if percentage.MatchString(text) {
		return intstr.FromString(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return intstr.IntOrString{}, fmt.Errorf("%q is no partition: give a number from 0 on, or a percentage from 0%% to 100%%", text)
	}
	return intstr.FromInt32(int32(n)), nil
}
