// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package realnode runs a real node on this machine. The cluster is one that package testbed started without simulated
// nodes. Kubelet, containerd, runc and CNI plugins are the original ones, built from Go modules by hack/node/build.sh.
// They run in namespaces and cgroups of their own. It needs Linux and root, no container engine and no network, and
// leaves nothing behind.
//
// The node's network has no way in or out but two: the kubelet reaches the API server, and Dial reaches pods. There is
// no Service network: clients choose among endpoints themselves. Package images lists the images. They also have the
// short names that people use.
package realnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/realnode/images"
	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

const (
	// readyTimeout bounds the start of a node, once its binaries are there.
	readyTimeout = 2 * time.Minute
	// stopTimeout is how long a supervisor may take to end: it waits for cgroups to become empty.
	stopTimeout = 30 * time.Second
	pollEvery   = 50 * time.Millisecond
	// logTail is how many bytes of its log an error quotes of a supervisor that ended.
	logTail = 4000
)

// Options describe a node.
type Options struct {
	// Dir is the folder for the node's data and logs. Empty means a temporary one that Stop removes.
	Dir string
	// Name is the name of the node's object.
	Name string
	// Config is for a client with all rights, and Kubeconfig the path of a file with the same.
	Config     *rest.Config
	Kubeconfig string
}

// Node is a node that runs.
type Node struct {
	node       setup.Node
	supervisor *exec.Cmd
	ownsDir    bool
	done       chan struct{} // closed when the supervisor has ended
	err        error         // why; to be read after done
}

// Unavailable returns why no node can run on this machine; nil if one can.
func Unavailable(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		return errors.New("a real node needs Linux")
	}
	if os.Geteuid() != 0 {
		return errors.New("a real node needs root, for namespaces and cgroups")
	}
	dir, err := os.MkdirTemp("", "rollset-node-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	supervisor, err := build(ctx, dir, "supervisor")
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, supervisor, "check").CombinedOutput(); err != nil {
		return fmt.Errorf("no node can run here: %s", bytes.TrimSpace(out))
	}
	return nil
}

