// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/manager"
	"rollset.dev/rollset/internal/testing/testbed/usage"
)

// flat is the allowed increase of a manager's memory where there should be none. The collector lets the heap of a manager
// that works grow to 80 MiB, however little is in use (package footprint), and a manager that has just begun is far below.
const flat = 128 << 20 // bytes

// Every spec lets a set in another namespace become ready meanwhile.
var _ = Describe("Overload", func() {
	f := newFixture()

	It("is not brought about by as many replicas as there can be", func(ctx SpecContext) {
		onLocalCluster()
		const room = 20
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "few"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(strconv.Itoa(room))}},
		}
		f.createObject(ctx, quota)
		f.quotaInForce(ctx, quota)
		pid, before := cluster.manager.process.PID(), peakMemory(cluster.manager.process)

		set := f.create(ctx, newSet("web", math.MaxInt32))
		f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "FailedCreate")
		// The API server may let a few more pass, because the controller of quotas counts anew in the middle of a batch.
		f.awaitPods(ctx, set, "all pods that there is room for", func(pods []*corev1.Pod) bool {
			return len(pods) >= room && count(pods, isAvailable) == len(pods)
		})
		f.neighborIsServed(ctx)
		f.quiet(ctx, still)

		refused := f.audit.requests(func(r request) bool {
			return r.Namespace == f.namespace && r.Verb == "create" && r.Resource == "pods" && r.Code == http.StatusForbidden
		})
		// The batch that meets the quota has at most 16 pods. What follows is tried one by one, each time after a longer
		// wait.
		Expect(len(refused)).To(BeNumerically("<", 16+32), "creates that were refused")
		Expect(cluster.manager.process.PID()).To(Equal(pid), "the manager still runs")
		Expect(peakMemory(cluster.manager.process)).To(BeNumerically("<", before+flat), "bytes of memory")
	})

	It("is not brought about by a pod that changes hundreds of times", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3)))
		pod := f.pods(set)[0]
		f.quiet(ctx, still)
		before, log := peakMemory(cluster.manager.process), auditFrom()

		for i := range 300 {
			Expect(relabel(ctx, pod, "spin", strconv.Itoa(i))).To(Succeed())
		}
		f.neighborIsServed(ctx)
		Expect(log.requests(f.inNamespace())).To(BeEmpty(), "labels of a pod that no selector uses")
		Expect(peakMemory(cluster.manager.process)).To(BeNumerically("<", before+flat), "bytes of memory")
	})

	It("is not brought about by a pod that is released and adopted again and again", func(ctx SpecContext) {
		onLocalCluster()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3)))
		pod, from, log := f.pods(set)[0], f.mark(), auditFrom()
		turns := 0
		for turns < 100 && relabel(ctx, pod, "app", []string{"none", "web"}[turns%2]) == nil {
			turns++
		}
		f.neighborIsServed(ctx)
		set = f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, from, 4) // the pod that comes back is surplus until it is seen
		// Each turn costs a release and a new pod, or an adoption and a deletion, and their events.
		Expect(len(log.requests(f.inNamespace()))).To(BeNumerically("<=", 5*turns+20), "requests for %d turns", turns)
	})

	It("is not made worse when the API server asks for patience", func(ctx SpecContext) {
		onLocalCluster()
		gate := newThrottle(f.namespace)
		Expect(cluster.manager.stop()).To(Succeed())
		process := f.startBehind(ctx, gate)
		before, begin := peakMemory(process), time.Now()

		set := f.create(ctx, newSet("web", 50))
		Eventually(gate.refused.Load).WithContext(ctx).Should(BeNumerically(">=", 3), "creates that were put off")
		f.neighborIsServed(ctx)
		// One pod is tried at a time, and not before the second that the API server asks for has passed.
		Expect(gate.refused.Load()).To(BeNumerically("<=", 2+2*int64(time.Since(begin).Seconds())), "creates that were put off")
		Expect(peakMemory(process)).To(BeNumerically("<", before+flat), "bytes of memory")
		Expect(f.pods(set)).To(BeEmpty())

		gate.open.Store(true)
		f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, 0, 50)
		Expect(f.created(set, 0)).To(Equal(50), "pods created")
	})
})

// neighborIsServed creates a set in another namespace and waits until it is ready.
func (f *fixture) neighborIsServed(ctx context.Context) {
	GinkgoHelper()
	set := newSet("neighbor", 3)
	set.Namespace = makeNamespace(ctx)
	Expect(cluster.client.Create(ctx, set)).To(Succeed())
	Eventually(func() bool {
		now := &v1beta1.RollSet{}
		Expect(cluster.client.Get(ctx, client.ObjectKeyFromObject(set), now)).To(Succeed())
		return meta.IsStatusConditionTrue(now.Status.Conditions, "Ready")
	}).WithContext(ctx).Should(BeTrue(), "a set in another namespace is ready")
}

// relabel sets a label of a pod, even if the pod is gone.
func relabel(ctx context.Context, pod *corev1.Pod, key, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, pod.UID, key, value)
	return cluster.client.Patch(ctx, pod.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
}

func peakMemory(p *manager.Process) int64 {
	GinkgoHelper()
	bytes, err := usage.PeakMemory(p.PID())
	Expect(err).NotTo(HaveOccurred())
	return bytes
}

// throttle stands in front of the API server and delays all creates of pods in a namespace, until it is open.
type throttle struct {
	creates string // path
	open    atomic.Bool
	refused atomic.Int64
}

func newThrottle(namespace string) *throttle {
	return &throttle{creates: "/api/v1/namespaces/" + namespace + "/pods"}
}

func (t *throttle) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.TrimSuffix(r.URL.Path, "/") == t.creates && !t.open.Load() {
			t.refused.Add(1)
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// startBehind starts a manager that reaches the API server through a throttle. Both end with the spec.
func (f *fixture) startBehind(ctx context.Context, t *throttle) *manager.Process {
	GinkgoHelper()
	config := rest.CopyConfig(cluster.config)
	config.Impersonate.UserName = manager.User
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	proxy := httptest.NewServer(t.before(&httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watch events are passed on at once
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
	}))
	path := filepath.Join(cluster.dir, f.namespace+".kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: proxy.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy"}},
		CurrentContext: "proxy",
	}, path)).To(Succeed())
	process, err := manager.Start(context.WithoutCancel(ctx), manager.Options{
		Binary: cluster.binary, Kubeconfig: path, Log: filepath.Join(cluster.dir, "throttled-"+f.namespace+".log"),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(process.Kill()).To(Succeed())
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return process
}
