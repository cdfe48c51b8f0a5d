// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/internal/testbed"
	"rollset.dev/rollset/internal/testbed/assets"
)

// reportPipe is the file descriptor that up gives to the process that it starts, to hear of its progress.
const reportPipe = 3

// crdTimeout bounds the time until the API server serves the CRD.
const crdTimeout = 20 * time.Second

// settings are the flags of up.
type settings struct {
	nodes int
	audit bool
}

// supervise runs the cluster in the background. It reports through the pipe, and closes it when there is no more to
// report.
func supervise(st state, s settings) error {
	report := os.NewFile(reportPipe, "report")
	if report == nil {
		return errors.New(usage)
	}
	syscall.CloseOnExec(reportPipe) // the components would keep it open
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serve(ctx, st, s,
		func(line string) { _, _ = fmt.Fprintln(report, line) }, // whoever started this may have gone
		func() { _ = report.Close() })
}

// serve starts a cluster and keeps it until the context ends.
func serve(ctx context.Context, st state, s settings, progress func(string), ready func()) error {
	release, err := st.acquire()
	if err != nil {
		return err
	}
	defer release()
	begin := time.Now()
	// Stop, below, is what ends the cluster: it is waited for, and its error is reported.
	cluster, err := testbed.Start(context.WithoutCancel(ctx), testbed.Options{
		Dir: st.data(), Nodes: s.nodes, Audit: s.audit, Progress: progress,
	})
	if err != nil {
		return err
	}
	err = func() error {
		if err := installCRDs(ctx, cluster.RESTConfig(), progress); err != nil {
			return err
		}
		if err := os.WriteFile(st.readyFile(), []byte(cluster.BinDir), 0o600); err != nil {
			return fmt.Errorf("write state: %w", err)
		}
		progress(fmt.Sprintf("the cluster is up after %v, logs in %s", time.Since(begin).Round(100*time.Millisecond), filepath.Join(st.data(), "logs")))
		ready()
		<-ctx.Done()
		return nil
	}()
	return errors.Join(err, cluster.Stop(), st.clear())
}

// installCRDs applies the generated CRDs, as far as there are any, and waits until they are served.
func installCRDs(ctx context.Context, config *rest.Config, progress func(string)) error {
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return fmt.Errorf("find CRDs: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	crds := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	ctx, cancel := context.WithTimeout(ctx, crdTimeout)
	defer cancel()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read CRD: %w", err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return fmt.Errorf("decode %s: %w", file, err)
		}
		progress("installing " + crd.GetName())
		if _, err := crds.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "rollset-cluster"}); err != nil {
			return fmt.Errorf("apply CRD %s: %w", crd.GetName(), err)
		}
		if err := awaitEstablished(ctx, crds, crd.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func awaitEstablished(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	for {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get CRD %s: %w", name, err)
		}
		if isEstablished(crd) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for CRD %s: %w", name, context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
}

// isEstablished reads the conditions leniently: of a CRD just made they are null.
func isEstablished(crd *unstructured.Unstructured) bool {
	field, _, err := unstructured.NestedFieldNoCopy(crd.Object, "status", "conditions")
	if err != nil {
		return false
	}
	conditions, _ := field.([]any)
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && c["type"] == "Established" && c["status"] == "True"
	})
}
