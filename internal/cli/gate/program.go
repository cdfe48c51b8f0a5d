// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"rollset.dev/rollset/internal/cli/session"
)

// maxOutput is how much of a command's output is kept for the message.
const maxOutput = 64 << 10

// runProgram runs a command and judges by its exit code. A command that cannot be started, or was killed, judges nothing.
func runProgram(ctx context.Context, s *session.Session, program []string) (finding, error) {
	var kept tail
	cmd := exec.CommandContext(ctx, program[0], program[1:]...) //nolint:gosec // running the user's command is the purpose
	cmd.Stdin = s.In
	cmd.Stdout, cmd.Stderr = io.MultiWriter(s.Raw, &kept), io.MultiWriter(s.Raw, &kept)
	err := cmd.Run()
	message := lastLine(kept.String())
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return finding{good: true, reason: reasonSucceeded, message: said(program[0]+" ended with exit code 0", message)}, nil
	case ctx.Err() != nil:
		return finding{}, ctx.Err()
	case ended && exit.ExitCode() >= 0:
		return finding{reason: reasonFailed, message: said(fmt.Sprintf("%s ended with exit code %d", program[0], exit.ExitCode()), message)}, nil
	default:
		return finding{}, fmt.Errorf("run %s: %w", program[0], err)
	}
}

// said adds the output of a command to what happened.
func said(what, message string) string {
	if message == "" {
		return what
	}
	return what + ": " + message
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if extra := t.Len() - maxOutput; extra > 0 {
		t.Next(extra)
	}
	return n, err
}
