// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"rollset.dev/rollset/internal/testbed/manager"
)

// onLocalCluster leaves out a spec that needs what only the cluster started for the suite has: its API server can be
// killed, and keeps an audit log.
func onLocalCluster() {
	if cluster.local == nil {
		Skip("the cluster of KUBECONFIG shows no audit log, and its API server is not ours to kill")
	}
}

// audit is what the API server has noted of the manager's requests from some point on.
type audit struct{ offset int64 }

// auditFrom begins an audit now.
func auditFrom() audit {
	GinkgoHelper()
	info, err := os.Stat(cluster.local.AuditLog)
	Expect(err).NotTo(HaveOccurred())
	return audit{offset: info.Size()}
}

// request is one that the manager sent.
type request struct {
	// Verb is that of authorization, so that list and get differ; what only asks whether a write would succeed has
	// " (dry run)" after it. Resource has the subresource after a slash.
	Verb, Resource, Namespace, Name string
	Code                            int32
	At                              time.Time
}

// String makes failures readable.
func (r request) String() string {
	return fmt.Sprintf("%s %s %s %s/%s: %d", r.At.Format("15:04:05.000"), r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
}

// requests returns those requests of the manager that are wanted. Watches are left out: they are how it is told.
func (a audit) requests(wanted func(request) bool) []request {
	GinkgoHelper()
	file, err := os.Open(cluster.local.AuditLog)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	_, err = file.Seek(a.offset, io.SeekStart)
	Expect(err).NotTo(HaveOccurred())
	var list []request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"username":"`+manager.User+`"`)) {
			continue // most lines are others'; decoding them all takes long
		}
		event := &auditv1.Event{}
		Expect(json.Unmarshal(lines.Bytes(), event)).To(Succeed())
		if event.Stage != auditv1.StageResponseComplete || event.Verb == "watch" || event.ObjectRef == nil {
			continue
		}
		if r := requestOf(event); wanted(r) {
			list = append(list, r)
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	return list
}

func requestOf(e *auditv1.Event) request {
	r := request{
		Verb: e.Verb, Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		At: e.RequestReceivedTimestamp.Time,
	}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	if _, query, _ := strings.Cut(e.RequestURI, "?"); query != "" {
		if values, err := url.ParseQuery(query); err == nil && values.Get("dryRun") != "" {
			r.Verb += " (dry run)"
		}
	}
	if e.ResponseStatus != nil {
		r.Code = e.ResponseStatus.Code
	}
	return r
}

// inNamespace tells requests about the spec's namespace.
func (f *fixture) inNamespace() func(request) bool {
	return func(r request) bool { return r.Namespace == f.namespace }
}

// concerns tells requests about the spec's namespace, and those about all namespaces together.
func (f *fixture) concerns(r request) bool { return r.Namespace == f.namespace || r.Namespace == "" }

// byKind counts requests by verb and resource.
func byKind(requests []request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Verb+" "+r.Resource]++
	}
	return counts
}
