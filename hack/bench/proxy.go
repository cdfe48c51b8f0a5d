// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

const (
	// delay is added to each round trip, half of it in each direction.
	delay = 10 * time.Millisecond
	// proxyBuffer is how many reads may be in transit, in one direction of one connection.
	proxyBuffer = 4096
)

// proxy is a slow connection to the API server. It delays data and does not limit its rate.
type proxy struct {
	// url is where it listens.
	url string
}

// newProxy listens until the context ends, and passes all connections on to the server of a URL.
func newProxy(ctx context.Context, server string) (*proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the proxy: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go connect(ctx, near, strings.TrimPrefix(server, "https://"))
		}
	}()
	return &proxy{url: "https://" + listener.Addr().String()}, nil
}

// connect carries one connection until either side ends it.
func connect(ctx context.Context, near net.Conn, address string) {
	defer func() { _ = near.Close() }()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	connected, end := context.WithCancel(ctx)
	go func() { defer end(); carry(near, far) }()
	go func() { defer end(); carry(far, near) }()
	<-connected.Done()
}

// packet is the data of one read, and when it is due.
type packet struct {
	data []byte
	due  time.Time
}

// carry copies from one connection to another, with half of the delay.
func carry(to, from net.Conn) {
	wire := make(chan packet, proxyBuffer)
	go func() {
		defer close(wire)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				wire <- packet{data: buffer[:n], due: time.Now().Add(delay / 2)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range wire {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			_ = from.Close() // ends the reader
		}
	}
}
