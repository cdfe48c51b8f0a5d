// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
)

// These are the flags of TestNumbers. The limits hold for a laptop; a slower machine exceeds them without a defect.
var (
	pods   = flag.Int("pods", 10, "how many pods are planned for and watched; make bench-plugin has 1,000")
	limits = flag.Bool("limits", false, "fail if a command takes more CPU time than its limit, as make bench-plugin does")
)

const (
	// share is the part of a core that a live picture may use.
	share = 0.1
	// startTime is how much CPU time the program may use before it does anything.
	startTime = 100 * time.Millisecond
	// planTime is how much CPU time a plan of 1,000 pods may use, including the smaller ones.
	planTime = 3 * time.Second
)

// spent returns the CPU time of a program and its children.
func spent(state *os.ProcessState) time.Duration { return state.UserTime() + state.SystemTime() }

// TestNumbers measures the cost of the plugin in CPU time, because other programs hardly affect it.
func TestNumbers(t *testing.T) {
	exceeded := t.Logf
	if *limits {
		exceeded = t.Errorf
	}
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", func(set *v1beta1.RollSet) {
		set.Spec.Replicas = new(int32(*pods))
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("10%"))
	})
	measure := func(args ...string) time.Duration {
		command := u.command(t.Context(), args...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return spent(command.ProcessState)
	}
	if took := measure("help"); took > startTime {
		exceeded("the program takes %s to start, limit %s", took, startTime)
	} else {
		t.Logf("start: %s", took)
	}
	took := measure("plan", "web", "--set-image", "app=nginx:1.29")
	t.Logf("plan of %d pods: %s", *pods, took)
	if took > planTime {
		exceeded("a plan of %d pods takes %s, limit %s", *pods, took, planTime)
	}

	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatal("the program script of util-linux is needed to have a terminal:", err)
	}
	watch := "stty cols 160 rows 50 && exec " + shared.plugin + " get web -w --namespace=" + u.namespace
	command := exec.CommandContext(t.Context(), script, "--quiet", "--return", "--flush", "--command", watch, filepath.Join(t.TempDir(), "typescript"))
	command.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig, "TERM=xterm-256color")
	keys, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		u.run(t, "set", "image", "web", "app=nginx:2."+strconv.Itoa(i), "--wait", "--timeout=10m")
	}
	if _, err := keys.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	_ = command.Wait()
	elapsed := time.Since(began)
	part := spent(command.ProcessState).Seconds() / elapsed.Seconds()
	t.Logf("get -w while %d pods change twice: %.1f%% of a core for %s", *pods, 100*part, elapsed.Round(time.Second))
	if part > share {
		exceeded("get -w takes %.0f%% of a core, limit %.0f%%", 100*part, 100*share)
	}
}
