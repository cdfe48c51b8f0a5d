// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxListed is how many objects are named.
const maxListed = 10

// ofOrder returns what depends on which of the pods that start together is ready first. It runs the controller once more with the
// other order, and compares what is written to each object. It returns an empty text if that is the same.
func ofOrder(ctx context.Context, in Input, around Surroundings, writes []Write) (string, error) {
	around.NewestFirst = true
	other, err := simulate(ctx, in, around)
	if err != nil {
		return "", err
	}
	ours, others := byObject(writes), byObject(other.record.writes)
	differ := map[string]bool{}
	for _, side := range []map[string]string{ours, others} {
		for object := range side {
			if ours[object] != others[object] {
				differ[object] = true
			}
		}
	}
	if len(differ) == 0 {
		return "", nil
	}
	names := slices.Sorted(maps.Keys(differ))
	listed := strings.Join(names[:min(len(names), maxListed)], ", ")
	if more := len(names) - maxListed; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return "order: which of the pods that start together is ready first; it decides what is written to " + listed, nil
}

// byObject returns the verbs of writes in order, by the object that is written.
func byObject(writes []Write) map[string]string {
	objects := map[string]string{}
	for i := range writes {
		kind, subresource, _ := strings.Cut(writes[i].Resource, "/")
		objects[kind+" "+writes[i].Name] += writes[i].Verb + "/" + subresource + " "
	}
	return objects
}
