// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// collect lets the manager collect its garbage twice. What a pool holds survives the first time.
func collect(ctx context.Context, p process) error {
	m, ok := p.(managerProcess)
	if !ok {
		return fmt.Errorf("%T serves no profiles", p)
	}
	for range 2 {
		if _, err := read(ctx, m.Profiles+"heap?gc=1"); err != nil {
			return err
		}
	}
	return nil
}

// read returns what the manager serves at a URL.
func read(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the manager: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the manager: %s (%w)", response.Status, err)
	}
	return body, nil
}
