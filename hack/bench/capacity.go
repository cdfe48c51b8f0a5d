// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/hack/bench/standin"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

const (
	// capacitySets and capacityPods are the size of the trial: this many sets of this many pods. capacityStrangers is how
	// many foreign pods come to them, and largestSet how many pods the one set has that comes last.
	capacitySets, capacityPods = 2000, 50
	capacityStrangers          = 100_000
	largestSet                 = 50_000
	// busyPart is the divisor of a core that separates work from idling: a manager that uses less than this part has nothing
	// to do.
	busyPart = 20
	// capacityMemory is what the stand-in should do with, in bytes. It keeps every version of every pod.
	capacityMemory = 8 << 30
	// idlePeriod is how long the idle manager is watched. In that time garbage is collected exactly once: when the manager
	// becomes idle it collects, and Go's runtime collects again two minutes later.
	idlePeriod = 2 * time.Minute
	// capacityHeap is the limit of the live heap with all sets, in MB.
	capacityHeap = 450
)

// capacityTrial measures a manager with more pods than a machine can run. It works for the stand-in of an API server.
type capacityTrial struct {
	server  *standin.Server
	objects client.Client
	options manager.Options
	process managerProcess
	facts   []fact
	// percent is the size. sets and pods are how many there are at the beginning, and size is their text.
	percent, sets, pods int
	size                string
}

// measureCapacity measures what many pods cost the manager.
func measureCapacity(ctx context.Context, percent int) (facts []fact, err error) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(capacityMemory))
	dir, err := os.MkdirTemp("", "capacity")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t := &capacityTrial{percent: percent, sets: capacitySets * percent / 100}
	t.pods = t.sets * capacityPods
	t.size = fmt.Sprintf("%d pods in %d sets", t.pods, t.sets)
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
	defer func() { err = errors.Join(err, t.process.Stop()) }()
	for _, step := range []func(context.Context) error{t.own, t.idle, t.restart, t.foreign, t.largest} {
		if err := step(ctx); err != nil {
			return t.facts, err
		}
	}
	return t.facts, nil
}

// prepare builds the manager and writes its kubeconfig.
func (t *capacityTrial) prepare(ctx context.Context, dir string) (err error) {
	access := t.server.RESTConfig()
	if t.objects, err = client.New(access, client.Options{Scheme: apiserver.NewScheme()}); err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["standin"] = &clientcmdapi.Cluster{Server: access.Host, CertificateAuthorityData: access.CAData}
	config.Contexts["standin"] = &clientcmdapi.Context{Cluster: "standin"}
	config.CurrentContext = "standin"
	t.options = manager.Options{
		Kubeconfig: filepath.Join(dir, "kubeconfig"), Log: filepath.Join(dir, "manager.log"),
		Args: []string{"--pprof-bind-address=" + profileAddress},
	}
	if err := clientcmd.WriteToFile(*config, t.options.Kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	say("building the manager")
	t.options.Binary, err = manager.Build(ctx, dir)
	return err
}

// start starts the manager.
func (t *capacityTrial) start(ctx context.Context) error {
	p, err := manager.Start(context.WithoutCancel(ctx), t.options) // Stop ends it
	if err == nil {
		t.process = managerProcess{p}
	}
	return err
}

// note adds a fact.
func (t *capacityTrial) note(name string, value float64, unit string, limit float64) {
	t.facts = append(t.facts, fact{Name: name, Value: value, Unit: unit, Limit: limit})
	say(fmt.Sprintf("%s: %.2f %s", name, value, unit))
}

// heap returns the live heap of the manager when it has nothing to do, in MB.
func (t *capacityTrial) heap(ctx context.Context) (float64, error) {
	live, err := quietHeap(ctx, t.process)
	return live / mega, err
}

// own brings the sets.
func (t *capacityTrial) own(ctx context.Context) error {
	var names []string
	for i := range t.sets {
		names = append(names, "set-"+strconv.Itoa(i))
	}
	if err := t.create(ctx, t.size, capacityPods, names...); err != nil {
		return err
	}
	heap, err := t.heap(ctx)
	t.note("live heap with "+t.size, heap, "MB", capacityHeap)
	return err
}

// create creates sets, and measures what the manager needs until they are ready.
func (t *capacityTrial) create(ctx context.Context, size string, replicas int, names ...string) error {
	begin, ready := time.Now(), t.server.ReadySets()
	used, err := cpuDuring(t.process, func() error {
		for _, name := range names {
			if err := t.createSet(ctx, name, replicas); err != nil {
				return err
			}
		}
		return t.await(ctx, ready+len(names))
	})
	if err != nil {
		return err
	}
	t.note("time to create "+size, time.Since(begin).Seconds(), "s", noLimit)
	t.note("CPU to create "+size, used.Seconds()*1e3/float64(replicas*len(names)), "ms a pod", noLimit)
	return nil
}

func (t *capacityTrial) createSet(ctx context.Context, name string, replicas int) error {
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
	return nil
}

// idle measures a manager with nothing to do.
func (t *capacityTrial) idle(ctx context.Context) error {
	writes := t.server.Writes()
	used, err := cpuDuring(t.process, func() error { return sleep(ctx, idlePeriod) })
	t.note("CPU of the idle manager with "+t.size, 100*used.Seconds()/idlePeriod.Seconds(), "% of a core", 1)
	t.note("writes of the idle manager with "+t.size, float64(t.server.Writes()-writes), "in 2 minutes", 0)
	return err
}

// restart measures how long a manager that starts takes from the end of its lists to the first pod that it creates.
func (t *capacityTrial) restart(ctx context.Context) error {
	if err := t.process.Stop(); err != nil {
		return err
	}
	if err := t.createSet(ctx, "late", 1); err != nil {
		return err
	}
	begin := time.Now()
	t.server.Forget()
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := t.await(ctx, t.sets+1); err != nil {
		return err
	}
	listed, created := t.server.Listed(apiserver.Pods), t.server.FirstCreated()
	t.note("restart with "+t.size+": until the list of pods was sent", listed.Sub(begin).Seconds(), "s", noLimit)
	t.note("restart with "+t.size+": from there to the first new pod", created.Sub(listed).Seconds(), "s", 10)
	heap, err := t.heap(ctx)
	t.note("live heap with "+t.size+", after a restart", heap, "MB", capacityHeap)
	return err
}

// foreign brings pods of others.
func (t *capacityTrial) foreign(ctx context.Context) error {
	before, err := t.heap(ctx)
	if err != nil {
		return err
	}
	n := capacityStrangers * t.percent / 100
	t.server.Load(strangers(n)...)
	after, err := t.heap(ctx)
	t.note(fmt.Sprintf("live heap of %d foreign pods", n), (after-before)*1e3/float64(n), "kB a pod", 1.2)
	return err
}

// largest brings one large set.
func (t *capacityTrial) largest(ctx context.Context) error {
	before, err := t.heap(ctx)
	if err != nil {
		return err
	}
	n := largestSet * t.percent / 100
	size := fmt.Sprintf("one set of %d pods", n)
	if err := t.create(ctx, size, n, "largest"); err != nil {
		return err
	}
	after, err := t.heap(ctx)
	t.note("live heap of "+size, after-before, "MB", noLimit)
	return err
}
