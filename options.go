// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// options holds the values of the command line and the environment. docs/install.md lists them all. Each flag has a field.
type options struct {
	metricsAddress  string
	metricsSecure   bool
	metricsCertPath string
	metricsCertName string
	metricsCertKey  string
	probeAddress    string
	pprofAddress    string
	leaderElect     bool
	leaderNamespace string
	namespaces      []string
	concurrency     int
	memoryLimit     int64
	version         bool
	logging         zap.Options
	// fromEnvironment lists the variables that set flags, and ignored the variables with our prefix that no flag has.
	fromEnvironment, ignored []string
}

// flags returns the flags of the manager. Parsing them fills the options.
func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are returned
	f.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "The `address` that serves metrics, such as :8443. 0 serves none.")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true, "Serve metrics over HTTPS, to clients that have the right to get the path /metrics.")
	f.StringVar(&o.metricsCertPath, "metrics-cert-path", "", "The `folder` of the certificate for metrics. The manager reads it again when it changes. Default: a certificate that the manager signs itself.")
	f.StringVar(&o.metricsCertName, "metrics-cert-name", "tls.crt", "The `file` of the certificate in --metrics-cert-path.")
	f.StringVar(&o.metricsCertKey, "metrics-cert-key", "tls.key", "The `file` of the certificate's key in --metrics-cert-path.")
	f.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "The `address` that serves /healthz and /readyz. 0 serves none.")
	f.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "The `address` on loopback, such as 127.0.0.1:6060, that serves profiles without authentication. 0 serves none.")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "Let one manager of several act at a time.")
	f.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "The `namespace` of the lease. Default: kube-system if all namespaces are watched, the watched namespace if there is one, or the manager's own if there are several.")
	f.Func("namespaces", "The `namespaces` to watch, separated by commas. Default: all.", o.setNamespaces)
	f.IntVar(&o.concurrency, "max-concurrent-reconciles", 10, "The maximum `number` of concurrent reconciles for one namespace. All namespaces together have up to twice as many.")
	f.Int64Var(&o.memoryLimit, "memory-limit", 0, "The container's memory limit, in `bytes`. Above nine tenths of it, garbage is collected more often. 0 means no limit. The variable GOMEMLIMIT overrides it.")
	f.BoolVar(&o.version, versionFlag, false, "Print the version and exit.")
	clientconfig.RegisterFlags(f)
	o.logging.BindFlags(f)
	// The flags of libraries get help texts in the style of the others.
	for name, usage := range map[string]string{
		"kubeconfig":           "The kubeconfig `file` for a manager outside of a cluster.",
		"zap-devel":            "Log for developers: on the console, at level debug, with a panic at programming errors.",
		"zap-encoder":          "The `format` of the log: json or console. Default: json.",
		"zap-log-level":        "The `level` of the log: error, info, debug, or a number: 1 adds plans and holds, 2 adds counts. Default: info.",
		"zap-stacktrace-level": "The lowest `level` that is logged with a stack trace: info, error or panic. Default: error.",
		"zap-time-encoding":    "The `format` of times: rfc3339, rfc3339nano, iso8601, epoch, millis or nanos. Default: rfc3339.",
	} {
		f.Lookup(name).Usage = usage
	}
	return f
}

const (
	// versionFlag is the only flag without a variable: it starts no manager.
	versionFlag = "version"
	// prefix begins the names of the variables that set flags.
	prefix = "ROLLSET_"
)

// variable returns the environment variable that sets a flag. Users of the Operator Lifecycle Manager can set variables, but no
// arguments.
func variable(flagName string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// readEnvironment sets the flags that the command line does not set. An empty variable counts as none.
func (o *options) readEnvironment(flags *flag.FlagSet, environment []string) error {
	given := map[string]bool{variable(versionFlag): true}
	flags.Visit(func(f *flag.Flag) { given[variable(f.Name)] = true })
	names := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) { names[variable(f.Name)] = f.Name })
	for _, setting := range environment {
		name, value, _ := strings.Cut(setting, "=")
		flagName, known := names[name]
		switch {
		case !strings.HasPrefix(name, prefix), value == "", given[name]:
			continue
		case !known:
			o.ignored = append(o.ignored, name)
			continue
		}
		if err := flags.Set(flagName, value); err != nil {
			return fmt.Errorf("invalid value %q of the variable %s for --%s: %w", value, name, flagName, err)
		}
		o.fromEnvironment = append(o.fromEnvironment, name)
	}
	return nil
}

// limitMemory sets a soft limit below the container's limit, so that garbage is collected more often before the kernel would end the
// manager.
func (o *options) limitMemory() {
	if o.memoryLimit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(o.memoryLimit / 10 * 9)
	}
}

// parse reads the command line and the environment. Help goes to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := o.flags()
	flags.Usage = func() {}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w; --help lists all flags", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are only flags; --help lists them", flags.Arg(0))
	}
	if err := o.readEnvironment(flags, os.Environ()); err != nil {
		return o, err
	}
	return o, o.validate()
}

func (o *options) validate() error {
	if o.concurrency < 1 {
		return fmt.Errorf("--max-concurrent-reconciles: %d is less than 1", o.concurrency)
	}
	if o.memoryLimit < 0 {
		return fmt.Errorf("--memory-limit: %d is less than 0", o.memoryLimit)
	}
	if o.leaderNamespace != "" {
		if err := namespaceName(o.leaderNamespace); err != nil {
			return fmt.Errorf("--leader-election-namespace: %w", err)
		}
	}
	for name, address := range map[string]string{
		"metrics-bind-address": o.metricsAddress, "health-probe-bind-address": o.probeAddress, "pprof-bind-address": o.pprofAddress,
	} {
		if _, _, err := net.SplitHostPort(address); err != nil && address != "0" {
			return fmt.Errorf("--%s: %q is no address such as :8443, nor 0: %w", name, address, err)
		}
	}
	if host, _, err := net.SplitHostPort(o.pprofAddress); err == nil && !isLoopback(host) {
		return fmt.Errorf("--pprof-bind-address: %s is not on loopback, and profiles are served without authentication", o.pprofAddress)
	}
	return nil
}

// setNamespaces understands an empty list as all.
func (o *options) setNamespaces(list string) error {
	o.namespaces = nil
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if err := namespaceName(name); err != nil {
			return err
		}
		if !slices.Contains(o.namespaces, name) {
			o.namespaces = append(o.namespaces, name)
		}
	}
	return nil
}

func namespaceName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q is no name of a namespace: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// ownNamespaceFile is where a pod finds the name of its namespace.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// leaseNamespace returns the namespace of the lease. Managers that watch the same namespace, or all namespaces, compete for one lease,
// wherever they are installed.
func (o *options) leaseNamespace() (string, error) {
	switch {
	case !o.leaderElect:
		return "", nil
	case o.leaderNamespace != "":
		return o.leaderNamespace, nil
	case len(o.namespaces) == 0:
		return metav1.NamespaceSystem, nil
	case len(o.namespaces) == 1:
		return o.namespaces[0], nil
	}
	own, err := os.ReadFile(ownNamespaceFile)
	if err != nil {
		return "", fmt.Errorf("find the namespace of the lease (outside a pod, use --leader-election-namespace): %w", err)
	}
	return strings.TrimSpace(string(own)), nil
}
