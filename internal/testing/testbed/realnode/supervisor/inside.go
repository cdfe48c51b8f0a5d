// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

const (
	// nodeIP and podRange are kept for documentation (TEST-NET-1 and 2): they clash with no real network.
	nodeIP   = "192.0.2.1"
	podRange = "198.51.100.0/24"
	// runtimeSocket is where containerd serves.
	runtimeSocket = "/run/containerd/containerd.sock"
	// startTimeout bounds the start of each component.
	startTimeout = time.Minute
)

// inside runs the node's first process.
func inside(node setup.Node) error {
	if err := mountAll(node); err != nil {
		return err
	}
	if err := bringUpNetwork(); err != nil {
		return err
	}
	api, err := net.Listen("tcp", node.APIServer)
	if err != nil {
		return fmt.Errorf("listen in place of the API server: %w", err)
	}
	go accept(api, func(c net.Conn) { relay(c, "unix", node.APISocket()) })
	s := &machine{node: node, processes: newProcesses(node)}
	if err := s.startRuntime(); err != nil {
		return err
	}
	if err := s.startKubelet(); err != nil {
		return err
	}
	control, err := net.Listen("unix", node.ControlSocket())
	if err != nil {
		return fmt.Errorf("listen for requests: %w", err)
	}
	accept(control, s.serve)
	return errors.New("the control socket was closed")
}

// mount calls unix.Mount. Its error names the source and the target.
func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

// mountAll gives the node its own view of the machine. Nothing that is mounted or written here is seen outside.
func mountAll(node setup.Node) error {
	unified, err := isUnified()
	if err != nil {
		return err
	}
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	mountAfresh := mountCgroups
	if unified {
		mountAfresh = mountUnified
	}
	if err := mountAfresh(); err != nil {
		return err
	}
	if err := hideSettings(node); err != nil {
		return err
	}
	if err := hideFolders(node); err != nil {
		return err
	}
	// The kubelet passes mounts that it makes on to the pods.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

// hideSettings puts files in the place of kernel settings that a kubelet changes but that belong to the whole machine.
func hideSettings(node setup.Node) error {
	dir := node.Private("sysctl")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			return fmt.Errorf("write setting: %w", err)
		}
		if err := mount(path, "/proc/sys/"+name, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// hideFolders gives the node folders of its own where the components insist on certain ones: empty ones, and below
// /var/lib a layer over what is there, since binaries may be below it.
func hideFolders(node setup.Node) error {
	for _, path := range []string{"/run", "/var/log"} {
		if err := os.MkdirAll(node.Private(path), 0o750); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if err := mount(node.Private(path), path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	upper, work := node.Private("/var/lib"), node.Private("work")
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	return mount("overlay", "/var/lib", "overlay", 0, "lowerdir=/var/lib,upperdir="+upper+",workdir="+work)
}

// bringUpNetwork makes the loopback device work and gives it the node's address. The pods' bridge is made by its plugin;
// there is no way out.
func bringUpNetwork() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up the loopback device: %w", err)
	}
	alias, err := unix.NewIfreq("lo:node")
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr(net.ParseIP(nodeIP).To4()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFADDR, alias); err != nil {
		return fmt.Errorf("give the node its address: %w", err)
	}
	return nil
}

// machine is the node as its first process has it.
type machine struct {
	node      setup.Node
	processes *processes
}

// startRuntime starts containerd, and gives it the images.
func (s *machine) startRuntime() error {
	config, err := writeRuntimeConfig(s.node)
	if err != nil {
		return err
	}
	if err := s.processes.start("containerd", "--config", config); err != nil {
		return err
	}
	ctr := func(args ...string) error {
		return s.processes.run("ctr", append([]string{"--address", runtimeSocket, "--namespace", "k8s.io"}, args...)...)
	}
	if err := s.processes.await("containerd", func() error { return ctr("version") }); err != nil {
		return err
	}
	return ctr("images", "import", "--no-unpack=false", s.node.Images())
}

func (s *machine) startKubelet() error {
	config, err := write(filepath.Join(s.node.Dir, "kubelet.yaml"), fmt.Sprintf(kubeletConfig, runtimeSocket))
	if err != nil {
		return err
	}
	return s.processes.start("kubelet", "--config="+config, "--kubeconfig="+s.node.Kubeconfig, "--hostname-override="+s.node.Name,
		"--node-ip="+nodeIP, "--root-dir="+filepath.Join(s.node.Dir, "kubelet"), "--cert-dir="+filepath.Join(s.node.Dir, "kubelet-pki"))
}
