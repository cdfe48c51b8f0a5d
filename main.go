// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the RollSet controller.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/podcontrol"
)

const (
	// leaseName is the lease that makes one manager of several the acting one.
	leaseName = "manager.rollset.dev"
	// parallelWrites is how many writes of one set are under way at a time.
	parallelWrites = 32
	// cacheSyncTimeout is how long the first listing of all pods of a large cluster may take.
	cacheSyncTimeout = 10 * time.Minute
	// reconcileTimeout ends a reconcile whose writes hang.
	reconcileTimeout = 2 * time.Minute
	// shutdownTimeout is how long reconciles under way may take to end. It is less than the pod's grace period.
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

// options are what the command line says.
type options struct {
	metricsAddress  string
	metricsSecure   bool
	probeAddress    string
	leaderElect     bool
	leaderNamespace string
	namespaces      string
	concurrency     int
	version         bool
	logging         zap.Options
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "The address that serves metrics, such as :8443. 0 serves none.")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true, "Serve metrics over HTTPS, to those that may get the path /metrics.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "The address that serves /healthz and /readyz. 0 serves none.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Let one manager of several act at a time.")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "The namespace of the lease. Default: the manager's own.")
	flags.StringVar(&o.namespaces, "namespaces", "", "The namespaces to watch, separated by commas. Default: all.")
	flags.IntVar(&o.concurrency, "max-concurrent-reconciles", 10, "How many sets are worked on at a time.")
	flags.BoolVar(&o.version, "version", false, "Print the version and exit.")
	clientconfig.RegisterFlags(flags)
	o.logging.BindFlags(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see --help", flags.Arg(0))
	case o.concurrency < 1:
		return o, fmt.Errorf("--max-concurrent-reconciles: %d is less than 1", o.concurrency)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.version {
		_, err := fmt.Fprintln(out, version())
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.logging)))
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	if err := install(ctx, mgr, o.concurrency); err != nil {
		return err
	}
	ctrl.Log.WithName("setup").Info("starting", "version", version(), "namespaces", o.namespaces)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// version is that of the module, as the toolchain recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

func newManager(o options) (ctrl.Manager, error) {
	restConfig, err := clientconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (use --kubeconfig or KUBECONFIG): %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultNamespaces:           namespaces(o.namespaces),
			DefaultTransform:            cache.TransformStripManagedFields(),
			ReaderFailOnMissingInformer: true,
		},
		Controller: config.Controller{
			CacheSyncTimeout:      cacheSyncTimeout,
			ReconciliationTimeout: reconcileTimeout,
			RecoverPanic:          new(true),
		},
		Metrics:                       metricsOptions(o),
		HealthProbeBindAddress:        o.probeAddress,
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

// namespaces is what the cache is restricted to; nil means all.
func namespaces(list string) map[string]cache.Config {
	var configs map[string]cache.Config
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			if configs == nil {
				configs = map[string]cache.Config{}
			}
			configs[name] = cache.Config{}
		}
	}
	return configs
}

func metricsOptions(o options) metricsserver.Options {
	m := metricsserver.Options{BindAddress: o.metricsAddress, SecureServing: o.metricsSecure}
	if o.metricsSecure {
		m.FilterProvider = filters.WithAuthenticationAndAuthorization
		// HTTP/2 lets a client make a server work without end (CVE-2023-44487); nothing here needs it.
		m.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return m
}

// install puts the controller and the probes into the manager.
func install(ctx context.Context, mgr ctrl.Manager, concurrency int) error {
	kind := v1alpha1.GroupVersion.WithKind("RollSet")
	if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		return fmt.Errorf("the API server does not know %s in version %s: install the CustomResourceDefinition first (make install)", kind.GroupKind(), kind.Version)
	} else if err != nil {
		return fmt.Errorf("ask the API server for %s: %w", kind.GroupKind(), err)
	}
	if err := controller.IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	watermarks, err := controller.InformerWatermarks(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	realClock := clock.RealClock{}
	store := expectations.New(realClock)
	reconciler := &controller.Reconciler{
		Client:       mgr.GetClient(),
		Live:         mgr.GetAPIReader(),
		Watermarks:   watermarks,
		Clock:        realClock,
		Events:       mgr.GetEventRecorder("rollset-controller"),
		Runner:       podcontrol.Bounded(parallelWrites),
		Expectations: store,
		Metrics:      controller.NewMetrics(metrics.Registry, store),
	}
	if err := reconciler.SetupWithManager(mgr, concurrency); err != nil {
		return fmt.Errorf("install the controller: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", cachesSynced(mgr.GetCache()))
}

// cachesSynced fails until the caches have listed everything: before that the controller sees sets without pods.
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