// Start starts a node and returns when it is ready for pods. It ends when Stop is called or this process ends.
func Start(ctx context.Context, o Options) (*Node, error) {
	n := &Node{done: make(chan struct{}), ownsDir: o.Dir == ""}
	if n.ownsDir {
		dir, err := os.MkdirTemp("", "rollset-node-")
		if err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
		o.Dir = dir
	}
	if err := n.prepare(ctx, o); err != nil {
		return nil, errors.Join(err, n.removeDir())
	}
	if err := n.launch(); err != nil {
		return nil, errors.Join(err, n.removeDir())
	}
	if err := n.awaitReady(ctx, o.Config); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// prepare finds binaries and makes folders, images and settings.
func (n *Node) prepare(ctx context.Context, o Options) error {
	bin, err := findBinaries(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := filepath.Abs(o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("find kubeconfig: %w", err)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("find folder: %w", err)
	}
	for _, private := range []string{"/run/", "/var/run/", "/var/log/"} {
		if strings.HasPrefix(dir, private) {
			return fmt.Errorf("the node's folder %s is below %s, which the node has of its own: choose another", dir, private)
		}
	}
	n.node = setup.Node{
		Name: o.Name, Dir: dir, BinDir: bin,
		APIServer: strings.TrimPrefix(o.Config.Host, "https://"), Kubeconfig: kubeconfig,
	}
	if err := os.MkdirAll(filepath.Dir(n.node.Log("any")), 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	guest, err := build(ctx, dir, "guest")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(guest)
	if err != nil {
		return fmt.Errorf("read guest: %w", err)
	}
	if err := images.Write(n.node.Images(), program); err != nil {
		return err
	}
	_, err = build(ctx, dir, "supervisor")
	return err
}

// findBinaries returns the folder of kubelet and container runtime, which are built if need be.
func findBinaries(ctx context.Context) (string, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "node", "build.sh"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd.Path, err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// build builds one of the node's own programs into a folder. The same source gives the same bytes anywhere.
func build(ctx context.Context, dir, name string) (string, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path,
		"./internal/testing/testbed/realnode/"+name)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// launch starts the supervisor.
func (n *Node) launch() error {
	settings, err := n.node.Write()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(n.node.Log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	n.supervisor = exec.Command(filepath.Join(n.node.Dir, "supervisor"), "run", settings)
	n.supervisor.Stdout, n.supervisor.Stderr = log, log
	n.supervisor.SysProcAttr = endWithParent()
	started := make(chan error)
	go func() {
		// A child is signaled when the thread ends that started it, so this thread stays until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()
		err := n.supervisor.Start()
		started <- err
		if err == nil {
			n.err = n.supervisor.Wait()
			close(n.done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	return nil
}

// awaitReady waits until the API server knows the node as ready.
func (n *Node) awaitReady(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, patience.For(readyTimeout))
	defer cancel()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if node, err := client.CoreV1().Nodes().Get(ctx, n.node.Name, metav1.GetOptions{}); err == nil && podstate.NodeReady(node) && n.ask(ctx, setup.Ping) == nil {
			return nil
		}
		select {
		case <-n.done:
			return n.ended()
		case <-ctx.Done():
			return fmt.Errorf("wait for node %s: %w\n%s", n.node.Name, context.Cause(ctx), n.tail())
		case <-ticker.C:
		}
	}
}

// ended returns why the supervisor has ended.
func (n *Node) ended() error {
	return fmt.Errorf("the supervisor of node %s ended (%w):\n%s", n.node.Name, n.err, n.tail())
}

// tail returns the end of the logs of the components that can fail at the start.
func (n *Node) tail() string {
	var out strings.Builder
	for _, name := range []string{"supervisor", "kubelet"} {
		log, _ := os.ReadFile(n.node.Log(name))
		if len(log) > logTail {
			log = log[len(log)-logTail:]
		}
		_, _ = fmt.Fprintf(&out, "%s:\n%s\n", n.node.Log(name), bytes.TrimSpace(log)) // never fails
	}
	return out.String()
}

// Name returns the name of the node's object.
func (n *Node) Name() string { return n.node.Name }

// Log returns the path of a component's log: kubelet, containerd or supervisor.
func (n *Node) Log(component string) string { return n.node.Log(component) }

// MakeVolume makes the folder of the i-th local volume and returns its path.
func (n *Node) MakeVolume(i int) (string, error) {
	path := n.node.Volume(i)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("make volume: %w", err)
	}
	return path, nil
}

// KillKubelet ends the kubelet without warning. Containers run on.
func (n *Node) KillKubelet(ctx context.Context) error { return n.ask(ctx, setup.KillKubelet) }

// StartKubelet starts a kubelet that was killed.
func (n *Node) StartKubelet(ctx context.Context) error { return n.ask(ctx, setup.StartKubelet) }

// ask has the supervisor do something.
func (n *Node) ask(ctx context.Context, request string) error {
	c, err := n.request(ctx, request)
	if err != nil {
		return err
	}
	return c.Close()
}

// Dial connects with an address inside the node, such as that of a pod.
func (n *Node) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	return n.request(ctx, setup.Dial+address)
}

// request sends a request to the supervisor, and returns the connection once it was granted.
func (n *Node) request(ctx context.Context, request string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", n.node.ControlSocket())
	if err != nil {
		return nil, fmt.Errorf("ask node %s: %w", n.node.Name, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if _, err := fmt.Fprintln(c, request); err != nil {
		return nil, errors.Join(fmt.Errorf("ask node %s: %w", n.node.Name, err), c.Close())
	}
	// After the line the supervisor writes nothing until it is asked, so that no more than the line is read.
	answer, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	switch answer = strings.TrimSpace(answer); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("ask node %s: %w", n.node.Name, err), c.Close())
	case answer != setup.OK:
		return nil, errors.Join(fmt.Errorf("node %s: %s: %s", n.node.Name, request, answer), c.Close())
	default:
		return c, nil
	}
}

// Stop ends the node: when it returns, no process of it is left, nor any mount, cgroup, or file in a temporary folder.
func (n *Node) Stop() error {
	select {
	case <-n.done:
		return errors.Join(n.ended(), n.removeDir())
	default:
	}
	if err := n.supervisor.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the supervisor: %w", err)
	}
	select {
	case <-n.done:
	case <-time.After(patience.For(stopTimeout)):
		return errors.Join(fmt.Errorf("the supervisor did not end\n%s", n.tail()), n.supervisor.Process.Kill())
	}
	if n.err != nil {
		return n.ended()
	}
	return n.removeDir()
}

func (n *Node) removeDir() error {
	if !n.ownsDir || n.node.Dir == "" {
		return nil
	}
	return os.RemoveAll(n.node.Dir)
}
