// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"
)

const (
	// leftOver is how many pods are left after a scale-in.
	leftOver = 10
	// noopWriters is how many pods are annotated at a time.
	noopWriters = 16
	// setCount and foreignCount are how many sets share the pods of the works with several sets, and how many foreign pods
	// there are.
	setCount     = 20
	foreignCount = 5000
)

// These are the works, by the names that flags and targets use.
const (
	workCreate      = "create"
	workNoop        = "noop"
	workRecreate    = "recreate"
	workScaleIn     = "scale-in"
	workCreateGated = "create-gated"
	workMetadata    = "metadata"
	workInPlace     = "in-place"
	workSets        = "sets"
	workForeign     = "foreign"
)

// work is a task for every competitor.
type work struct {
	name string
	// can reports whether a competitor can do the work; nil means that all can.
	can func(*competitor) bool
	// goals are reached when the competitor has requested everything, and when everything is done.
	goals func(*session) (written, done *goal)
	// ask asks the competitor for the work.
	ask func(context.Context, *session) error
}

// sequence is a list of works, one after the other, with new sets in a new namespace.
type sequence struct {
	works []work
	// sets is the number of sets that the pods belong to.
	sets int
	// inPlace lets pods be updated in place.
	inPlace bool
	// foreign adds foreign pods to the cluster, where they stay. Such sequences come last.
	foreign bool
	// one is true if one number of pods is enough.
	one bool
}

func sequences() []sequence {
	return []sequence{
		{sets: 1, works: []work{creation(workCreate), noop(), recreation(workRecreate), scaleIn()}},
		{sets: 1, inPlace: true, works: []work{inPlaceOnly(creation(workCreateGated)), metadata(), inPlace()}},
		{sets: setCount, one: true, works: []work{creation(workSets)}},
		{sets: setCount, one: true, foreign: true, works: []work{creation(workForeign)}},
	}
}

func creation(name string) work {
	return work{
		name:  name,
		goals: func(s *session) (*goal, *goal) { return newGoal(s.pods, anyPod), newGoal(s.pods, isReady) },
		ask:   func(ctx context.Context, s *session) error { return s.createSets(ctx) },
	}
}

func recreation(name string) work {
	isNew := runs("app:v2")
	return work{
		name: name,
		can:  func(c *competitor) bool { return c.updates },
		goals: func(s *session) (*goal, *goal) {
			return newGoal(s.pods, isNew), newGoal(s.pods, func(p *corev1.Pod) bool { return isNew(p) && isReady(p) })
		},
		ask: func(ctx context.Context, s *session) error {
			return s.change(ctx, func(w *wish) { w.image = "app:v2" })
		},
	}
}

func scaleIn() work {
	return work{
		name: workScaleIn,
		goals: func(*session) (*goal, *goal) {
			return newGoal(leftOver, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil }), newGoal(leftOver, anyPod)
		},
		ask: func(ctx context.Context, s *session) error {
			return s.change(ctx, func(w *wish) { w.replicas = leftOver })
		},
	}
}

// noop changes every pod once in a way that has no effect.
func noop() work {
	isNoted := func(p *corev1.Pod) bool { return p.Annotations[noopAnnotation] != "" }
	return work{
		name:  workNoop,
		goals: func(s *session) (*goal, *goal) { return newGoal(s.pods, isNoted), newGoal(s.pods, isNoted) },
		ask: func(ctx context.Context, s *session) error {
			return s.eachPod(ctx, func(ctx context.Context, name string) error {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"yes"}}}`, noopAnnotation)
				_, err := s.api.CoreV1().Pods(s.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
				return err
			})
		},
	}
}

func metadata() work {
	isNew := func(p *corev1.Pod) bool { return p.Annotations[noteAnnotation] == "2" }
	return inPlaceOnly(work{
		name: workMetadata,
		goals: func(s *session) (*goal, *goal) {
			return newGoal(s.pods, isNew), newGoal(s.pods, func(p *corev1.Pod) bool { return isNew(p) && isReady(p) })
		},
		ask: func(ctx context.Context, s *session) error {
			return s.change(ctx, func(w *wish) { w.note = "2" })
		},
	})
}

func inPlace() work {
	w := inPlaceOnly(recreation(workInPlace))
	w.goals = func(s *session) (*goal, *goal) {
		isNew := runs("app:v2")
		return newGoal(s.pods, isNew), newGoal(s.pods, func(p *corev1.Pod) bool {
			return isNew(p) && isReady(p) && len(p.Status.ContainerStatuses) > 0 &&
				strings.HasSuffix(p.Status.ContainerStatuses[0].Image, "/app:v2") // nodes name images in full
		})
	}
	return w
}

func inPlaceOnly(w work) work {
	w.can = func(c *competitor) bool { return c.updatesInPlace }
	return w
}

func anyPod(*corev1.Pod) bool { return true }

func isReady(p *corev1.Pod) bool {
	return podutils.IsPodReady(p) && p.DeletionTimestamp == nil
}

func runs(image string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == image && p.DeletionTimestamp == nil }
}

// eachPod calls a function for all pods of the namespace, some at a time.
func (s *session) eachPod(ctx context.Context, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(noopWriters)
	for _, name := range s.watcher.names() {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}
