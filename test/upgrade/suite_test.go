// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package upgrade tests that the manager of each earlier release hands its sets over to this one, and takes them back: on a
// local cluster, with both programs, while sets of every shape are in the middle of a change or are being rolled out.
//
// The source of each release is in testdata, packed by `make keep-release`, because a clone may have no history, and a test
// must not depend on where it runs.
package upgrade

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// bench is a cluster with the sets of one test.
type bench struct {
	client.Client
	cluster    *testbed.Cluster
	namespace  string
	kubeconfig string
}

// newBench starts a cluster without a manager.
func newBench(t *testing.T) *bench {
	t.Helper()
	log.SetLogger(logr.Discard())
	model := kubelet.Recorded()
	model.ReadyDelay, model.RemoveDelay = 300*time.Millisecond, 100*time.Millisecond
	cluster, err := testbed.Start(t.Context(), testbed.Options{Model: &model})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{cluster: cluster, namespace: "upgrade"}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if b.Client, err = client.New(cluster.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if b.kubeconfig, err = cluster.KubeconfigFor(manager.User); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}); err != nil {
		t.Fatal(err)
	}
	b.eventually(t, "the default service account", func() error {
		return b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	return b
}

// eventually waits until holds returns no error.
func (b *bench) eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience.Long()); ; time.Sleep(100 * time.Millisecond) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %v", what, err)
		}
	}
}

// version is a version of the manager, with its source and its program.
type version struct {
	name, root, binary string
}

// tip returns the version of the working tree.
func tip(t *testing.T) version {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return built(t, version{name: "tip", root: root})
}

// release returns the version whose source is kept in a file.
func release(t *testing.T, file string) version {
	t.Helper()
	v := version{name: strings.TrimSuffix(filepath.Base(file), ".tar.gz"), root: t.TempDir()}
	if err := unpack(file, v.root); err != nil {
		t.Fatalf("unpack %s: %v", file, err)
	}
	return built(t, v)
}

func built(t *testing.T, v version) version {
	t.Helper()
	var err error
	if v.binary, err = manager.BuildFrom(t.Context(), v.root, t.TempDir()); err != nil {
		t.Fatalf("%s: %v", v.name, err)
	}
	return v
}

func unpack(file, dir string) error {
	packed, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close() }()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case header.Typeflag != tar.TypeReg:
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := errors.Join(root.MkdirAll(filepath.Dir(header.Name), 0o755), root.WriteFile(header.Name, text, 0o600)); err != nil {
			return err
		}
	}
}

// take installs a version and starts its manager, in the order of an upgrade: CRD, roles, program.
func (b *bench) take(t *testing.T, v version) *manager.Process {
	t.Helper()
	if err := manager.InstallFrom(t.Context(), b.cluster.RESTConfig(), v.root); err != nil {
		t.Fatal(err)
	}
	p, err := manager.Start(context.WithoutCancel(t.Context()), manager.Options{
		Binary: v.binary, Kubeconfig: b.kubeconfig, Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", v.name, err))
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}
