// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/testbed"
)

// BenchmarkPods measures the nodes: how many pods a second become ready when nothing takes time, and what of this
// process' CPU that takes. Each pod is three status writes and a binding.
func BenchmarkPods(b *testing.B) {
	const batch, creators = 500, 16
	cluster, err := testbed.Start(b.Context(), testbed.Options{
		Model: &kubelet.Model{}, WithoutScheduler: true, WithoutControllerManager: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			b.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	pods, ready := client.CoreV1().Pods(namespace), readyPods(b, client)
	cpu := processTime(b)
	for round := 0; b.Loop(); round++ {
		for creator := range creators {
			go func() {
				for i := creator; i < batch; i += creators {
					if _, err := pods.Create(b.Context(), newPod(fmt.Sprintf("p-%d-%d", round, i), "app:v1"), metav1.CreateOptions{}); err != nil {
						b.Error(err)
					}
				}
			}()
		}
		for range batch {
			<-ready
		}
	}
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N*batch)/seconds, "pods/s")
	b.ReportMetric((processTime(b)-cpu).Seconds()/seconds, "cores")
}

// readyPods sends every pod once, when it is ready.
func readyPods(b *testing.B, client kubernetes.Interface) <-chan *corev1.Pod {
	b.Helper()
	ready := make(chan *corev1.Pod)
	factory := informers.NewSharedInformerFactory(client, 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, isPod := before.(*corev1.Pod)
			is, arePods := after.(*corev1.Pod)
			if isPod && arePods && !isReady(was) && isReady(is) {
				ready <- is
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	factory.Start(b.Context().Done())
	factory.WaitForCacheSync(b.Context().Done())
	return ready
}

// processTime returns the CPU time that this process has used.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
