// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/assets"
)

const (
	// readyTimeout bounds the time until a started manager is ready.
	readyTimeout = 60 * time.Second
	// stopTimeout is how long a manager may take to end when it is asked to.
	stopTimeout = 20 * time.Second
	// logTail is how many bytes of its log an error quotes of a manager that ended.
	logTail = 4000
)

// Build builds the manager into a folder and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return "", err
	}
	return BuildFrom(ctx, root, dir)
}

// BuildFrom is Build of another source tree, such as that of another version. Linking takes seconds, and go run keeps what it
// linked, while go build does not. What it runs here is cp, with the program and the path.
func BuildFrom(ctx context.Context, root, dir string) (string, error) {
	path := filepath.Join(dir, "manager")
	build := exec.CommandContext(ctx, "go", "run", "-ldflags=-s -w", "-exec=cp", ".", path)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the manager: %w\n%s", err, out)
	}
	return path, nil
}

// Options say how to run a manager.
type Options struct {
	// Binary is the path of the manager's binary.
	Binary string
	// Kubeconfig is the path of the kubeconfig that it gets.
	Kubeconfig string
	// Log is the path of the file that its log is appended to.
	Log string
	// Args are added to its command line.
	Args []string
	// Env are variables that it gets beside those of the test, each as NAME=value.
	Env []string
	// Profiles lets it serve profiles.
	Profiles bool
}

// Process is a manager that runs.
type Process struct {
	// Metrics is the URL of its metrics, served without authentication on loopback.
	Metrics string
	// Profiles is the URL of its profiles, if it serves any.
	Profiles string

	cmd    *exec.Cmd
	log    string
	health string
	done   chan struct{} // closed when it has ended
	err    error         // why; to be read after done
}

// Start starts a manager and returns when it is ready. The manager is killed when ctx ends.
func Start(ctx context.Context, o Options) (*Process, error) {
	var metrics, health, profiles int
	if err := testbed.FindPorts(&metrics, &health, &profiles); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the manager's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	p := &Process{
		Metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics),
		health:  fmt.Sprintf("http://127.0.0.1:%d/readyz", health),
		log:     o.Log,
		done:    make(chan struct{}),
	}
	args := []string{
		"--kubeconfig=" + o.Kubeconfig, fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics), "--metrics-secure=false",
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", health),
	}
	if o.Profiles {
		args = append(args, fmt.Sprintf("--pprof-bind-address=127.0.0.1:%d", profiles))
		p.Profiles = fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/", profiles)
	}
	p.cmd = exec.CommandContext(ctx, o.Binary, append(args, o.Args...)...)
	p.cmd.Env = append(os.Environ(), o.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if err := p.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// PID returns the manager's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the manager has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the manager without warning.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL) }

// Stop asks the manager to end and waits until it has. It returns an error if the manager did not end well.
func (p *Process) Stop() error {
	if err := p.end(syscall.SIGTERM); err != nil {
		return err
	}
	if p.err != nil {
		return fmt.Errorf("the manager ended with %w\n%s", p.err, p.tail())
	}
	return nil
}

func (p *Process) end(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the manager: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience.For(stopTimeout)):
		return errors.Join(fmt.Errorf("the manager did not end\n%s", p.tail()), p.cmd.Process.Kill())
	}
}

func (p *Process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience.For(readyTimeout))
	defer cancel()
	for {
		if isOK(ctx, p.health) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the manager ended at its start: %w\n%s", p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("the manager is not ready: %w\n%s", context.Cause(ctx), p.tail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func isOK(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// tail returns the end of the manager's log.
func (p *Process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	text = text[max(0, len(text)-logTail):]
	return strings.TrimSpace(string(bytes.ToValidUTF8(text, []byte("?"))))
}
