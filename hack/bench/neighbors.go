// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

const (
	// noisyNamespaces have noisySets sets each without pods, which are edited noisyEvery. brokenSets is how many sets are broken.
	noisyNamespaces, noisySets, brokenSets = 10, 30, 500
	noisyEvery                             = 4 * time.Millisecond
	// noisyTemplates is how many edits there are for each that changes the template, which costs the API server several writes.
	noisyTemplates = 8
	// hangingSets is how many sets there are in a namespace whose creates of pods get no answer. Pods are lost elsewhere after at least
	// hangingCreates of these creates.
	hangingSets, hangingCreates = 25, 5
	// setPods is the number of pods of a set.
	setPods = 3
	// losses is how many pods are lost one after the other, and lossEvery the time between two.
	losses    = 7
	lossEvery = 3 * time.Second
	// longestDelay is by how much longer a lost pod may wait for its successor beside neighbors, in seconds.
	longestDelay = 1
)

// neighborsTrial is a run of the trial of neighbors.
type neighborsTrial struct {
	bed     *bed
	process process
	percent int
	shop    *rollSets
	facts   []fact
	alone   loss
}

// loss is how long a lost pod takes: until the manager sends the first write for it, and until any client hears of it, in seconds.
type loss struct{ write, event float64 }

// measureNeighbors deletes pods of a set, and measures how long the manager takes to send the first write for each: alone, while the
// sets of other namespaces are edited, beside sets that are broken, and beside a namespace with a webhook that never answers.
func measureNeighbors(ctx context.Context, b *bed, percent int) (facts []fact, err error) {
	p, err := startManager(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	t := &neighborsTrial{bed: b, process: p, percent: percent}
	if t.shop, err = b.newRollSets(ctx, wish{image: "app:v1", note: "1", replicas: setPods}, 1); err != nil {
		return nil, err
	}
	if err := t.shop.awaitReady(ctx, p); err != nil {
		return nil, err
	}
	if t.alone, err = t.lose(ctx); err != nil {
		return nil, err
	}
	t.facts = append(t.facts, fact{Name: "first write for a lost pod, alone, median", Value: t.alone.write, Unit: "s", Limit: noLimit})
	if err := errors.Join(t.besideEdits(ctx), t.besideBroken(ctx), t.besideHanging(ctx)); err != nil {
		return nil, err
	}
	return t.facts, nil
}

// besideEdits loses pods while sets in other namespaces are edited.
func (t *neighborsTrial) besideEdits(ctx context.Context) error {
	var noisy []*rollSets
	for range noisyNamespaces {
		sets, err := t.bed.newRollSets(ctx, wish{image: "app:v1", note: "1"}, max(1, noisySets*t.percent/100))
		if err != nil {
			return err
		}
		noisy = append(noisy, sets)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	edits, group := 0, errgroup.Group{}
	group.SetLimit(editors)
	start := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; sleep(ctx, noisyEvery) == nil; n++ {
			s := noisy[n%len(noisy)]
			w := s.wishes[n/len(noisy)%len(s.wishes)]
			group.Go(func() error {
				if n%noisyTemplates == 0 {
					return s.change(ctx, &w, func(w *wish) { w.note = strconv.Itoa(n) })
				}
				set := &v1beta1.RollSet{ObjectMeta: w.meta()}
				deadline := fmt.Appendf(nil, `{"spec":{"progressDeadlineSeconds":%d}}`, 600+n)
				return t.bed.objects.Patch(ctx, set, client.RawPatch(types.MergePatchType, deadline))
			})
			edits++
		}
	}()
	took, err := t.lose(ctx)
	lasted := time.Since(start)
	stop()
	<-done
	_ = group.Wait() // those that the end cut off
	if err != nil {
		return err
	}
	t.note(took, fmt.Sprintf("%.0f edits a second of %d sets in %d namespaces", float64(edits)/lasted.Seconds(), noisyNamespaces*len(noisy[0].wishes), noisyNamespaces))
	return nil
}

// besideBroken loses pods beside sets that are broken, each in its own way.
func (t *neighborsTrial) besideBroken(ctx context.Context) error {
	images := []string{"app:missing", "app:broken", "app:crash", "app:exit", " "} // the last is invalid
	n := max(1, brokenSets*t.percent/100/(len(images)+1))
	for _, image := range images {
		if _, err := t.bed.newRollSets(ctx, wish{image: image, note: "1", replicas: 2}, n); err != nil {
			return err
		}
	}
	full, err := t.bed.namespace(ctx)
	if err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: full, Name: "full"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	if err := t.bed.objects.Create(ctx, quota); err != nil {
		return err
	}
	if _, err := t.bed.newRollSetsIn(ctx, full, wish{image: "app:v1", note: "1", replicas: 2}, n); err != nil {
		return err
	}
	took, err := t.lose(ctx)
	if err != nil {
		return err
	}
	t.note(took, fmt.Sprintf("%d broken sets", (len(images)+1)*n))
	return nil
}

// besideHanging loses pods beside sets of a namespace in which a webhook never answers when pods are created.
func (t *neighborsTrial) besideHanging(ctx context.Context) error {
	namespace, err := t.bed.namespace(ctx)
	if err != nil {
		return err
	}
	hook, err := testbed.NewHangingWebhook(namespace)
	if err != nil {
		return err
	}
	defer hook.Close()
	if err := t.bed.objects.Create(ctx, hook.Config); err != nil {
		return err
	}
	defer func() { _ = t.bed.objects.Delete(context.WithoutCancel(ctx), hook.Config) }() // the cluster goes too
	if _, err := t.bed.newRollSetsIn(ctx, namespace, wish{image: "app:v1", note: "1", replicas: setPods}, hangingSets); err != nil {
		return err
	}
	for hook.Waiting.Load() < hangingCreates {
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
	took, err := t.lose(ctx)
	if err != nil {
		return err
	}
	t.note(took, fmt.Sprintf("%d sets behind a webhook that never answers", hangingSets))
	return nil
}

func (t *neighborsTrial) note(took loss, beside string) {
	t.facts = append(t.facts,
		fact{Name: "first write for a lost pod beside " + beside + ", median", Value: took.write, Unit: "s", Limit: noLimit},
		fact{Name: "by how much longer than alone, beside " + beside, Value: took.write - t.alone.write, Unit: "s", Limit: longestDelay},
		fact{Name: "by how much longer it takes until any client hears of it", Value: took.event - t.alone.event, Unit: "s", Limit: noLimit})
}

// lose deletes pods of the shop one after the other, and returns the medians.
func (t *neighborsTrial) lose(ctx context.Context) (loss, error) {
	var writes, events []float64
	for range losses {
		if err := sleep(ctx, lossEvery); err != nil {
			return loss{}, err
		}
		write, event, err := t.loseOne(ctx)
		if err != nil {
			return loss{}, err
		}
		writes, events = append(writes, write.Seconds()), append(events, event.Seconds())
	}
	slices.Sort(writes)
	slices.Sort(events)
	return loss{writes[losses/2], events[losses/2]}, nil
}

// loseOne deletes a pod. It returns how long it takes until the manager creates a pod, and until a watch of this program shows it.
func (t *neighborsTrial) loseOne(ctx context.Context) (write, event time.Duration, err error) {
	set := t.shop.wishes[0].name
	pods := &corev1.PodList{}
	if err := t.bed.objects.List(ctx, pods, client.InNamespace(set.Namespace)); err != nil {
		return 0, 0, err
	}
	live := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil })
	if live < 0 {
		return 0, 0, fmt.Errorf("no pod of %s is left to lose", set)
	}
	pod := pods.Items[live]
	log, err := audit.From(t.bed.AuditLog)
	if err != nil {
		return 0, 0, err
	}
	heard := newGoal(1, func(p *corev1.Pod) bool { return p.UID == pod.UID && p.DeletionTimestamp != nil })
	t.shop.watcher.aim(heard)
	lost := time.Now()
	if err := t.bed.api.CoreV1().Pods(set.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return 0, 0, err
	}
	if err := t.shop.watcher.await(ctx, t.process.Done()); err != nil {
		return 0, 0, err
	}
	for {
		at, err := firstCreate(log, set)
		if err != nil || !at.IsZero() {
			return at.Sub(lost), heard.at.Sub(lost), err
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return 0, 0, err
		}
	}
}

// firstCreate returns when the manager first created a pod in the namespace of a set; zero if it did not yet.
func firstCreate(log audit.Log, set types.NamespacedName) (time.Time, error) {
	requests, err := log.Requests(manager.User)
	for _, r := range requests {
		if r.Verb == "create" && r.Resource == string(corev1.ResourcePods) && r.Namespace == set.Namespace {
			return r.At, nil
		}
	}
	return time.Time{}, err
}
