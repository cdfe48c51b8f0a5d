// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profileAddress is where a profiled manager serves its profiles.
const profileAddress = "127.0.0.1:6065"

// profile takes CPU profiles of the manager, of a second each, until it is stopped. `go tool pprof` adds up those of a work.
func (s *session) profile(ctx context.Context, w work) (stop func() error) {
	_, isManager := s.process.(managerProcess)
	if s.profiles == "" || !isManager {
		return func() error { return nil }
	}
	dir := filepath.Join(s.profiles, fmt.Sprintf("%s-%d-%s-%d", w.name, s.pods, s.name, s.repetition))
	last, done := make(chan struct{}), make(chan error, 1)
	go func() {
		err := os.MkdirAll(dir, 0o750)
		for i := 0; err == nil; i++ {
			select {
			case <-last:
				done <- nil
				return
			default:
				err = saveProfile(ctx, filepath.Join(dir, fmt.Sprintf("%03d.pb.gz", i)))
			}
		}
		done <- err
	}()
	return func() error {
		close(last)
		return <-done
	}
}

// saveProfile writes the CPU profile of the next second to a file.
func saveProfile(ctx context.Context, path string) error {
	profile, err := readProfile(ctx, "profile?seconds=1")
	if err != nil {
		return err
	}
	return os.WriteFile(path, profile, 0o600)
}

// collect lets a profiled manager collect its garbage twice. What a pool holds survives the first time.
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
