// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command guest is the only program in the images of a real node. Its first argument selects what it does:
//
//	pause   holds a pod's sandbox
//	serve   answers HTTP until SIGTERM
//	crash   ends with code 1 after a moment
//	exit    ends with code 0 after a moment
//
// What it serves, on PORT:
//
//	/       a Reply, in JSON
//	/ready  200 once READY_AFTER and READY_DELAY have passed; for probes
//	/data   the file /data/starts, to which each start appends its version, if there is a folder /data
//
// After SIGTERM it continues to serve for TERM_DELAY, and each Reply shows it.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	dataFile = "/data/starts"
	// crashAfter is how long crash and exit run: long enough to be seen running.
	crashAfter = 500 * time.Millisecond
)

// Reply is the answer to a client.
type Reply struct {
	Version string `json:"version"`
	// Ending is true after the container was asked to end. No client should reach it then.
	Ending bool `json:"ending"`
}

func main() {
	command := ""
	if len(os.Args) > 1 {
		command = os.Args[1]
	}
	switch command {
	case "pause":
		pause()
	case "crash":
		time.Sleep(crashAfter)
		os.Exit(1)
	case "exit":
		time.Sleep(crashAfter)
	case "serve":
		if err := serve(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "guest:", err)
			os.Exit(1)
		}
	default:
		_, _ = fmt.Fprintf(os.Stderr, "guest: unknown command %q\n", command)
		os.Exit(2)
	}
}

// pause is the first process of a sandbox. It waits for its own end, and reaps orphaned processes.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

func serve() error {
	if err := noteStart(); err != nil {
		return err
	}
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGTERM, syscall.SIGINT)
	s := &server{}
	time.AfterFunc(duration("READY_AFTER")+duration("READY_DELAY"), func() { s.ready.Store(true) })
	http.HandleFunc("GET /{$}", s.reply)
	http.HandleFunc("GET /ready", s.isReady)
	http.HandleFunc("GET /data", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, dataFile) })
	failed := make(chan error, 1)
	server := &http.Server{Addr: ":" + os.Getenv("PORT"), ReadHeaderTimeout: time.Minute}
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ending:
		s.ending.Store(true)
		time.Sleep(duration("TERM_DELAY"))
		return nil
	}
}

// noteStart appends this start to the file of the pod's volume, if there is one.
func noteStart() error {
	file, err := os.OpenFile(dataFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, os.Getenv("VERSION")); err != nil {
		return err
	}
	return file.Close()
}

// duration returns the value of a variable, or 0.
func duration(name string) time.Duration {
	d, _ := time.ParseDuration(os.Getenv(name))
	return d
}

type server struct{ ready, ending atomic.Bool }

func (s *server) reply(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(Reply{Version: os.Getenv("VERSION"), Ending: s.ending.Load()}) // a client that has gone needs none
}

func (s *server) isReady(w http.ResponseWriter, _ *http.Request) {
	if !s.ready.Load() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}
}
