// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// environment is a cluster with the manager in it.
type environment struct {
	// config, client and kubeconfig have all rights.
	config     *rest.Config
	client     client.WithWatch
	kubeconfig string
	// local is the cluster that was started for the suite; nil if it existed before.
	local *testbed.Cluster
	// auditLog is the path of the API server's audit log; empty if there is none.
	auditLog string
	// kubectl is the path of kubectl.
	kubectl string
	// managerKubeconfig is for the manager's own user, and binary its program.
	managerKubeconfig, binary string
	// manager is the manager that acts unless a spec uses another.
	manager *operator
	// run is in a label of each namespace that the suite makes, and made are their names.
	run  string
	made sets.Set[string]
	// dir is a folder that is deleted with the suite.
	dir string
}

// join starts a cluster, or joins that of KUBECONFIG, and runs the manager in it until ctx ends.
func join(ctx context.Context, dir string) (*environment, error) {
	e := &environment{dir: dir, run: strings.ToLower(rand.Text()[:8]), made: sets.New[string]()}
	prepare := e.startLocal
	if path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); path != "" {
		prepare = e.joinForeign
	} else if *installedFlag {
		return nil, errors.New("-installed needs the cluster of KUBECONFIG")
	}
	if err := prepare(ctx); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	if err := e.install(ctx); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

// startLocal starts a cluster whose API server keeps an audit log. Its kubelets go through all states of real ones, in less
// time.
func (e *environment) startLocal(ctx context.Context) (err error) {
	model := kubelet.Recorded()
	model.ReadyDelay = 200 * time.Millisecond
	model.RemoveDelay = 100 * time.Millisecond
	if e.local, err = testbed.Start(ctx, testbed.Options{Audit: true, AuditWrites: manager.User, Model: &model}); err != nil {
		return err
	}
	e.config, e.kubeconfig = e.local.RESTConfig(), e.local.Kubeconfig
	e.kubectl, e.auditLog = filepath.Join(e.local.BinDir, "kubectl"), e.local.AuditLog
	return nil
}

// joinForeign uses the cluster of KUBECONFIG.
func (e *environment) joinForeign(context.Context) (err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	raw, err := rules.Load()
	if err != nil {
		return fmt.Errorf("load KUBECONFIG: %w", err)
	}
	if e.config, err = clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig(); err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	e.config.QPS, e.auditLog = -1, *auditLogFlag
	if e.kubectl, err = exec.LookPath("kubectl"); err != nil {
		return err
	}
	e.kubeconfig = filepath.Join(e.dir, "admin.kubeconfig")
	if err := clientcmd.WriteToFile(*raw, e.kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// kubeconfigFor writes a kubeconfig for a user with the rights that RBAC gives, and returns its path.
func (e *environment) kubeconfigFor(user string) (string, error) {
	if e.local != nil {
		return e.local.KubeconfigFor(user)
	}
	raw, err := clientcmd.LoadFromFile(e.kubeconfig)
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	path := filepath.Join(e.dir, user+".kubeconfig")
	if err := clientcmd.WriteToFile(impersonating(raw, user), path); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return path, nil
}

// impersonating returns a kubeconfig whose users all act as another one.
func impersonating(config *clientcmdapi.Config, user string) clientcmdapi.Config {
	changed := *config.DeepCopy()
	for as := range maps.Values(changed.AuthInfos) {
		as.Impersonate = user
	}
	return changed
}

// install installs the CRD and the role, builds the manager and starts it.
func (e *environment) install(ctx context.Context) (err error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return err
	}
	if !*installedFlag {
		if err := manager.Install(ctx, e.config); err != nil {
			return err
		}
	}
	if e.client, err = client.NewWithWatch(e.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if *installedFlag {
		e.manager = &operator{environment: e, name: "manager", installed: true}
		return manager.AwaitServed(ctx, e.client, "rollsets.apps.rollset.dev")
	}
	if e.managerKubeconfig, err = e.kubeconfigFor(manager.User); err != nil {
		return err
	}
	if e.binary, err = manager.Build(ctx, e.dir); err != nil {
		return err
	}
	e.manager = e.newOperator(ctx, "manager")
	return e.manager.start()
}

// stop ends what join started.
func (e *environment) stop() error {
	var err error
	if e.manager != nil && !e.manager.installed {
		err = e.manager.stop()
	}
	if e.local != nil {
		err = errors.Join(err, e.local.Stop())
	}
	return err
}

// image returns an image that becomes ready at once, and nextImage another one.
func (e *environment) image() string     { return *imageFlag }
func (e *environment) nextImage() string { return *nextImageFlag }

// unavailableImage returns an image that cannot be pulled, on simulated and on real nodes.
func (e *environment) unavailableImage() string { return "registry.k8s.io/rollset-e2e:missing" }
