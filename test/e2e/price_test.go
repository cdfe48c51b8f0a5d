// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
)

// many returns how many pods a spec has that counts requests: fewer in the short form.
func many() int {
	if testing.Short() {
		return 60
	}
	return 1000
}

// The numbers are the API server's own: its metrics count the pods that any client created, and its audit log the requests
// of the manager's user.
var _ = Describe("The price of a pod", func() {
	f := newFixture()

	It("is one write to create it, two to replace it, one to take it away, and no read", func(ctx SpecContext) {
		withAudit()
		replicas := many()
		measure := func(what string, by func()) spending {
			GinkgoHelper()
			f.quiet(ctx, still) // so that the status for the steps before has been written
			log, posts, begin := auditFrom(), podsCreated(ctx), time.Now()
			by()
			s := spending{counts: byKind(log.requests(f.concerns)), posts: podsCreated(ctx) - posts, took: time.Since(begin)}
			AddReportEntry(what, s.String())
			s.expectNoRead()
			s.expectFewStatusWrites()
			return s
		}

		set := newSet("web", int32(replicas), maxUnavailable("20%"))
		s := measure(fmt.Sprintf("create %d pods", replicas), func() { set = f.awaitReady(ctx, f.create(ctx, set)) })
		Expect(s.counts).To(And(
			HaveKeyWithValue("create pods", replicas), HaveKeyWithValue("create controllerrevisions", 1),
			Not(HaveKey("delete pods")), Not(HaveKey("patch pods")),
		))
		Expect(s.posts).To(Equal(replicas), "pods created by any client")

		from := f.mark()
		s = measure(fmt.Sprintf("update %d pods", replicas), func() { set = f.awaitReady(ctx, f.change(ctx, set, release("2"))) })
		Expect(isUpdated(set)).To(Succeed())
		Expect(s.counts).To(And(
			HaveKeyWithValue("create pods", replicas), HaveKeyWithValue("delete pods", replicas),
			HaveKeyWithValue("create (dry run) pods", 1), HaveKeyWithValue("create controllerrevisions", 1),
			Not(HaveKey("patch pods")),
		))
		f.expectLiveAtMost(set, from, replicas)
		f.expectAvailableAtLeast(set, from, replicas-replicas/5)

		s = measure(fmt.Sprintf("delete %d pods", replicas/2), func() {
			set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(int32(replicas/2))))
			f.awaitPods(ctx, set, "half of the pods", func(pods []*corev1.Pod) bool { return len(pods) == replicas/2 })
		})
		Expect(s.counts).To(And(HaveKeyWithValue("delete pods", replicas/2), Not(HaveKey("create pods")), Not(HaveKey("patch pods"))))
		Expect(s.posts).To(BeZero(), "pods created by any client")
	})
})

// spending is the cost of an operation.
type spending struct {
	// counts are the manager's requests, posts the pods created by any client.
	counts map[string]int
	posts  int
	took   time.Duration
}

// String lists the requests.
func (s spending) String() string {
	words := []string{fmt.Sprintf("in %.1f s", s.took.Seconds())}
	for _, kind := range slices.Sorted(maps.Keys(s.counts)) {
		words = append(words, fmt.Sprintf("%d %s", s.counts[kind], kind))
	}
	return strings.Join(words, ", ")
}

func (s spending) expectNoRead() {
	GinkgoHelper()
	reads := regexp.MustCompile(`^(get|list) `)
	for kind, n := range s.counts {
		Expect(reads.MatchString(kind)).To(BeFalse(), "%d requests: %s", n, kind)
	}
}

// expectFewStatusWrites allows a write a second, and the writes that are not delayed: for a new generation, and for
// conditions that change, a few for each thing that a spec does.
func (s spending) expectFewStatusWrites() {
	GinkgoHelper()
	const urgent = 8
	Expect(s.counts["patch rollsets/status"]).To(BeNumerically("<=", int(s.took.Seconds())+1+urgent), "status writes in %v", s.took)
}

// podsCreated returns how many pods the API server has created since it started, from its metrics. Dry runs are not counted.
func podsCreated(ctx context.Context) (n int) {
	GinkgoHelper()
	client, err := discovery.NewDiscoveryClientForConfig(cluster.config)
	Expect(err).NotTo(HaveOccurred())
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	created := regexp.MustCompile(`^apiserver_request_total\{code="201",.*dry_run="",group="",resource="pods",.*subresource="",verb="POST",.*\} ([0-9.e+]+)$`)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := created.FindSubmatch(lines.Bytes()); m != nil {
			count, err := strconv.ParseFloat(string(m[1]), 64)
			Expect(err).NotTo(HaveOccurred())
			n += int(count)
		}
	}
	return n
}
