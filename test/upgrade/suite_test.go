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
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli"
	"rollset.dev/rollset/internal/cli/session"
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
	// newest is true once the cluster has the CRD of the tip.
	newest bool
}

// asBefore is the version of the API that all releases serve. The tests read and write it, so that sets are stored as it first.
func asBefore() schema.GroupVersion {
	return schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: "v1alpha1"}
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
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypes(asBefore(), &v1beta1.RollSet{}, &v1beta1.RollSetList{})
	metav1.AddToGroupVersion(scheme, asBefore())
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

const tipName = "tip"

// tip returns the version of the working tree.
func tip(t *testing.T) version {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return built(t, version{name: tipName, root: root})
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

// take installs a version and starts its manager, in the order of an upgrade: CRD, roles, program. The CRD of the tip stays when an
// earlier release takes the sets back.
func (b *bench) take(t *testing.T, v version) *manager.Process {
	t.Helper()
	install := manager.InstallFrom
	if b.newest {
		install = manager.InstallRoles
	}
	if err := install(t.Context(), b.cluster.RESTConfig(), v.root); err != nil {
		t.Fatal(err)
	}
	if v.name == tipName && !b.newest {
		b.newest = true
		b.migrate(t)
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

// migrate stores all sets in the newest version of the API. No manager runs meanwhile, so that every write is the migration's.
func (b *bench) migrate(t *testing.T) {
	t.Helper()
	versions := func() map[string]string {
		sets := &v1beta1.RollSetList{}
		if err := b.List(t.Context(), sets, client.InNamespace(b.namespace)); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for i := range sets.Items {
			all[sets.Items[i].Name] = fmt.Sprint(sets.Items[i].ResourceVersion, " of generation ", sets.Items[i].Generation)
		}
		return all
	}
	before := versions()
	says := []string{"all RollSets are stored as v1beta1\n"}
	older := slices.Contains(b.storedVersions(t), "v1alpha1")
	if older {
		says = slices.Insert(says, 0, fmt.Sprintf("%d RollSets are stored as v1beta1; before: [v1alpha1 v1beta1]\n", len(before)))
	}
	for _, want := range says {
		out := &bytes.Buffer{}
		s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}, clock.RealClock{})
		if code := cli.Run(t.Context(), s, []string{"kubectl-rollset", "--kubeconfig=" + b.kubeconfigOfAdmin(t), "migrate-storage"}); code != 0 || out.String() != want {
			t.Fatalf("migrate-storage ended with %d: %s", code, out)
		}
	}
	after := versions()
	for name, was := range before {
		_, generation, _ := strings.Cut(was, " ")
		if older == (after[name] == was) || !strings.HasSuffix(after[name], " "+generation) {
			t.Errorf("set %s was at %s, and is at %s: it is to be stored anew only if it was v1alpha1, and never changed", name, was, after[name])
		}
	}
}

// storedVersions returns the versions in which the CRD says that sets may be stored.
func (b *bench) storedVersions(t *testing.T) []string {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := b.Get(t.Context(), client.ObjectKey{Name: "rollsets." + v1beta1.GroupVersion.Group}, crd); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func (b *bench) kubeconfigOfAdmin(t *testing.T) string {
	t.Helper()
	file, err := b.cluster.KubeconfigFor("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return file
}
