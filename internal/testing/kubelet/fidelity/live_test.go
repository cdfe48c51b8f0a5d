// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/realnode"
)

var record = flag.Bool("record", false, "rewrite the recordings that the real kubelet no longer gives")

const (
	// attempts is how often a script is played before its film counts as different: some statuses last for milliseconds, and
	// a busy kubelet skips them.
	attempts = 3
	// moment is how long a container takes from being seen running until it accepts signals.
	moment = 300 * time.Millisecond
)

// A real kubelet gives the film in the recording.
func TestRealNodeAsRecorded(t *testing.T) {
	if err := realnode.Unavailable(t.Context()); err != nil {
		t.Skip(err)
	}
	node, pods := startNode(t)
	play := func(t *testing.T, s *Script) {
		recording, err := readRecording(s.Name)
		if err != nil && !*record {
			t.Fatal(err)
		}
		var film []string
		for range attempts {
			film, err = playOnce(t.Context(), node, pods, s)
			if err != nil {
				t.Fatalf("%v; the film so far:\n%s", err, strings.Join(film, "\n"))
			}
			if slices.Equal(film, recording.Real) {
				return
			}
			// If a real kubelet gives several films, the model's is preferred.
			if model, err := Model(s); *record && err == nil && slices.Equal(film, model) {
				break
			}
		}
		if !*record {
			t.Fatalf("the real kubelet's film differs %d times (-recorded +real):\n%s", attempts, cmp.Diff(recording.Real, film))
		}
		recording.Real = film
		if err := recording.write(s.Name); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("side by side", func(t *testing.T) {
		for _, s := range Scripts() {
			if !s.NeedsNode() {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					play(t, &s)
				})
			}
		}
	})
	for _, s := range Scripts() {
		if s.NeedsNode() {
			t.Run(s.Name, func(t *testing.T) { play(t, &s) })
		}
	}
}

// startNode starts a cluster with a real node for the test.
func startNode(t *testing.T) (*realnode.Node, v1.PodInterface) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	cluster, err := testbed.Start(ctx, testbed.Options{Nodes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	node, err := realnode.Start(ctx, realnode.Options{Name: "node-1", Config: cluster.RESTConfig(), Kubeconfig: cluster.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return node, client.CoreV1().Pods(corev1.NamespaceDefault)
}

// playOnce plays a script on the real node, and leaves no pod behind.
func playOnce(ctx context.Context, node *realnode.Node, pods v1.PodInterface, s *Script) (film []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Long())
	defer cancel()
	r := &player{node: node, pods: pods, name: s.Name}
	r.events, err = pods.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", s.Name).String()})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.Name, err)
	}
	defer r.events.Stop()
	if err := r.play(ctx, s); err != nil {
		return r.Lines, err
	}
	film = r.Lines
	if r.Has("gone") {
		return film, nil
	}
	if err := pods.Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil {
		return film, err
	}
	return film, r.await(ctx, []string{"gone"})
}

// player plays scripts on the real node.
type player struct {
	Film

	node *realnode.Node
	pods v1.PodInterface
	name string
	// events are the changes of the pod since its creation.
	events watch.Interface
}

func (r *player) play(ctx context.Context, s *Script) error {
	var err error
	for i, step := range s.Steps {
		r.Say(step.Say)
		if i == 0 {
			_, err = r.pods.Create(ctx, s.NewPod(), metav1.CreateOptions{})
		} else {
			if !step.Soon {
				time.Sleep(moment)
			}
			err = r.do(ctx, &step)
		}
		if err == nil {
			err = r.await(ctx, step.Until)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", s.Name, step.Say, err)
		}
	}
	return nil
}

func (r *player) do(ctx context.Context, step *Step) error {
	update := func(pod *corev1.Pod) (*corev1.Pod, error) { return r.pods.Update(ctx, pod, metav1.UpdateOptions{}) }
	resize := func(pod *corev1.Pod) (*corev1.Pod, error) {
		return r.pods.UpdateResize(ctx, pod.Name, pod, metav1.UpdateOptions{})
	}
	status := func(pod *corev1.Pod) (*corev1.Pod, error) {
		return r.pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
	switch {
	case step.KillKubelet:
		return r.node.KillKubelet(ctx)
	case step.StartKubelet:
		return r.node.StartKubelet(ctx)
	case step.Delete:
		if err := r.pods.Delete(ctx, r.name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return r.takeUntil(ctx, "the deletion", func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	case step.Edit != nil:
		return r.change(ctx, step.Edit, update)
	case step.Resize != nil:
		return r.change(ctx, step.Resize, resize)
	case step.Status != nil:
		return r.change(ctx, step.Status, status)
	default:
		return errors.New("there is nothing to do")
	}
}

// change changes the pod and writes it, repeatedly after conflicts with the kubelet, and waits until the film shows the
// change.
func (r *player) change(ctx context.Context, by func(*corev1.Pod), write func(*corev1.Pod) (*corev1.Pod, error)) error {
	var written *corev1.Pod
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := r.pods.Get(ctx, r.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		by(pod)
		written, err = write(pod)
		return err
	})
	if err != nil {
		return err
	}
	return r.takeUntil(ctx, "its own write", func(pod *corev1.Pod) bool { return pod.ResourceVersion == written.ResourceVersion })
}

// await reads changes until the film shows what is wanted.
func (r *player) await(ctx context.Context, wanted []string) error {
	if len(wanted) == 0 || r.Has(wanted...) {
		return nil
	}
	return r.takeUntil(ctx, strings.Join(wanted, ", "), func(*corev1.Pod) bool { return r.Has(wanted...) })
}

// takeUntil reads changes until one is as wanted.
func (r *player) takeUntil(ctx context.Context, what string, holds func(*corev1.Pod) bool) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, context.Cause(ctx))
		case event, ok := <-r.events.ResultChan():
			if !ok {
				return fmt.Errorf("waited for %s: the watch has ended", what)
			}
			pod, ok := event.Object.(*corev1.Pod)
			switch {
			case !ok:
				continue
			case event.Type == watch.Deleted:
				r.ShowGone()
			default:
				r.Show(pod)
			}
			if holds(pod) {
				return nil
			}
		}
	}
}
