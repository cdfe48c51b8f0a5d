// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli tests the plugin as users run it: its own binary, as a process, against a local cluster with a running
// manager. Where a process adds nothing to a test, its commands run in the test's own; see user.here.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/api/v1beta1"
	plugin "rollset.dev/rollset/internal/cli"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// shared is the cluster of all tests. Each test has a namespace of its own.
var shared *cluster

// cluster is a local cluster in which the manager runs, and the plugin's program.
type cluster struct {
	*testbed.Cluster
	client.Client

	dir, root, plugin string
	manager           *manager.Process
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) (code int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &cluster{}
	err := c.start(ctx)
	defer func() {
		if err := c.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared = c
	return m.Run()
}

func (c *cluster) start(ctx context.Context) (err error) {
	if c.root, err = assets.ModuleRoot(); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "rollset-cli-"); err != nil {
		return err
	}
	if c.plugin, err = build(ctx, c.root, c.dir); err != nil {
		return err
	}
	model := kubelet.Recorded()
	model.ReadyDelay, model.RemoveDelay = 200*time.Millisecond, 100*time.Millisecond
	if c.Cluster, err = testbed.Start(ctx, testbed.Options{Model: &model, Audit: true}); err != nil {
		return err
	}
	if err := manager.Install(ctx, c.RESTConfig()); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return err
	}
	if c.Client, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	binary, err := manager.Build(ctx, c.dir)
	if err != nil {
		return err
	}
	kubeconfig, err := c.KubeconfigFor(manager.User)
	if err != nil {
		return err
	}
	c.manager, err = manager.Start(ctx, manager.Options{Binary: binary, Kubeconfig: kubeconfig, Log: filepath.Join(c.dir, "log")})
	return err
}

func (c *cluster) stop() error {
	var errs []error
	if c.manager != nil {
		errs = append(errs, c.manager.Kill())
	}
	if c.Cluster != nil {
		errs = append(errs, c.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// build builds the plugin into a folder, and returns its path.
func build(ctx context.Context, root, dir string) (string, error) {
	path := filepath.Join(dir, "kubectl-rollset")
	command := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, "./cmd/kubectl-rollset")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return path, nil
}

// user is a user of the plugin, in a namespace.
type user struct {
	kubeconfig, namespace, dir string
	// log is the audit log of the manager's writes; nil if it is not read.
	log *audit.Log
	// inTest is true if the user's commands run in the process of the test.
	inTest bool
}

// here returns the user with commands that run in the process of the test, where they do the same. A process costs more than
// most commands. Adopt and release ignore a signal, so they need a process.
func (u *user) here() *user {
	same := *u
	same.inTest = true
	return &same
}

// newUser returns a user with all rights, in a namespace of the test.
func newUser(t *testing.T) *user {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	if err := shared.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the default service account", func() error {
		return shared.Get(t.Context(), client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{})
	})
	return &user{kubeconfig: shared.Kubeconfig, namespace: namespace.Name, dir: t.TempDir()}
}

// result is the output and exit code of a command.
type result struct {
	out, err string
	code     int
}

// command returns a command line of the plugin that is not started yet.
func (u *user) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, shared.plugin, args...)
	command.Dir = u.dir
	command.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig, "HOME="+u.dir)
	if u.namespace != "" {
		command.Args = slices.Insert(command.Args, 1, "--namespace="+u.namespace) // the words after -- are another command
	}
	return command
}

// try runs a command line of the plugin with standard input.
func (u *user) try(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience.Long()) // longer than what longest gives it
	defer cancel()
	command := u.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	if u.inTest {
		streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &stdout, ErrOut: &stderr}
		code := plugin.Run(logr.NewContext(ctx, logr.Discard()), session.New(streams, clock.RealClock{}), slices.Insert(command.Args, 1, "--kubeconfig="+u.kubeconfig))
		return result{stdout.String(), stderr.String(), code}
	}
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatalf("kubectl rollset %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

// run runs a command line that must succeed, and returns its output.
func (u *user) run(t *testing.T, args ...string) string {
	t.Helper()
	r := u.try(t, "", args...)
	if r.code != 0 {
		t.Fatalf("kubectl rollset %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// fails runs a command line that must fail with an exit code, and with one line that contains all the texts.
func (u *user) fails(t *testing.T, code int, args []string, texts ...string) {
	t.Helper()
	r := u.try(t, "", args...)
	line := strings.TrimSuffix(r.err, "\n")
	if r.code != code || line == "" || strings.Contains(line, "\n") {
		t.Errorf("kubectl rollset %s: exit code %d, want %d with one line, got\n%s%s", strings.Join(args, " "), r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(line, text) {
			t.Errorf("kubectl rollset %s: %q does not contain %q", strings.Join(args, " "), line, text)
		}
	}
}

// newSet creates a set of nginx pods and waits until it is complete.
func (u *user) newSet(t *testing.T, name string, edit func(*v1beta1.RollSet)) *v1beta1.RollSet {
	t.Helper()
	labels := map[string]string{"app": name}
	set := &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name},
		Spec: v1beta1.RollSetSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:1.28"}}},
			},
		},
	}
	if edit != nil {
		edit(set)
	}
	if err := shared.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	u.here().run(t, "status", name, longest())
	return u.get(t, name)
}

// get reads a set.
func (u *user) get(t *testing.T, name string) *v1beta1.RollSet {
	t.Helper()
	set := &v1beta1.RollSet{}
	if err := shared.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: name}, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// pods lists the pods with a label app.
func (u *user) pods(t *testing.T, app string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := shared.List(t.Context(), list, client.InNamespace(u.namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// longest is the option that bounds how long a command waits.
func longest() string { return "--timeout=" + patience.Long().String() }

// eventually waits until holds returns no error.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(patience.Long())
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) { // longer ones would delay what is ready
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		time.Sleep(pause)
	}
}
