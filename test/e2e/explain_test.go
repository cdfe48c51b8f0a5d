// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

// logLines is how many lines of the manager's log, and of its requests, are printed with a failure.
const logLines = 60

// explain prints what is known about a namespace in which a spec has failed.
func (f *fixture) explain(ctx context.Context) {
	if f.record == nil {
		return
	}
	sets := read(f.record, func() []*v1beta1.RollSet {
		return sorted(f.record.sets.now, func(*v1beta1.RollSet) bool { return true })
	})
	for _, set := range sets {
		set = set.DeepCopy()
		set.ManagedFields = nil
		GinkgoWriter.Printf("--- set %s\n%s", set.Name, inYAML(set))
	}
	GinkgoWriter.Printf("--- pods\n%s", describe(f.podsWith(func(*corev1.Pod) bool { return true })))
	nodes := &corev1.NodeList{}
	if err := cluster.client.List(ctx, nodes); err != nil {
		GinkgoWriter.Printf("--- no nodes: %v\n", err)
	}
	GinkgoWriter.Println("--- nodes")
	for i := range nodes.Items {
		for _, c := range nodes.Items[i].Status.Conditions {
			if c.Type == corev1.NodeReady {
				GinkgoWriter.Printf("%s ready=%s since %s: %s\n", nodes.Items[i].Name, c.Status, c.LastTransitionTime.Format("15:04:05"), c.Message)
			}
		}
	}
	events := &eventsv1.EventList{}
	if err := cluster.client.List(ctx, events, client.InNamespace(f.namespace)); err != nil {
		GinkgoWriter.Printf("--- no events: %v\n", err)
	}
	GinkgoWriter.Println("--- events")
	for i := range events.Items {
		e := &events.Items[i]
		GinkgoWriter.Printf("%s %s %s/%s: %s\n", e.CreationTimestamp.Format("15:04:05"), e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note)
	}
	if cluster.auditLog != "" {
		GinkgoWriter.Println("--- requests of the manager")
		requests := f.audit.requests(f.inNamespace())
		for _, r := range requests[max(0, len(requests)-logLines):] {
			GinkgoWriter.Println(r)
		}
	}
	text, _ := cluster.manager.logged(f.log)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	GinkgoWriter.Printf("--- log of the manager\n%s\n", strings.Join(lines[max(0, len(lines)-logLines):], "\n"))
}

// describe lists pods, a line each.
func describe(pods []*corev1.Pod) string {
	var b strings.Builder
	for _, pod := range pods {
		state := string(pod.Status.Phase)
		if !isLive(pod) {
			state += ", terminating"
		}
		if isReady(pod) {
			state += ", ready"
		}
		fmt.Fprintf(&b, "%s  revision %s  node %q  %s\n", pod.Name, pod.Labels[v1beta1.RevisionLabel], pod.Spec.NodeName, state)
	}
	return b.String()
}

// inYAML returns an object as YAML.
func inYAML(o any) string {
	text, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kubectl runs kubectl in the spec's namespace and returns its output.
func (f *fixture) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, cluster.kubectl,
		append([]string{"--kubeconfig=" + cluster.kubeconfig, "--namespace=" + f.namespace}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s:\n%s", strings.Join(args, " "), out)
	return string(out)
}
