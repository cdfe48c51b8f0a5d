// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// requests is how many requests must have been answered on each side of a moment before the spec continues.
const requests = 30

var _ = Describe("Traffic", func() {
	f := newFixture()

	// The pods have no probe, so they stay Ready whatever happens to their container. They take long to end: a request that
	// arrives meanwhile is answered, and the answer reveals it. The grace period is as long as a busy machine may need to tell
	// the consumer that an endpoint is not ready.
	It("is turned away before a container is touched", func(ctx SpecContext) {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		Expect(bed.client.Create(ctx, service)).To(Succeed())
		slow := container("app", func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "TERM_DELAY", Value: "1s"}} })
		graceful := func(s *v1beta1.RollSet) {
			s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 15}
		}
		set := f.create(ctx, newSet("web", 3, inPlace(), probeless(), slow, graceful))
		before := f.pods(ctx, set)

		c := newClient(ctx, f.namespace)
		Eventually(c.answered).WithContext(ctx).Should(BeNumerically(">", requests), "requests before the update")
		set = f.update(ctx, set, image("web:2"))
		until := c.answered() + requests
		Eventually(c.answered).WithContext(ctx).Should(BeNumerically(">", until), "requests after the update")
		c.stop()

		Expect(c.wrong()).To(BeEmpty(), "requests that reached a container on its way out, or none")
		AddReportEntry(fmt.Sprintf("requests answered during an update in place with a grace period: %d, none of them wrong", c.answered()),
			ReportEntryVisibilityAlways)
		f.expectRestarted(ctx, set, before, "app")
	})
})

// consumer sends one request after another to the ready endpoints of a service, in turn, as soon as it learns of them.
type consumer struct {
	mu        sync.Mutex
	endpoints map[string][]string // of each slice
	count     int
	failures  []string
	stop      func()
}

// newClient starts a client of the only service of a namespace.
func newClient(ctx context.Context, namespace string) *consumer {
	GinkgoHelper()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &consumer{endpoints: map[string][]string{}}
	watch, err := bed.client.Watch(running, &discoveryv1.EndpointSliceList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	var done sync.WaitGroup
	c.stop = func() {
		cancel()
		watch.Stop()
		done.Wait()
	}
	DeferCleanup(c.stop)
	done.Go(func() {
		for event := range watch.ResultChan() {
			if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok {
				c.learn(slice)
			}
		}
	})
	done.Go(func() {
		for i := 0; running.Err() == nil; i++ {
			c.send(running, i)
		}
	})
	return c
}

func (c *consumer) learn(slice *discoveryv1.EndpointSlice) {
	var ready []string
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready != nil && *e.Conditions.Ready {
			ready = append(ready, e.Addresses...)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints[slice.Name] = ready
}

// send sends one request to the next endpoint.
func (c *consumer) send(ctx context.Context, i int) {
	c.mu.Lock()
	var ready []string
	for _, addresses := range c.endpoints {
		ready = append(ready, addresses...)
	}
	c.mu.Unlock()
	if len(ready) == 0 {
		time.Sleep(10 * time.Millisecond)
		return
	}
	address := ready[i%len(ready)]
	body, err := get(ctx, address, "/")
	if ctx.Err() != nil {
		return
	}
	var r reply
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	switch {
	case err != nil:
		c.failures = append(c.failures, fmt.Sprintf("%s: %v", address, err))
	case r.Ending:
		c.failures = append(c.failures, fmt.Sprintf("%s: version %s was already asked to end", address, r.Version))
	}
}

func (c *consumer) answered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

func (c *consumer) wrong() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}
