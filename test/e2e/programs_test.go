// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/test/metricsdoc"
)

var _ = Describe("Other programs", func() {
	f := newFixture()

	It("include kubectl: apply, wait, get, scale, explain", core, func(ctx SpecContext) {
		root := inCheckout()
		f.kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "samples"))
		timeout := fmt.Sprintf("--timeout=%ds", int(patience.Long().Seconds()))
		f.kubectl(ctx, "wait", "--for=condition=Ready", timeout, "rls", "--all")

		f.kubectl(ctx, "scale", "rollset/web", "--replicas=7")
		f.kubectl(ctx, "wait", "--for=jsonpath={.status.availableReplicas}=7", timeout, "rls/web")
		f.kubectl(ctx, "patch", "rls/shop", "--type=merge", "--patch",
			`{"spec": {"minReadySeconds": 0, "template": {"metadata": {"annotations": {"release": "2"}}}}}`)
		f.kubectl(ctx, "wait", `--for=jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=PartitionReached`, timeout, "rls/shop")
		f.kubectl(ctx, "wait", "--for=condition=Ready", timeout, "rls/shop")

		Expect(columns(f.kubectl(ctx, "get", "rls/shop"))).To(And(
			HaveKeyWithValue("DESIRED", "10"), HaveKeyWithValue("UPDATED", "1"), HaveKeyWithValue("READY", "10"),
			HaveKeyWithValue("AVAILABLE", "10"), HaveKeyWithValue("TOTAL", "10"),
		))
		Expect(columns(f.kubectl(ctx, "get", "rls/web", "-o", "wide"))).To(And(
			HaveKeyWithValue("DESIRED", "7"), HaveKeyWithValue("AVAILABLE", "7"), HaveKeyWithValue("REVISION", HavePrefix("web-")),
			HaveKeyWithValue("SELECTOR", "app.kubernetes.io/name=web"), HaveKeyWithValue("IMAGES", ContainSubstring("nginx")),
		))
		Expect(f.kubectl(ctx, "explain", "rollset.spec.updateStrategy.rollingUpdate.partition")).To(ContainSubstring("DESCRIPTION:"))
		f.kubectl(ctx, "delete", "-k", filepath.Join(root, "config", "samples"), "--cascade=foreground", "--wait", timeout)
		Expect(f.podsWith(isLive)).To(BeEmpty())
	})

	It("include disruption budgets, which find out how many pods are expected, and are respected", core, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 4, gated()))
		pods := f.awaitPods(ctx, set, "four pods", func(pods []*corev1.Pod) bool { return len(pods) == 4 })
		for _, pod := range pods {
			f.setGate(ctx, pod, corev1.ConditionTrue)
		}
		set = f.awaitReady(ctx, set)
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("75%")), Selector: set.Spec.Selector},
		}
		f.createObject(ctx, budget)
		allowed := func() policyv1.PodDisruptionBudgetStatus {
			now := &policyv1.PodDisruptionBudget{}
			Expect(cluster.client.Get(ctx, client.ObjectKeyFromObject(budget), now)).To(Succeed())
			if now.Status.ExpectedPods == 0 {
				// For half a minute after its installation the disruption controller does not know a kind, and tries only
				// once.
				touched := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"seen":%q}}}`, now.ResourceVersion))
				Expect(cluster.client.Patch(ctx, now, touched)).To(Succeed())
			}
			return now.Status
		}
		Eventually(allowed).WithContext(ctx).Should(And(
			HaveField("ExpectedPods", int32(4)), HaveField("DesiredHealthy", int32(3)), HaveField("DisruptionsAllowed", int32(1)),
		), "a percentage needs the scale subresource")

		evict := func(pod *corev1.Pod) error {
			return cluster.client.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{})
		}
		Expect(evict(pods[0])).To(Succeed())
		Expect(apierrors.IsTooManyRequests(evict(pods[1]))).To(BeTrue(), "a second eviction while the first pod is not replaced")

		By("making the replacement ready")
		now := f.awaitPods(ctx, set, "four pods again", func(now []*corev1.Pod) bool {
			return len(now) == 4 && count(now, func(pod *corev1.Pod) bool { return pod.UID == pods[0].UID }) == 0
		})
		for _, pod := range now {
			if !isReady(pod) {
				f.setGate(ctx, pod, corev1.ConditionTrue)
			}
		}
		Eventually(allowed).WithContext(ctx).Should(HaveField("DisruptionsAllowed", int32(1)))
		Expect(evict(pods[1])).To(Succeed())
	})

	It("may read /metrics and the probes of the manager", func(ctx SpecContext) {
		f.awaitReady(ctx, f.create(ctx, newSet("web", 2)))
		text := scrape(ctx, cluster.manager.process.Metrics)
		Expect(text).To(ContainSubstring("\n" + `rollset_pods_created_total{result="success"}`))
		root, err := assets.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		documented, err := metricsdoc.Read(root)
		Expect(err).NotTo(HaveOccurred())
		for name, metric := range documented {
			switch {
			case strings.HasPrefix(name, "rollset_"): // each is checked where it is registered
			case strings.HasPrefix(name, "kube_"), name == "leader_election_master_status": // not served by this manager
			default:
				Expect(text).To(ContainSubstring("\n# TYPE " + name + " " + metric.Type + "\n"))
				for _, label := range metric.Labels {
					Expect(text).To(MatchRegexp(`\n` + name + `(_bucket)?\{[^\n]*\b` + label + `="`))
				}
			}
		}
	})
})

// columns takes apart what kubectl get prints for one object.
func columns(text string) map[string]string {
	GinkgoHelper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	Expect(lines).To(HaveLen(2), text)
	heads, values := apart(lines[0]), apart(lines[1])
	Expect(values).To(HaveLen(len(heads)), text)
	table := map[string]string{}
	for i := range heads {
		table[heads[i]] = values[i]
	}
	return table
}

// apart splits a line of a table into its cells, which are separated by two blanks or more.
func apart(line string) []string {
	return regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
}

// scrape reads a page of the manager.
func scrape(ctx context.Context, url string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), string(text))
	return string(text)
}
