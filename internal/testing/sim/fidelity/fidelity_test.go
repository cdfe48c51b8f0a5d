// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// server is a real API server. No controller runs beside it, so that only the script changes anything.
var server client.Client

func TestMain(m *testing.M) { os.Exit(withServer(m)) }

func withServer(m *testing.M) int {
	stop, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func start() (stop func() error, err error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return nil, err
	}
	binaries, err := assets.Find()
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		ControlPlaneStartTimeout: patience.Long(), ControlPlaneStopTimeout: patience.Long(),
		BinaryAssetsDirectory: binaries,
		CRDDirectoryPaths:     []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: patience.Long()},
	}
	config, err := environment.Start()
	if err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	config.QPS = -1
	server, err = client.New(config, client.Options{Scheme: scheme()})
	return environment.Stop, err
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// epoch returns the time of the store, which stands still.
func epoch() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// TestSameAsTheRealOne plays scripts on the store and on the API server. After each operation the result and all objects
// have to be the same, but for what differs from one run to the next: UIDs, versions and times.
func TestSameAsTheRealOne(t *testing.T) {
	script := 0
	rapid.Check(t, func(t *rapid.T) {
		script++
		prefix := fmt.Sprintf("s%d-", script)
		store := apiserver.NewStore(epoch)
		simulated := &side{Client: apiserver.NewClient(apiserver.NewView(store), "user", scheme()), reader: storeReader{store}, stale: map[string]string{}}
		simulated.bind = func(pod client.Object, node string) error { return bindInStore(store, pod, node) }
		served := &side{Client: server, reader: server, stale: map[string]string{}}
		served.bind = func(pod client.Object, node string) error { return bindAtServer(t.Context(), server, pod, node) }
		var played string
		for _, op := range rapid.SliceOfN(operations(), 1, 40).Draw(t, "script") {
			op.name = prefix + op.name
			played += fmt.Sprintf("%+v\n", op)
			want, got := served.do(t.Context(), op), simulated.do(t.Context(), op)
			if apierrors.ReasonForError(want) != apierrors.ReasonForError(got) || (want == nil) != (got == nil) {
				t.Fatalf("%s\nthe API server says:\n%s: %v\nthe store says:\n%s: %v", played, apierrors.ReasonForError(want), want, apierrors.ReasonForError(got), got)
			}
			if diff := cmp.Diff(served.read(t.Context(), op), simulated.read(t.Context(), op)); diff != "" {
				t.Fatalf("%s\nanswer of the API server: %v\nobject at the API server (-), in the store (+):\n%s", played, want, diff)
			}
		}
	})
}

// TestUnmodeledPanics asks the store for what it does not know.
func TestUnmodeledPanics(t *testing.T) {
	pod := newObject(pods, "a")
	for name, ask := range map[string]func(*apiserver.Client){
		"apply":                func(c *apiserver.Client) { _ = c.Apply(t.Context(), nil) },
		"delete a collection":  func(c *apiserver.Client) { _ = c.DeleteAllOf(t.Context(), pod) },
		"the REST mapper":      func(c *apiserver.Client) { c.RESTMapper() },
		"read a subresource":   func(c *apiserver.Client) { _ = c.SubResource("scale").Get(t.Context(), pod, pod) },
		"create a subresource": func(c *apiserver.Client) { _ = c.SubResource("eviction").Create(t.Context(), pod, pod) },
		"update a scale":       func(c *apiserver.Client) { _ = c.SubResource("scale").Update(t.Context(), pod) },
		"generateName": func(c *apiserver.Client) {
			pod := newObject(pods, "")
			pod.SetGenerateName("a-")
			_ = c.Create(t.Context(), pod)
		},
		"an apply patch": func(c *apiserver.Client) {
			_ = c.Patch(t.Context(), pod, client.RawPatch("application/apply-patch+yaml", []byte("{}")))
		},
		"another kind of object": func(c *apiserver.Client) { _ = c.Create(t.Context(), configMap()) },
		"a resize of a claim":    func(c *apiserver.Client) { _ = c.SubResource("resize").Update(t.Context(), newObject(claims, "a")) },
	} {
		t.Run(name, func(t *testing.T) {
			store := apiserver.NewStore(epoch)
			for _, obj := range []client.Object{pod, newObject(claims, "a")} {
				if _, err := store.Create(apiserver.Write{}, obj); err != nil {
					t.Fatal(err)
				}
			}
			defer func() {
				if recover() == nil {
					t.Error("the store guesses")
				}
			}()
			ask(apiserver.NewClient(apiserver.NewView(store), "user", scheme()))
		})
	}
}
