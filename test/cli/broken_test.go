// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// relay passes connections on to the API server until it is cut.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
	cutOff   bool
}

// newRelay returns a relay to the API server, and its address.
func newRelay(t *testing.T) (r *relay, address string) {
	t.Helper()
	server, err := url.Parse(shared.RESTConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = &relay{listener: listener}
	t.Cleanup(r.cut)
	go r.pass(context.WithoutCancel(t.Context()), server.Host)
	return r, "https://" + listener.Addr().String()
}

// pass connects every client to the API server.
func (r *relay) pass(ctx context.Context, host string) {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
		if err != nil || !r.keep(near, far) {
			_ = near.Close()
			continue
		}
		go func() { _, _ = io.Copy(far, near) }()
		go func() { _, _ = io.Copy(near, far) }()
	}
}

// keep records the two ends of a connection, which are closed when the relay is cut.
func (r *relay) keep(ends ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cutOff {
		r.open = append(r.open, ends...)
	}
	return !r.cutOff
}

// cut closes all connections, and accepts no others.
func (r *relay) cut() {
	_ = r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutOff = true
	for _, end := range r.open {
		_ = end.Close()
	}
}

// TestServerGoesAway stops the API server while commands wait: each retries for half a minute, says so in one line, and
// exits.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"status": {"status", "web"},
		"wait":   {"set", "image", "web", "app=nginx:1.29", "--wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			set := u.newSet(t, "web", nil)
			set.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/nosuch": "true"} // no node has it: there is something to wait for
			if err := shared.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			server, address := newRelay(t)
			command := u.command(t.Context(), append(args, "--server="+address)...)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			stdout, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			for lines.Scan() {
				if strings.Contains(lines.Text(), "of 3 pods updated") {
					break
				}
			}
			server.cut()
			for lines.Scan() { // until it exits
			}
			_ = command.Wait()
			line := strings.TrimSuffix(stderr.String(), "\n")
			if code := command.ProcessState.ExitCode(); code != 1 || strings.Contains(line, "\n") || !strings.Contains(line, "the API server") {
				t.Errorf("exit code %d, want 1 with one line, got\n%s", code, stderr.String())
			}
		})
	}
}

// TestClosedPipe reads only one line of a command that continues: it exits, and does not crash.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", nil)
	command := u.command(t.Context(), "get", "web", "--watch")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command.Stdout, command.Stderr = writer, &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	u.run(t, "set", "image", "web", "app=nginx:1.29")
	if err := command.Wait(); err == nil || strings.Contains(stderr.String(), "panic") || strings.Contains(stderr.String(), "goroutine") {
		t.Errorf("with its pipe closed it ends with %v and says %q", err, stderr.String())
	}
}

// TestTwoKindsOfOneName finds the RollSet where a Deployment has the same name, and does not touch that one.
func TestTwoKindsOfOneName(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", nil)
	labels := map[string]string{"app": "other"}
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:1.28"}}},
			},
		},
	}
	if err := shared.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	generation := u.get(t, "web").Generation
	contains(t, u.run(t, "set", "image", "web", "app=nginx:1.29"), "rollset.apps.rollset.dev/web image updated")
	if now := u.get(t, "web"); now.Generation == generation || image(now) != "nginx:1.29" {
		t.Errorf("the set was not changed: its image is %s", image(now))
	}
	u.fails(t, 1, []string{"set", "image", "deployment/web", "app=nginx:1.29"}, "deployment/web is no RollSet")
	u.fails(t, 1, []string{"adopt", "deployment/web"}, "web")
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || other.Spec.Template.Spec.Containers[0].Image != "nginx:1.28" {
		t.Errorf("the Deployment was changed: %v", err)
	}
}

// TestFieldOfAnotherVersion passes a file with a field that the CRD of the cluster does not have, as in an older release.
// The field is rejected by name, not dropped.
func TestFieldOfAnotherVersion(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	set := u.newSet(t, "web", nil)
	path := filepath.Join(u.dir, "web.yaml")
	text := strings.Replace(u.run(t, "get", "web", "-o", "yaml"), "\nspec:\n", "\nspec:\n  fieldOfAnotherVersion: 1\n", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	u.fails(t, 1, []string{"plan", "-f", path}, "fieldOfAnotherVersion")
	if now := u.get(t, "web"); now.Generation != set.Generation {
		t.Errorf("the set was changed")
	}
}
