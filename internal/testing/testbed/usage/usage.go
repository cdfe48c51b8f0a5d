// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package usage measures what processes use of a Linux machine.
package usage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/stat.
const tick = 10 * time.Millisecond

// CPU returns the CPU time that the threads of a process have used. Schedstat counts nanoseconds, where the sums in
// /proc/PID/stat count ticks. Threads that have ended are missing; a Go program ends hardly any.
func CPU(pid int) (sum time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d is gone", pid)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// ResetPeak makes a process' peak of memory its present use.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// PeakMemory returns the most memory that a process had resident since the last ResetPeak, in bytes.
func PeakMemory(pid int) (int64, error) { return memoryField(pid, "VmHWM:") }

// Memory returns the memory that a process has resident, in bytes.
func Memory(pid int) (int64, error) { return memoryField(pid, "VmRSS:") }

func memoryField(pid int, field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) == 3 && words[0] == field {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d shows no %s", pid, field)
}

// Machine returns the CPU time that the machine has spent on processes, or lost to others on its host, and all that it
// had. Interrupts are left out: they belong to no process, and include the networking of the cluster itself.
func Machine() (busy, all time.Duration, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	words := strings.Fields(line)
	const user, nice, system, steal, last = 1, 2, 3, 8, 8
	if len(words) <= last {
		return 0, 0, fmt.Errorf("read /proc/stat: %q has too few fields", line)
	}
	for i, word := range words[user : last+1] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read /proc/stat: %w", err)
		}
		all += time.Duration(n) * tick
		switch i + user {
		case user, nice, system, steal:
			busy += time.Duration(n) * tick
		}
	}
	return busy, all, nil
}
