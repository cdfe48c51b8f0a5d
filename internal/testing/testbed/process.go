// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	// pollEvery is how often a component is asked whether it is ready.
	pollEvery = 50 * time.Millisecond
	// probeTimeout bounds one such question.
	probeTimeout = 2 * time.Second
	// logTail is how many bytes of its log an error quotes of a component that ended.
	logTail = 2000
)

var errStopped = errors.New("the cluster has been stopped")

// command is a component to run.
type command struct {
	name string
	args []string
}

// process is a component that runs.
type process struct {
	command
	log  string
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // why; to be read after done
}

// components are the processes of a cluster.
type components struct {
	mu        sync.Mutex // guards the three below
	processes []*process
	// supervised are the names of those that are started again when they end.
	supervised []string
	stopped    bool
}

// launch starts components, in a process group each, with a log file each.
func (c *Cluster) launch(commands ...command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	for _, command := range commands {
		p, err := c.run(command)
		if err != nil {
			return err
		}
		c.processes = append(c.processes, p)
	}
	return nil
}

func (c *Cluster) logFile(name string) string { return filepath.Join(c.dir, "logs", name+".log") }

func (c *Cluster) run(command command) (*process, error) {
	log := c.logFile(command.name)
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	cmd := exec.Command(filepath.Join(c.BinDir, command.name), command.args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = dieWithParent()
	p := &process{command: command, log: log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// On Linux a child dies with the thread that started it, so this thread stays until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = file.Close() }()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.name, err)
	}
	return p, nil
}

// kill ends the process and its children, and waits until they are gone.
func (p *process) kill() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := killGroup(p.pid); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// ended returns why the process has ended, with the end of its log; nil if it runs.
func (p *process) ended() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	log, _ := os.ReadFile(p.log)
	if len(log) > logTail {
		log = log[len(log)-logTail:]
	}
	return fmt.Errorf("%s ended (%w):\n%s", p.name, p.err, bytes.TrimSpace(log))
}

// await asks until ready returns no error, or a component has ended, or the time is over.
func (c *Cluster) await(ctx context.Context, what string, ready func() error) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if ended := c.ended(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%w)", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// ended returns why a component has ended; nil if all components that are not restarted still run.
func (c *components) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if err := p.ended(); err != nil && !slices.Contains(c.supervised, p.name) {
			return err
		}
	}
	return nil
}

// probe asks the API server whether it is ready.
func probe(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// getLocal returns what a component other than the API server serves at a path.
func getLocal(ctx context.Context, a *authority, port int, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+hostPort(port)+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: a.trust()}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("%s: %s", response.Status, body))
	}
	return body, nil
}

// ports are the TCP ports of the components.
type ports struct{ etcd, etcdPeer, apiServer, scheduler int }

// FindPorts asks the system for free ports. Another process may take one before it is used. Then the component ends, and Start
// returns an error.
func FindPorts(ports ...*int) error {
	var listeners []net.Listener // held until all are found: no port twice
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for _, port := range ports {
		listener, err := net.Listen("tcp", hostPort(0))
		if err != nil {
			return fmt.Errorf("find free port: %w", err)
		}
		listeners = append(listeners, listener)
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return fmt.Errorf("find free port: %v is no TCP address", listener.Addr())
		}
		*port = address.Port
	}
	return nil
}

const loopback = "127.0.0.1"

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
