// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// profileAddress is where the manager serves its profiles, for go tool pprof too.
const profileAddress = "127.0.0.1:6065"

// collect lets the manager collect its garbage twice. What a pool holds survives the first time.
func collect(ctx context.Context) error {
	for range 2 {
		if _, err := readProfile(ctx, "heap?gc=1"); err != nil {
			return err
		}
	}
	return nil
}

// readProfile returns a profile of the manager.
func readProfile(ctx context.Context, name string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+profileAddress+"/debug/pprof/"+name, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("profile the manager: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	profile, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("profile the manager: %s (%w)", response.Status, err)
	}
	return profile, nil
}
