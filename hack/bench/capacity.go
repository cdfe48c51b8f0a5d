// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/hack/bench/standin"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
	"rollset.dev/rollset/internal/testing/testbed/manager"
	"rollset.dev/rollset/internal/testing/testbed/usage"
)

const (
	// capacitySets and capacityPods are the size of the trial: this many sets of this many pods. capacityStrangers is how many
	// foreign pods come to them, and largestSet how many pods the one set has that comes last.
	capacitySets, capacityPods = 2000, 50
	capacityStrangers          = 100_000
	largestSet                 = 50_000
)

// capacityTrial measures a manager with more pods than a machine can run. It works for the stand-in of an API server.
type capacityTrial struct {
	server  *standin.Server
	objects client.Client
	options manager.Options
	process managerProcess
	percent int
	facts   []fact
}

func measureCapacity(ctx context.Context, percent int) (facts []fact, err error) {
	dir, err := os.MkdirTemp("", "capacity")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t := &capacityTrial{percent: percent}
	if t.server, err = standin.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.server.Stop()) }()
	if err := t.prepare(ctx, dir); err != nil {
		return nil, err
	}
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = t.process.Stop() }()
	for _, step := range []func(context.Context) error{t.own, t.idle, t.restart, t.foreign, t.largest} {
		if err := step(ctx); err != nil {
			return t.facts, err
		}
	}
	return t.facts, nil
}

