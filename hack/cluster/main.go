// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command cluster starts and stops a local cluster for development: a real control plane with simulated nodes, and
// the CRD installed. It needs Go and nothing else.
//
//	go run ./hack/cluster up               start it in the background, and print what to export
//	go run ./hack/cluster up -foreground   start it, and stop it at Ctrl-C
//	go run ./hack/cluster status           print the status of the cluster
//	go run ./hack/cluster down             stop it, with everything that it started
//	go run ./hack/cluster check            print why no real node can run here
//
// With -real after the word, the cluster has one real node instead of simulated ones: see package realnode. Such a cluster
// is the clone's own, and may be up beside the other one.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"rollset.dev/rollset/internal/testing/testbed/realnode"
)

const usage = "usage: go run ./hack/cluster up [-real] [-foreground] [-nodes n] [-audit] | status [-real] | down [-real] | check"

// superviseCommand runs in the background after up. It is not for users.
const superviseCommand = "supervise"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	foreground := flags.Bool("foreground", false, "stay, and stop the cluster at Ctrl-C")
	s := settings{}
	flags.IntVar(&s.nodes, "nodes", 3, "number of simulated nodes")
	flags.BoolVar(&s.audit, "audit", false, "have the API server write an audit log")
	flags.BoolVar(&s.real, "real", false, "the cluster with one real node instead of simulated ones")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	name := simulatedCluster
	if s.real {
		name = realCluster
	}
	st, err := openState(name)
	if err != nil {
		return err
	}
	switch args[0] {
	case "up":
		if *foreground {
			return upInForeground(st, s)
		}
		return upInBackground(st, s)
	case "status":
		return status(st)
	case "down":
		return down(st)
	case "check":
		return realnode.Unavailable(context.Background())
	case superviseCommand:
		return supervise(st, s)
	default:
		return fmt.Errorf("unknown command %q\n%s", args[0], usage)
	}
}

// upInForeground runs the cluster in this process.
func upInForeground(st state, s settings) error {
	if pid, ok := st.running(); ok {
		return sayRunning(st, pid)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serve(ctx, st, s, say, func() {
		printExports(st)
	})
}

// upInBackground starts a process that runs the cluster. It prints the process' reports until the cluster is up.
func upInBackground(st state, s settings) error {
	if pid, ok := st.running(); ok {
		return sayRunning(st, pid)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	log, err := os.Create(st.log())
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	cmd := exec.Command(self, superviseCommand, "-nodes="+strconv.Itoa(s.nodes), "-audit="+strconv.FormatBool(s.audit),
		"-real="+strconv.FormatBool(s.real))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C in this terminal must not stop it
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	_ = write.Close()
	for lines := bufio.NewScanner(read); lines.Scan(); {
		say(lines.Text())
	}
	// The supervisor closed the pipe: the cluster is up, or the supervisor has exited.
	if _, ok := st.running(); !ok || !st.isReady() {
		_ = cmd.Wait()
		text, _ := os.ReadFile(st.log())
		return fmt.Errorf("the cluster did not start:\n%s", text)
	}
	printExports(st)
	return nil
}

func sayRunning(st state, pid int) error {
	if !st.isReady() {
		return fmt.Errorf("a cluster is being started by process %d; stop it with: make cluster-down, or node-down", pid)
	}
	say(fmt.Sprintf("the cluster is up already (process %d); stop it with: go run ./hack/cluster down", pid))
	printExports(st)
	return nil
}

// say prints progress. Standard output is only for the exports, because users eval it.
func say(line string) { fmt.Fprintln(os.Stderr, line) }

// printExports prints lines for a shell to read. The kubeconfig is the last one.
func printExports(st state) {
	fmt.Printf("export PATH=%s:$PATH\n", st.binDir())
	fmt.Printf("export KUBECONFIG=%s\n", st.kubeconfig())
}

func status(st state) error {
	pid, ok := st.running()
	if !ok {
		return errors.New("no cluster is up")
	}
	return sayRunning(st, pid)
}

func down(st state) error {
	pid, ok := st.running()
	if !ok {
		say("no cluster is up")
		return st.clear()
	}
	if err := st.stop(pid); err != nil {
		return err
	}
	say("the cluster is down")
	return st.clear()
}
