// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// film is the log of a golden rollout.
type film struct {
	claim  string
	frames []frame
	// pods are the identities, and revisions the versions, in order of appearance.
	pods, revisions []string
}

// frame is a line of the log.
type frame struct {
	time, actor, event string
	pods               map[string]state
}

// state is the state of a pod.
type state struct {
	revision string
	mark     byte
}

var (
	line     = regexp.MustCompile(`^(\S+) +(\S+) +(.+)$`)
	podState = regexp.MustCompile(`^([a-z0-9]+):([a-z0-9]+)([+r.~x!])$`)
)

// parse reads a golden rollout: a claim, a script, and a log.
func parse(text string) (*film, error) {
	claim, _, _ := strings.Cut(text, "\n\n")
	_, log, found := strings.Cut(text, "-- log --\n")
	if !found {
		return nil, errors.New("there is no log")
	}
	f := &film{claim: strings.ReplaceAll(claim, "\n", " ")}
	for text := range strings.Lines(log) {
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "#") {
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("not a line of a log: %q", text)
		}
		if m[2] != "reads" { // reads by users change no pod
			f.add(frame{time: m[1], actor: m[2]}, m[3])
		}
	}
	return f, nil
}

// add appends a frame. Its states are the last words of the line.
func (f *film) add(fr frame, rest string) {
	words := strings.Fields(rest)
	fr.pods = map[string]state{}
	for len(words) > 0 {
		m := podState.FindStringSubmatch(words[len(words)-1])
		if m == nil {
			break
		}
		words = words[:len(words)-1]
		fr.pods[m[1]] = state{revision: m[2], mark: m[3][0]}
	}
	fr.event = strings.Join(words, " ")
	for _, id := range slices.Sorted(maps.Keys(fr.pods)) {
		f.pods = appendNew(f.pods, id)
		f.revisions = appendNew(f.revisions, fr.pods[id].revision)
	}
	f.frames = append(f.frames, fr)
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