// prepare builds the manager and writes its kubeconfig.
func (t *capacityTrial) prepare(ctx context.Context, dir string) (err error) {
	t.objects, err = client.New(&rest.Config{Host: t.server.URL, QPS: -1}, client.Options{Scheme: apiserver.NewScheme()})
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["standin"] = &clientcmdapi.Cluster{Server: t.server.URL}
	config.Contexts["standin"] = &clientcmdapi.Context{Cluster: "standin"}
	config.CurrentContext = "standin"
	t.options = manager.Options{Kubeconfig: filepath.Join(dir, "kubeconfig"), Log: filepath.Join(dir, "manager.log")}
	if err := clientcmd.WriteToFile(*config, t.options.Kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	say("building the manager")
	t.options.Binary, err = manager.Build(ctx, dir)
	return err
}

func (t *capacityTrial) start(ctx context.Context) error {
	p, err := manager.Start(context.WithoutCancel(ctx), t.options) // Stop ends it
	t.process = managerProcess{p}
	return err
}

func (t *capacityTrial) note(name string, value float64, unit string, limit float64) {
	t.facts = append(t.facts, fact{Name: name, Value: value, Unit: unit, Limit: limit})
	say(fmt.Sprintf("%s: %.2f %s", name, value, unit))
}

// grow measures what a change of the cluster adds to the live heap, in MB.
func (t *capacityTrial) grow(ctx context.Context, by func() error) (float64, error) {
	before, err := liveHeap(ctx, t.process)
	if err != nil {
		return 0, err
	}
	if err := by(); err != nil {
		return 0, err
	}
	after, err := liveHeap(ctx, t.process)
	return (after - before) / mega, err
}

// own brings the sets.
func (t *capacityTrial) own(ctx context.Context) error {
	sets, pods := capacitySets*t.percent/100, capacitySets*capacityPods*t.percent/100
	begin := time.Now()
	cpu, err := usage.CPU(t.process.PID())
	if err != nil {
		return err
	}
	heap, err := t.grow(ctx, func() error {
		for i := range sets {
			if err := t.create(ctx, "set-"+strconv.Itoa(i), capacityPods); err != nil {
				return err
			}
		}
		return t.await(ctx, sets)
	})
	if err != nil {
		return err
	}
	after, err := usage.CPU(t.process.PID())
	if err != nil {
		return err
	}
	size := fmt.Sprintf("%d pods in %d sets", pods, sets)
	t.note("live heap of "+size, heap, "MB", 450)
	t.note("time to create "+size, time.Since(begin).Seconds(), "s", 0)
	t.note("CPU to create "+size, (after-cpu).Seconds()*1e3/float64(pods), "ms a pod", 0)
	return nil
}

// create creates a set.
func (t *capacityTrial) create(ctx context.Context, name string, replicas int) error {
	w := wish{name: types.NamespacedName{Namespace: "default", Name: name}, image: "app:v1", note: "1", sidecar: true, replicas: replicas}
	set, err := w.rollSet()
	if err != nil {
		return err
	}
	return t.objects.Create(ctx, set)
}

// await waits until a number of sets is ready.
func (t *capacityTrial) await(ctx context.Context, sets int) error {
	for t.server.ReadySets() < sets {
		select {
		case <-t.process.Done():
			return errors.New("the manager ended")
		default:
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
	return sleep(ctx, calm)
}

// idle measures a manager with nothing to do.
func (t *capacityTrial) idle(ctx context.Context) error {
	writes := t.server.Writes()
	before, err := usage.CPU(t.process.PID())
	if err != nil {
		return err
	}
	if err := sleep(ctx, idleTime); err != nil {
		return err
	}
	after, err := usage.CPU(t.process.PID())
	t.note("CPU of the idle manager", 100*(after-before).Seconds()/idleTime.Seconds(), "% of a core", 1)
	t.note("writes of the idle manager", float64(t.server.Writes()-writes), "in 30 s", 0)
	return err
}

// restart measures how long a manager that starts takes from the end of its lists to the first pod that it creates.
func (t *capacityTrial) restart(ctx context.Context) error {
	if err := t.process.Stop(); err != nil {
		return err
	}
	if err := t.create(ctx, "late", 1); err != nil {
		return err
	}
	begin := time.Now()
	t.server.Forget()
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := t.await(ctx, capacitySets*t.percent/100+1); err != nil {
		return err
	}
	listed, created := t.server.Listed(apiserver.Pods), t.server.FirstCreated()
	t.note("restart: time of the list of pods", listed.Sub(begin).Seconds(), "s", 0)
	t.note("restart: from there to the first pod", created.Sub(listed).Seconds(), "s", 10)
	return nil
}

// foreign brings pods of others.
func (t *capacityTrial) foreign(ctx context.Context) error {
	n := capacityStrangers * t.percent / 100
	heap, err := t.grow(ctx, func() error {
		t.server.Load(strangers(n)...)
		return sleep(ctx, calm)
	})
	t.note(fmt.Sprintf("live heap of %d foreign pods", n), heap*1e3/float64(n), "kB a pod", 1.2)
	return err
}

// strangers returns pods of ReplicaSets, ten of each.
func strangers(n int) []client.Object {
	w := wish{image: "app:v1", note: "1", sidecar: true}
	objects := make([]client.Object, n)
	for i := range objects {
		owner := "other-" + strconv.Itoa(i/10)
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID = "default", owner+"-"+strconv.Itoa(i), types.UID("stranger-"+strconv.Itoa(i))
		pod.Labels = map[string]string{"app": owner}
		pod.OwnerReferences = strangerOwner(owner)
		pod.Spec = w.template().Spec
		objects[i] = pod
	}
	return objects
}

// largest brings one large set, and measures what it costs.
func (t *capacityTrial) largest(ctx context.Context) error {
	n := largestSet * t.percent / 100
	before, err := usage.CPU(t.process.PID())
	if err != nil {
		return err
	}
	begin := time.Now()
	heap, err := t.grow(ctx, func() error {
		if err := t.create(ctx, "largest", n); err != nil {
			return err
		}
		return t.await(ctx, capacitySets*t.percent/100+2)
	})
	if err != nil {
		return err
	}
	after, err := usage.CPU(t.process.PID())
	t.note(fmt.Sprintf("live heap of a set of %d pods", n), heap, "MB", 0)
	t.note(fmt.Sprintf("time to create a set of %d pods", n), time.Since(begin).Seconds(), "s", 0)
	t.note(fmt.Sprintf("CPU to create a set of %d pods", n), (after-before).Seconds()*1e3/float64(n), "ms a pod", 0)
	return err
}
