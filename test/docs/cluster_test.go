// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// last are the pages that change the whole cluster. They run alone, after the others.
var last = map[string]bool{"docs/how-to/nodes.md": true, "docs/upgrade.md": true}

// TestOnCluster sends the manifests of all pages to an API server, and runs the commands of those pages that ask for it.
func TestOnCluster(t *testing.T) {
	root, all := pages(t)
	c := startCluster(t, root)
	t.Run("each apart", func(t *testing.T) {
		t.Run("manifests", func(t *testing.T) {
			t.Parallel()
			c.admit(t, all)
		})
		for _, p := range all {
			if p.isRun() && !last[p.path] {
				t.Run(p.name(), func(t *testing.T) {
					t.Parallel()
					c.run(t, p)
				})
			}
		}
	})
	for _, p := range all {
		if p.isRun() && last[p.path] {
			t.Run(p.name(), func(t *testing.T) { c.run(t, p) })
		}
	}
}

// cluster is a local cluster with a running manager.
type cluster struct {
	*testbed.Cluster
	root   string
	client corev1client.CoreV1Interface
	// plugins is the folder of the kubectl plugin.
	plugins string
}

// startCluster starts a cluster whose kubelets go through all states of real ones, in less time.
func startCluster(t *testing.T, root string) *cluster {
	t.Helper()
	model := kubelet.Recorded()
	model.ReadyDelay, model.RemoveDelay = 200*time.Millisecond, 100*time.Millisecond
	local, err := testbed.Start(t.Context(), testbed.Options{Model: &model})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := manager.Install(t.Context(), local.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := local.KubeconfigFor(manager.User)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	binary, err := manager.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	process, err := manager.Start(t.Context(), manager.Options{Binary: binary, Kubeconfig: kubeconfig, Log: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	})
	plugin := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "kubectl-rollset"), "./cmd/kubectl-rollset")
	plugin.Dir = root
	if out, err := plugin.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	return &cluster{Cluster: local, root: root, client: corev1client.NewForConfigOrDie(local.RESTConfig()), plugins: dir}
}

// shell runs commands in a folder, with kubectl in a namespace.
type shell struct {
	dir string
	env []string
}

// newShell creates a namespace, and a folder with the repository's config.
func (c *cluster) newShell(t *testing.T, namespace string) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir()}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	own := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, own); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "docs"} {
		if err := os.Symlink(filepath.Join(c.root, name), filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.env = append(os.Environ(), "KUBECONFIG="+own, "HOME="+s.dir, "PATH="+c.BinDir+":"+c.plugins+":"+os.Getenv("PATH"),
		"GOGC=off", "GOMEMLIMIT=1GiB") // commands end before they need the garbage collector
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.client.Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), glance, patience.Long(), true, func(ctx context.Context) (bool, error) {
		_, err := c.client.ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a script and returns its output.
func (s *shell) run(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Long())
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env = s.dir, s.env
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w in\n%s", err, script)
	}
	return string(out), err
}

// expect runs a command of a transcript and returns what is wrong with its output; empty if nothing is.
func (s *shell) expect(ctx context.Context, e exchange) string {
	want := pattern(e.output)
	deadline := time.Now().Add(patience.Long())
	// Each look starts processes, so a long wait looks rarely.
	for pause := glance; ; pause = min(2*pause, time.Second) {
		out, err := s.run(ctx, e.command)
		switch {
		case e.output == "" && err != nil:
			return fmt.Sprintf("%v\n%s", err, out)
		case e.output == "" || want.MatchString(normalize(lines(out))):
			return ""
		case !polled.MatchString(e.command) || time.Now().After(deadline):
			return fmt.Sprintf("%sprints\n%s\nand not, as the page says,\n%s", e.command, out, e.output)
		}
		time.Sleep(pause)
	}
}

// describe returns the state of the namespace. A failing test logs it.
func (s *shell) describe(ctx context.Context) string {
	out, err := s.run(ctx, `kubectl get rollsets,pods,persistentvolumeclaims -o wide
kubectl get rollsets -o jsonpath='{range .items[*].status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
kubectl events | tail -n 20`)
	if err != nil {
		return err.Error()
	}
	return out
}
