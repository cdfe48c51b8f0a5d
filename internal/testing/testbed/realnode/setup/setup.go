// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package setup is shared by the process that wants a node and the supervisor that runs it: one file of settings, and where things
// are in the node's folder.
package setup

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// SandboxImage is the image of every pod's sandbox.
const SandboxImage = "localhost:5999/pause:1"

// Requests of the control socket: a line each, answered by a line. After OK to a dial, the connection is relayed.
const (
	Dial         = "dial "
	KillKubelet  = "kill kubelet"
	StartKubelet = "start kubelet"
	Ping         = "ping"
	OK           = "ok"
)

// Node holds the settings that a supervisor needs for its node.
type Node struct {
	// Name is the name of the node's object.
	Name string `json:"name"`
	// Dir is the node's folder: data, logs and sockets. It is not below /run or /var/log, which the node has of its own.
	Dir string `json:"dir"`
	// BinDir is the folder of kubelet, containerd, runc and the CNI plugins.
	BinDir string `json:"binDir"`
	// APIServer is the address of the API server, and Kubeconfig the file with which the kubelet reaches it.
	APIServer  string `json:"apiServer"`
	Kubeconfig string `json:"kubeconfig"`
}

// settings returns the path of the settings.
func (n Node) settings() string { return filepath.Join(n.Dir, "node.json") }

// ControlSocket returns where the supervisor takes requests.
func (n Node) ControlSocket() string { return filepath.Join(n.Dir, "control.sock") }

// APISocket returns where the API server is reached from inside the node.
func (n Node) APISocket() string { return filepath.Join(n.Dir, "api.sock") }

// Images returns the archive of the images that the node starts with.
func (n Node) Images() string { return filepath.Join(n.Dir, "images.tar") }

// Log returns the path of a component's log.
func (n Node) Log(component string) string { return filepath.Join(n.Dir, "logs", component+".log") }

// Volume returns the folder of the i-th local volume.
func (n Node) Volume(i int) string { return filepath.Join(n.Dir, "volumes", strconv.Itoa(i)) }

// Private returns the folder that replaces path inside the node.
func (n Node) Private(path string) string { return filepath.Join(n.Dir, "private", path) }

// Write writes the settings for the supervisor, and returns the file's path.
func (n Node) Write() (string, error) {
	raw, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode settings: %w", err)
	}
	if err := os.WriteFile(n.settings(), raw, 0o600); err != nil {
		return "", fmt.Errorf("write settings: %w", err)
	}
	return n.settings(), nil
}

// Read reads the settings that Write has written.
func Read(path string) (n Node, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return n, fmt.Errorf("read settings: %w", err)
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return n, fmt.Errorf("decode settings %s: %w", path, err)
	}
	return n, nil
}
