// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rollset.dev/rollset/internal/testing/testbed/assets"
	auditlog "rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// onLocalCluster skips a spec that needs the cluster that the suite starts: an API server that can be killed, storage, and
// simulated nodes.
func onLocalCluster() {
	if cluster.local == nil {
		Skip("the cluster of KUBECONFIG is not ours to do that to")
	}
}

// onOwnManager skips a spec that starts or stops managers, if the manager is that of the cluster.
func onOwnManager() {
	if *installedFlag {
		Skip("the manager of the cluster is not ours to stop")
	}
}

// inCheckout skips a spec that needs the project's files, and returns the folder that has them.
func inCheckout() (root string) {
	root, err := assets.ModuleRoot()
	if err != nil {
		Skip("the project's files are not here")
	}
	return root
}

// withAudit skips a spec that counts requests if there is no audit log.
func withAudit() {
	if cluster.auditLog == "" {
		Skip("the cluster of KUBECONFIG shows no audit log")
	}
}

// request is a request of the manager.
type request = auditlog.Request

// audit reads the API server's log of the manager's requests from some point on.
type audit struct{ log auditlog.Log }

// auditFrom starts an audit now.
func auditFrom() audit {
	GinkgoHelper()
	log, err := auditlog.From(cluster.auditLog)
	Expect(err).NotTo(HaveOccurred())
	return audit{log}
}

// requests returns the manager's requests that match. Watches are left out.
func (a audit) requests(wanted func(request) bool) []request {
	GinkgoHelper()
	all, err := a.log.Requests(manager.User)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(all, func(r request) bool { return !wanted(r) })
}

// inNamespace matches requests about the spec's namespace.
func (f *fixture) inNamespace() func(request) bool {
	return func(r request) bool { return r.Namespace == f.namespace }
}

// concerns matches requests about the spec's namespace, and those about all namespaces together.
func (f *fixture) concerns(r request) bool { return r.Namespace == f.namespace || r.Namespace == "" }

// byKind counts requests by verb and resource.
func byKind(requests []request) map[string]int { return auditlog.Count(requests) }
