// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"encoding/json"
	"io"
	"time"
)

// asJSON is the forecast for programs.
type asJSON struct {
	Set             string       `json:"set"`
	Class           Class        `json:"class"`
	Field           string       `json:"field"`
	Writes          []Write      `json:"writes"`
	Waits           []waitJSON   `json:"waits,omitempty"`
	LowestAvailable int          `json:"lowestAvailable"`
	Floor           int          `json:"floor"`
	MostPods        int          `json:"mostPods"`
	Seconds         int          `json:"seconds"`
	IfBroken        ifBrokenJSON `json:"ifBroken"`
	CannotKnow      []string     `json:"cannotKnow"`
	InTheWay        []string     `json:"inTheWay"`
	WaitsFor        string       `json:"waitsFor,omitempty"`
}

// waitJSON is a moment at which a rollout in steps waits, after the given number of writes.
type waitJSON struct {
	AfterSeconds int    `json:"afterSeconds"`
	AfterWrites  int    `json:"afterWrites"`
	WaitsFor     string `json:"waitsFor"`
	Others       bool   `json:"others"`
}

type ifBrokenJSON struct {
	BrokenPods      int    `json:"brokenPods"`
	LowestAvailable int    `json:"lowestAvailable"`
	StopsAt         string `json:"stopsAt"`
}

// JSON writes the forecast as JSON.
func (f *Forecast) JSON(w io.Writer) error {
	out := asJSON{
		Set: f.Set, Class: f.Class, Field: f.Field, Writes: append([]Write{}, f.Writes...),
		LowestAvailable: f.LowestAvailable, Floor: f.Floor, MostPods: f.MostPods, Seconds: int(f.Takes.Round(time.Second).Seconds()),
		IfBroken: ifBrokenJSON{
			BrokenPods: len(f.IfBroken.BrokenPods), LowestAvailable: f.IfBroken.LowestAvailable, StopsAt: f.IfBroken.StopsAt,
		},
		CannotKnow: append([]string{}, f.CannotKnow...), InTheWay: append([]string{}, f.InTheWay...), WaitsFor: f.WaitsFor,
	}
	for _, wait := range f.Waits {
		out.Waits = append(out.Waits, waitJSON{
			AfterSeconds: int(wait.At.Round(time.Second).Seconds()), AfterWrites: wait.Writes, WaitsFor: wait.Says, Others: wait.Others,
		})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
