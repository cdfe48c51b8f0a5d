// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/hack/bench/minimal"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// minimalWorkers is how many requests of the minimal client run at a time.
const minimalWorkers = 16

// process is a running controller.
type process interface {
	PID() int
	Done() <-chan struct{}
	Stop() error
	// Metrics returns the metrics of the process, in the text format; nothing if it has none.
	Metrics(ctx context.Context) ([]byte, error)
}

// competitor is a controller of sets of pods.
type competitor struct {
	name string
	// users are the users that it acts as, queues the names of its work queues.
	users, queues []string
	// object is a set of its kind.
	object func(wish) (client.Object, error)
	// updates and updatesInPlace report whether it supports these works.
	updates, updatesInPlace bool
	// onlyInPlace is true if it does only the works with pods that can be updated in place.
	onlyInPlace bool
	// start starts it.
	start func(ctx context.Context, b *bed) (process, error)
}

// These are the names that targets refer to.
const (
	nameMinimal     = "minimal"
	nameReplicaSet  = "replicaset"
	nameStatefulSet = "statefulset"
	nameRollSet     = "rollset"
	nameOrdinal     = "rollset-ordinal"
)

func competitors() []*competitor {
	return []*competitor{
		{
			name: nameMinimal, users: []string{minimalUser}, object: wish.configMap, updates: true, updatesInPlace: true,
			start: startMinimal,
		},
		{
			name: "minimal-waits", users: []string{minimalUser}, object: wish.waitingConfigMap,
			updates: true, updatesInPlace: true, onlyInPlace: true, start: startMinimal,
		},
		{
			name: nameReplicaSet, users: serviceAccounts("replicaset-controller"), queues: []string{"replicaset"},
			object: wish.replicaSet, start: startControllers("replicaset-controller"),
		},
		{
			name: "deployment", users: serviceAccounts("deployment-controller", "replicaset-controller"),
			queues: []string{"deployment", "replicaset"},
			object: wish.deployment, updates: true, start: startControllers("deployment-controller,replicaset-controller"),
		},
		{
			name: nameStatefulSet, users: serviceAccounts("statefulset-controller"), queues: []string{"statefulset"},
			object: wish.statefulSet, updates: true, start: startControllers("statefulset-controller"),
		},
		{
			name: nameRollSet, users: []string{manager.User}, queues: []string{"rollset"},
			object: wish.rollSet, updates: true, updatesInPlace: true, start: startManager,
		},
		{
			name: nameOrdinal, users: []string{manager.User}, queues: []string{"rollset"},
			object: wish.ordinalRollSet, updates: true, updatesInPlace: true, start: startManager,
		},
	}
}

func serviceAccounts(names ...string) (users []string) {
	for _, name := range names {
		users = append(users, "system:serviceaccount:kube-system:"+name)
	}
	return users
}

func startControllers(names string) func(context.Context, *bed) (process, error) {
	return func(ctx context.Context, b *bed) (process, error) {
		p, err := b.StartControllers(names)
		if err != nil {
			return nil, err
		}
		return p, awaitMetrics(ctx, p)
	}
}

// awaitMetrics waits until the process serves its metrics.
func awaitMetrics(ctx context.Context, p *testbed.Controllers) error {
	for {
		_, err := p.Metrics(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-p.Done():
			return errors.New("the controller manager ended at its start")
		case <-ctx.Done():
			return fmt.Errorf("wait for the controller manager: %w (%w)", context.Cause(ctx), err)
		}
	}
}

// managerProcess is the manager, which serves its metrics without authentication.
type managerProcess struct{ *manager.Process }

func startManager(ctx context.Context, b *bed) (process, error) {
	kubeconfig, err := b.kubeconfig(manager.User)
	if err != nil {
		return nil, err
	}
	options := manager.Options{
		Binary: b.manager, Kubeconfig: kubeconfig, Log: filepath.Join(b.Dir(), "logs", "manager.log"),
		Profiles: true,
	}
	p, err := manager.Start(context.WithoutCancel(ctx), options) // Stop ends it
	if err != nil {
		return nil, err
	}
	say("the manager serves profiles at " + p.Profiles)
	return managerProcess{p}, nil
}

func (p managerProcess) Metrics(ctx context.Context) ([]byte, error) {
	return read(ctx, p.Process.Metrics)
}

// minimalProcess is this program again, as the minimal client.
type minimalProcess struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// minimalCommand makes this program the minimal client. It is not for users.
const minimalCommand = "minimal-client"

func startMinimal(ctx context.Context, b *bed) (process, error) {
	kubeconfig, err := b.kubeconfig(minimalUser)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &minimalProcess{cmd: exec.CommandContext(ctx, self, minimalCommand, kubeconfig), done: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the minimal client: %w", err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the minimal client did not start: %w", errors.Join(err, p.cmd.Wait()))
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// beMinimal is the minimal client's main.
func beMinimal(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	return minimal.Run(ctx, config, minimalWorkers, func() { fmt.Println("ready") })
}

// PID returns the process id.
func (p *minimalProcess) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the client has ended.
func (p *minimalProcess) Done() <-chan struct{} { return p.done }

// Stop stops the client.
func (p *minimalProcess) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Metrics returns nothing: the client counts nothing.
func (p *minimalProcess) Metrics(context.Context) ([]byte, error) { return nil, nil }
