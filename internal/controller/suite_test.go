// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/optional"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/manager/apiclient"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

func TestController(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience.Long())
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "controller")
}

// bed is shared by all specs: a real API server, simulated nodes, and the manager. There is no garbage collector.
type bed struct {
	client     client.WithWatch
	reconciler *Reconciler
	faults     *faults
	rights     *rights
}

// rights has the rights of the manager to optional kinds, with a clock that stands: it asks for them again when a spec says so.
type rights struct {
	clock   *clocktesting.FakeClock
	missing atomic.Value
}

// are sets what the manager lacks, and lets it ask.
func (r *rights) are(missing string) {
	r.missing.Store(missing)
	r.clock.Step(optional.AskEvery)
}

var shared bed

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	root, err := assets.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	binaries, err := assets.Find()
	Expect(err).NotTo(HaveOccurred())
	environment := &envtest.Environment{
		ControlPlaneStartTimeout: patience.Long(), ControlPlaneStopTimeout: patience.Long(),
		BinaryAssetsDirectory: binaries,
		CRDDirectoryPaths:     []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: patience.Long()},
	}
	config, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	config.QPS = -1

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	fleet, err := nodes.Start(running, config, nodes.Options{Bind: true, Claims: true, Model: kubelet.Model{BackOff: time.Second}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { stop(); fleet.Wait() })

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1beta1.AddToScheme(scheme)).To(Succeed())
	shared.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	shared.faults = &faults{}
	shared.rights = &rights{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	startManager(running, config, scheme)
})

// startManager runs the real manager, with a client that counts and fails on demand, and a cache of pods that can lag.
func startManager(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) {
	trim := &informer.Trim{}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:    scheme,
		NewClient: apiclient.New,
		Metrics:   metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: func(pod any) (any, error) {
				pod, err := shared.faults.lag(pod)
				if err != nil {
					return nil, err
				}
				return trim.Pod(pod)
			}}},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(informer.IndexFields(ctx, mgr.GetFieldIndexer())).To(Succeed())
	marks, err := informer.NewMarks(ctx, mgr.GetCache())
	Expect(err).NotTo(HaveOccurred())
	pods, err := informer.NewPods(ctx, mgr.GetCache(), mgr.GetClient())
	Expect(err).NotTo(HaveOccurred())
	realClock := clock.RealClock{}
	store := expectations.New(realClock)
	kinds := optional.New()
	kinds.Cache, kinds.Clock = mgr.GetCache(), shared.rights.clock
	kinds.Shown, kinds.Hidden = marks.Show(mgr.GetCache()), marks.Hide
	kinds.Rights = func(context.Context, client.Object) (string, error) {
		missing, _ := shared.rights.missing.Load().(string)
		return missing, nil
	}
	shared.reconciler = &Reconciler{
		Client:       &faultyClient{Client: mgr.GetClient(), faults: shared.faults},
		Live:         &countingReader{Reader: mgr.GetAPIReader(), faults: shared.faults},
		Pods:         pods,
		Nodes:        informer.NewNodes(mgr.GetCache(), mgr.GetClient()),
		Watermarks:   marks.Of,
		Optional:     kinds.Access,
		Clock:        realClock,
		Events:       mgr.GetEventRecorder("rollset-controller"),
		Runner:       podcontrol.Bounded(8, 16),
		Expectations: store,
		Metrics:      metrics.New(prometheus.NewRegistry(), store),
		Line:         NewLine(4, realClock),
	}
	Expect(shared.reconciler.SetupWithManager(mgr, kinds.Source(shared.reconciler.OptionalSources()))).To(Succeed())
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(done).Should(Receive(Succeed()))
	})
}
