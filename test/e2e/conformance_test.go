// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runLabel is on each namespace that the suite makes, with a value of its own for each run.
const runLabel = "e2e.rollset.dev/run"

// conformance holds the facts of the cluster for the report.
var conformance struct {
	server, image string
	left          []string
}

// expectNothingLeft waits after all specs until what they made is gone.
func expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	if !*installedFlag {
		return
	}
	conformance.server, conformance.image = serverOf(), imageOf(ctx)
	Eventually(func() []string {
		conformance.left = leftBehind(ctx)
		return conformance.left
	}).WithContext(ctx).Should(BeEmpty(), "left behind")
}

var _ = ReportAfterSuite("conformance", func(report Report) {
	if *installedFlag {
		writeReport(os.Stdout, report)
	}
})

// leftBehind returns the namespaces of this run that still exist, and the volumes of their claims.
func leftBehind(ctx context.Context) (left []string) {
	namespaces, volumes := &corev1.NamespaceList{}, &corev1.PersistentVolumeList{}
	if err := cluster.client.List(ctx, namespaces, client.MatchingLabels{runLabel: cluster.run}); err != nil {
		return []string{err.Error()}
	}
	for i := range namespaces.Items {
		left = append(left, "namespace "+namespaces.Items[i].Name)
	}
	if err := cluster.client.List(ctx, volumes); err != nil {
		return append(left, err.Error())
	}
	for i := range volumes.Items {
		if ref := volumes.Items[i].Spec.ClaimRef; ref != nil && cluster.made.Has(ref.Namespace) {
			left = append(left, "volume "+volumes.Items[i].Name)
		}
	}
	return left
}

// serverOf returns the version of the API server.
func serverOf() string {
	info, err := discovery.NewDiscoveryClientForConfigOrDie(cluster.config).ServerVersion()
	if err != nil {
		return err.Error()
	}
	return info.GitVersion
}

// imageOf returns the images of the Deployments that have the manager's label.
func imageOf(ctx context.Context) string {
	managers := &appsv1.DeploymentList{}
	if err := cluster.client.List(ctx, managers, client.MatchingLabels{"app.kubernetes.io/name": "rollset"}); err != nil {
		return err.Error()
	}
	var images []string
	for i := range managers.Items {
		for _, container := range managers.Items[i].Spec.Template.Spec.Containers {
			images = append(images, container.Image)
		}
	}
	if len(images) == 0 {
		return "in no Deployment with the label app.kubernetes.io/name=rollset"
	}
	return strings.Join(images, ", ")
}

// writeReport writes a line for each spec that the filter selected, and what is left behind.
func writeReport(out io.Writer, report Report) {
	var lines strings.Builder
	outcomes := map[string]int{}
	for _, spec := range report.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
		outcome, why := "passed", ""
		switch {
		case spec.Failed():
			outcome = "FAILED"
		case spec.State.Is(types.SpecStateSkipped):
			if why = spec.FailureMessage(); why == "" {
				continue // by the filter
			}
			outcome = "skipped"
		}
		outcomes[outcome]++
		_, _ = fmt.Fprintf(&lines, "%s  %6.1f s  %s\n", outcome, spec.RunTime.Seconds(), spec.FullText())
		if why != "" {
			_, _ = fmt.Fprintf(&lines, "%19s%s\n", "", why)
		}
	}
	left := "nothing"
	if len(conformance.left) > 0 {
		left = strings.Join(conformance.left, ", ")
	}
	_, _ = fmt.Fprintf(out, "\nconformance of RollSet\nKubernetes   %s\nmanager      %s\n%s%d passed, %d failed, %d skipped, in %s\nleft behind  %s\n",
		conformance.server, conformance.image, lines.String(), outcomes["passed"], outcomes["FAILED"], outcomes["skipped"],
		report.RunTime.Round(time.Second), left)
}
