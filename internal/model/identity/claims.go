// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import "strings"

// ClaimName returns the name of the claim that a template gives to an identity.
func ClaimName(set, template, id string) string { return template + "-" + set + "-" + id }

// SetsNamed returns the names of the sets that a claim of this name could belong to. There can be several, because template
// and set names may contain dashes.
func SetsNamed(claim string) []string {
	end := strings.LastIndexByte(claim, '-') // ids have no dash
	if end < 0 {
		return nil
	}
	var sets []string
	for rest := claim[:end]; ; {
		_, set, found := strings.Cut(rest, "-")
		if !found {
			return sets
		}
		sets = append(sets, set)
		rest = set
	}
}

// Names reports whether a claim of this name could belong to a set.
func Names(claim, set string) bool {
	end := max(0, strings.LastIndexByte(claim, '-'))
	return set != "" && strings.HasSuffix(claim[:end], "-"+set)
}

// ClaimID returns the identity that an unlabeled claim has by its name, if it is the name of a claim of one of the given
// templates.
func ClaimID(set string, templates []string, claim string) (id string, ok bool) {
	for _, template := range templates {
		if id, ok := strings.CutPrefix(claim, ClaimName(set, template, "")); ok && !strings.Contains(id, "-") {
			return id, true
		}
	}
	return "", false
}
