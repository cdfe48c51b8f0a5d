// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the RollSet controller.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/optional"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/manager/apiclient"
	"rollset.dev/rollset/internal/manager/footprint"
	"rollset.dev/rollset/internal/manager/metricsauth"
	"rollset.dev/rollset/internal/manager/startup"
	"rollset.dev/rollset/internal/podcontrol"
)

const (
	// leaseName is the lease that decides which of several managers acts.
	leaseName = "manager.rollset.dev"
	// parallelWrites is how many writes of one set may run at a time, and allWrites how many of all sets. Half of them may be of
	// one namespace.
	parallelWrites = 32
	allWrites      = 8 * parallelWrites
	// cacheSyncTimeout is how long the first listing of all pods of a large cluster may take.
	cacheSyncTimeout = 10 * time.Minute
	// reconcileTimeout ends a reconcile whose writes hang.
	reconcileTimeout = 2 * time.Minute
	// shutdownTimeout is how long running reconciles may take to end. It is shorter than the pod's grace period.
	shutdownTimeout = 8 * time.Second
)

func main() {
	err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	if o.version {
		_, err := fmt.Fprintln(out, version())
		return err
	}
	ctrl.SetLogger(quietStop(ctx, zap.New(zap.UseFlagOptions(&o.logging))))
	if o.leaderNamespace, err = o.leaseNamespace(); err != nil {
		return err
	}
	o.limitMemory()
	realClock := clock.RealClock{}
	if o.metricsCertPath != "" {
		cert, key := filepath.Join(o.metricsCertPath, o.metricsCertName), filepath.Join(o.metricsCertPath, o.metricsCertKey)
		if err := startup.Certificate(cert, key, realClock.Now()); err != nil {
			return fmt.Errorf("serve metrics: %w", err)
		}
	}
	difference := apiclient.NewClockDifference(realClock, ctrl.Log.WithName("clock"))
	mgr, err := newManager(o, difference)
	if err != nil {
		return err
	}
	if err := install(ctx, mgr, o, difference); err != nil {
		return err
	}
	setup := ctrl.Log.WithName("setup")
	if len(o.ignored) > 0 {
		setup.Info("ignored variables: no flag has their names", "variables", o.ignored)
	}
	setup.Info("starting", "version", version(), "namespaces", o.namespaces, "flagsFromVariables", o.fromEnvironment)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

func newManager(o options, difference *apiclient.ClockDifference) (ctrl.Manager, error) {
	restConfig, err := clientconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (use --kubeconfig or KUBECONFIG): %w", err)
	}
	restConfig.DisableCompression = true // as in Kubernetes' own controllers: close to the API server, compression costs more than it saves
	apiclient.Watch(restConfig, difference)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	namespaces := configs(o.namespaces)
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:    scheme,
		NewClient: apiclient.New,
		Cache: cache.Options{
			DefaultNamespaces:           namespaces,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject:                    informer.ByObject(namespaces),
			ReaderFailOnMissingInformer: true,
		},
		Controller: config.Controller{
			CacheSyncTimeout:      cacheSyncTimeout,
			ReconciliationTimeout: reconcileTimeout,
			RecoverPanic:          new(true),
		},
		Metrics:                       metricsOptions(o),
		HealthProbeBindAddress:        o.probeAddress,
		PprofBindAddress:              o.pprofAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.leaderNamespace,
		LeaderElectionReleaseOnCancel: true, // main returns when the manager has stopped
		GracefulShutdownTimeout:       new(shutdownTimeout),
	})
	if err != nil {
		return nil, fmt.Errorf("build the manager: %w", err)
	}
	return mgr, nil
}

// configs returns a cache configuration that is restricted to namespaces; without any it is not restricted.
func configs(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	all := map[string]cache.Config{}
	for _, name := range namespaces {
		all[name] = cache.Config{}
	}
	return all
}

func metricsOptions(o options) metricsserver.Options {
	m := metricsserver.Options{
		BindAddress: o.metricsAddress, SecureServing: o.metricsSecure,
		CertDir: o.metricsCertPath, CertName: o.metricsCertName, KeyName: o.metricsCertKey,
	}
	if o.metricsSecure {
		m.FilterProvider = metricsauth.Filter(clock.RealClock{})
		// HTTP/2 lets a client make a server work without end (CVE-2023-44487). Nothing here needs it.
		m.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return m
}

// install adds the controller and the probes to the manager, after it has checked that they can work.
func install(ctx context.Context, mgr ctrl.Manager, o options, difference *apiclient.ClockDifference) error {
	realClock := clock.RealClock{}
	if err := startup.Served(mgr.GetRESTMapper(), v1beta1.GroupVersion.WithKind("RollSet")); err != nil {
		return err
	}
	if err := informer.IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	marks, err := informer.NewMarks(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	pods, err := informer.NewPods(ctx, mgr.GetCache(), mgr.GetClient())
	if err != nil {
		return err
	}
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	kinds := optionalKinds(mgr, live, marks, o)
	kinds.Clock = realClock
	store := expectations.New(realClock)
	reconciler := &controller.Reconciler{
		Client:       mgr.GetClient(),
		Live:         mgr.GetAPIReader(),
		Pods:         pods,
		Nodes:        informer.NewNodes(mgr.GetCache(), mgr.GetClient()),
		Watermarks:   marks.Of,
		Optional:     kinds.Access,
		Clock:        realClock,
		ClockAhead:   difference.Ahead,
		Events:       mgr.GetEventRecorder("rollset-controller"),
		Runner:       podcontrol.Bounded(parallelWrites, allWrites),
		Expectations: store,
		Metrics:      metrics.New(ctrlmetrics.Registry, store),
		Line:         controller.NewLine(o.concurrency, realClock),
	}
	metrics.OfClock(ctrlmetrics.Registry, difference.Ahead)
	if err := permitted(ctx, live, reconciler.Sources(), o); err != nil {
		return err
	}
	if err := reconciler.SetupWithManager(mgr, kinds.Source(reconciler.OptionalSources())); err != nil {
		return fmt.Errorf("install the controller: %w", err)
	}
	return addChecks(mgr)
}

// addChecks adds the runnable that returns memory to the system, and the checks of health and readiness.
func addChecks(mgr ctrl.Manager) error {
	return cmp.Or(
		mgr.Add(footprint.Runnable()),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", cachesSynced(mgr.GetCache())),
	)
}

// optionalKinds returns the kinds that only some sets need. The live client asks for the rights to them.
func optionalKinds(mgr ctrl.Manager, live client.Client, marks *informer.Marks, o options) *optional.Kinds {
	kinds := optional.New()
	kinds.Cache = mgr.GetCache()
	kinds.Rights = func(ctx context.Context, kind client.Object) (string, error) {
		return startup.Missing(ctx, live, kind, optional.Verbs(kind), o.namespaces)
	}
	kinds.Shown, kinds.Hidden = marks.Show(mgr.GetCache()), marks.Hide
	return kinds
}

// permitted fails if the manager may not watch what it must, or use its lease.
func permitted(ctx context.Context, live client.Client, sources []watch.Source, o options) error {
	var kinds []client.Object
	for _, source := range sources {
		kinds = append(kinds, source.Object)
	}
	if err := startup.MayWatch(ctx, live, kinds, o.namespaces); err != nil || !o.leaderElect {
		return err
	}
	return startup.MayElect(ctx, live, client.ObjectKey{Namespace: o.leaderNamespace, Name: leaseName})
}

// cachesSynced fails until the caches have listed everything, because before that the controller sees sets without pods.
func cachesSynced(caches cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !caches.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
