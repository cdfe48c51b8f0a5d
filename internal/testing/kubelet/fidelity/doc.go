// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package fidelity compares the model of a kubelet with a real one. A Script is the life of one pod: how it is created,
// and what is done to it. What a kubelet reports meanwhile is a film, with a line for each status that differs from the
// one before. testdata has the film of a real kubelet for every script. The model must give the same film. Where it
// does not, the recording also has the model's film and the reason why they differ.
//
// `make fidelity-node` plays the scripts on a real node and compares; with RECORD=1 it records them anew.
package fidelity
