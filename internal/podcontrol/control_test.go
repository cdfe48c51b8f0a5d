// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"errors"
	"io"
	"net"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
)

var (
	errQuota    = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("exceeded quota: pods"))
	errDenied   = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("denied by a policy"))
	errTooLarge = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("node didn't have enough allocatable resources: cpu"))
	errInvalid  = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", field.ErrorList{field.Required(field.NewPath("spec"), "")})
	errServer   = apierrors.NewInternalError(errors.New("etcd"))
	errWebhook  = apierrors.NewInternalError(errors.New(`failed calling webhook "w.example.com": context deadline exceeded`))
	errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("not now"))
	errRights   = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "manager" cannot create resource "pods" in API group ""`)) //nolint:staticcheck // it begins as that of the API server
	errCut      = &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
)

func TestCreatesStartSlowly(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	result := w.apply(t, creates(12)...)
	if diff := cmp.Diff([]int{1, 2, 4, 5}, w.batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(attempt.Tally{Done: 12}, result.Creates); diff != "" {
		t.Errorf("creates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"SuccessfulCreate: Created 12 pods web-0, web-1, web-2, web-3, web-4 and 7 more (missing, at revision web-1; 0 wanted)"}, w.notes.all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestCreatesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	if got := w.apply(t, creates(MaxWrites+100)...).Creates.Done; got != MaxWrites {
		t.Errorf("created %d pods, want %d", got, MaxWrites)
	}
}

func TestCreatesStopAtTheFirstFailingBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	w.server.fail = func(_ string, object client.Object) error {
		if object.GetName() == "web-2" {
			return errQuota
		}
		return nil
	}
	result := w.apply(t, creates(20)...)
	if diff := cmp.Diff([]int{1, 2}, w.batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if result.Creates.Done != 2 || result.Creates.Failed != 1 || !errors.Is(result.Creates.Err, errQuota) {
		t.Errorf("creates = %+v, want 2 done and the quota's refusal", result.Creates)
	}
	if met, _ := w.store.Met("set", expectations.Cache{Synced: synced("2")}); !met {
		t.Error("a definite refusal is waited for")
	}
}

func synced(resourceVersion string) map[schema.GroupKind]string {
	return map[schema.GroupKind]string{expectations.PodKind(): resourceVersion, expectations.ClaimKind(): resourceVersion}
}

func TestCreateIsExpected(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	w.server.version = 100
	w.apply(t, creates(3)...)
	if met, _ := w.store.Met("set", expectations.Cache{Synced: synced("102")}); met {
		t.Error("Met() = true with a cache that lacks the last pod")
	}
	if met, _ := w.store.Met("set", expectations.Cache{Synced: synced("103")}); !met {
		t.Error("Met() = false with a cache that has all pods")
	}
}

func TestCreateUnsettled(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	w.server.lose = func(string, client.Object) error { return errCut }
	result := w.apply(t, creates(1)...)
	if !errors.Is(result.Creates.Err, errCut) {
		t.Errorf("creates = %+v, want the cut connection", result.Creates)
	}
	met, remaining := w.store.Met("set", expectations.Cache{})
	if met || remaining != expectations.UnsettledTimeout {
		t.Errorf("Met() = %v, %v, want to wait for %v", met, remaining, expectations.UnsettledTimeout)
	}

	// The next plan wants the same pod again, and finds it.
	w.server.lose = nil
	w.server.log = nil
	result = w.apply(t, creates(1)...)
	if diff := cmp.Diff([]string{"create web-0", "get web-0"}, w.server.log); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Result{Attempts: []attempt.Result{{Key: action.KeyOf(creates(1)[0])}}}, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestNameTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.OrdinalIdentity)
	foreign := w.pod("web-1").Pod
	foreign.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "other", UID: "other", Controller: new(true)}}
	w.server.store(foreign)
	result := w.apply(t, creates(3)...)
	if result.Creates.Done != 2 || result.Creates.Err != nil {
		t.Errorf("creates = %+v, want the two others", result.Creates)
	}
	want := "the name is taken by a pod that ReplicaSet other controls and that the set cannot adopt; delete it"
	if got := result.Blocked["1"]; got.Reason != want || got.Claim {
		t.Errorf("blocked = %+v, want %q", result.Blocked, want)
	}
}

func TestNamespaceIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	gone := apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("terminating"))
	gone.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.server.fail = func(string, client.Object) error { return gone }
	if !w.apply(t, creates(1)...).NamespaceGone {
		t.Error("NamespaceGone = false")
	}
}

// TestOrderOfWrites checks which writes come first. Under OrderedReady a pod is created before one below it is disturbed.
// Otherwise it is created after the writes that make room for it.
func TestOrderOfWrites(t *testing.T) {
	t.Parallel()
	for policy, want := range map[v1beta1.PodManagementPolicy][]string{
		v1beta1.OrderedReadyPodManagement: {"create web-2", "patch status web-0", "delete web-1"},
		v1beta1.ParallelPodManagement:     {"patch status web-0", "delete web-1", "create web-2"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.OrdinalIdentity)
			w.set.Spec.PodManagementPolicy = policy
			w.apply(t, w.pod("web-1"), action.CloseGate{Pod: w.running("web-0")}, creates(3)[2])
			if diff := cmp.Diff(want, w.server.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare   func(*world)
		fails     bool
		met       bool
		wantEvent string
	}{
		"a pod that is deleted is expected to go": {
			prepare: func(*world) {}, wantEvent: "SuccessfulDelete: Deleted pod web-0 (above spec.replicas)",
		},
		"a pod that is gone already is expected to go": {
			prepare: func(w *world) { delete(w.server.objects, "web-0") },
		},
		"a namesake of the pod is left alone": {
			prepare: func(w *world) { w.server.objects["web-0"].SetUID("another") },
			met:     true,
		},
		"a pod without a controller is left alone": {
			prepare: func(w *world) {
				w.server.changePod("web-0", func(pod *corev1.Pod) { pod.OwnerReferences = nil })
			},
			met: true,
		},
		"a pod that became ready is judged again": {
			prepare: func(w *world) {
				w.server.changePod("web-0", func(pod *corev1.Pod) {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				})
			},
			met: true,
		},
		"a pod is deleted after a change that no decision depends on": {
			prepare: func(w *world) {
				w.server.changePod("web-0", func(pod *corev1.Pod) { pod.Status.Message = "still here" })
			},
			wantEvent: "SuccessfulDelete: Deleted pod web-0 (above spec.replicas)",
		},
		"a conflict without another writer is a refusal": {
			prepare: func(w *world) { w.server.fail = func(string, client.Object) error { return errConflict } },
			fails:   true, met: true, wantEvent: "FailedDelete: delete pod web-0: " + errConflict.Error(),
		},
		"a refusal is not waited for": {
			prepare: func(w *world) { w.server.fail = func(string, client.Object) error { return errDenied } },
			fails:   true, met: true, wantEvent: "FailedDelete: delete pod web-0: " + errDenied.Error(),
		},
		"no answer is waited for": {
			prepare: func(w *world) { w.server.lose = func(string, client.Object) error { return errCut } },
			fails:   true, wantEvent: "FailedDelete: delete pod web-0: " + errCut.Error(),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.RandomIdentity)
			a := w.pod("web-0")
			tt.prepare(w)
			result := w.apply(t, a)
			if got := result.Deletes.Err != nil; got != tt.fails {
				t.Errorf("deletes = %+v, want failure: %v", result.Deletes, tt.fails)
			}
			if met, _ := w.store.Met("set", expectations.Cache{Pods: []*corev1.Pod{a.Pod}}); met != tt.met {
				t.Errorf("Met() = %v while the cache shows the pod, want %v", met, tt.met)
			}
			if got := strings.Join(w.notes.all, "\n"); got != tt.wantEvent {
				t.Errorf("event %q, want %q", got, tt.wantEvent)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	webhook := apierrors.NewBadRequest(`admission webhook "audit.example.com" does not support dry run`)
	outage := apierrors.NewInternalError(errors.New("failed calling webhook"))
	unknownOwner := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("cannot set blockOwnerDeletion in this case because "+
		`cannot find RESTMapping for APIVersion apps.rollset.dev/v1beta1 Kind RollSet: no matches for kind "RollSet"`))
	tests := map[string]struct {
		err        error
		want       string
		wantFailed bool
	}{
		"accepted":                        {},
		"a full quota says nothing":       {err: errQuota},
		"an invalid template":             {err: errInvalid, want: errInvalid.Error()},
		"a policy":                        {err: errDenied, want: errDenied.Error()},
		"a webhook with side effects":     {err: webhook},
		"a webhook that is down":          {err: outage, want: outage.Error(), wantFailed: true},
		"a quota that others use as well": {err: errConflict, want: errConflict.Error(), wantFailed: true},
		"a manager without rights":        {err: errRights, want: errRights.Error(), wantFailed: true},
		"a version of the set that the API server does not know yet": {err: unknownOwner, want: unknownOwner.Error(), wantFailed: true},
		"a cut connection": {err: io.ErrUnexpectedEOF, want: io.ErrUnexpectedEOF.Error(), wantFailed: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.RandomIdentity)
			w.server.fail = func(string, client.Object) error { return tt.err }
			result := w.apply(t, action.Preflight{Revision: revision})
			answer, ok := result.Preflights[revision]
			if !ok || answer.Refusal != tt.want || answer.Failed != tt.wantFailed || (answer.Pod != nil) != (tt.err == nil) {
				t.Errorf("preflights = %+v, want refusal %q", result.Preflights, tt.want)
			}
			if len(w.server.log) != 1 || !strings.HasPrefix(w.server.log[0], "dry-run web-") {
				t.Errorf("requests %q, want one dry run", w.server.log)
			}
		})
	}
}

func TestPreflightTriesOtherNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		taken, wantAsked int
		wantPod          bool
	}{
		"another pod has the name":    {taken: 1, wantAsked: 2, wantPod: true},
		"other pods have all of them": {taken: 9, wantAsked: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.RandomIdentity)
			w.server.fail = func(string, client.Object) error {
				if len(w.server.log) > tt.taken {
					return nil
				}
				return apierrors.NewAlreadyExists(schema.GroupResource{}, "web")
			}
			answer := w.apply(t, action.Preflight{Revision: revision}).Preflights[revision]
			if answer.Refusal != "" || (answer.Pod != nil) != tt.wantPod {
				t.Errorf("answer %+v, want a pod: %v", answer, tt.wantPod)
			}
			asked := slices.Compact(slices.Sorted(slices.Values(w.server.log)))
			if len(w.server.log) != tt.wantAsked || len(asked) != tt.wantAsked {
				t.Errorf("requests %q, want %d different ones", w.server.log, tt.wantAsked)
			}
		})
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	var running, most, calls atomic.Int32
	count := func(running, most *atomic.Int32) {
		for now := running.Add(1); ; {
			seen := most.Load()
			if now <= seen || most.CompareAndSwap(seen, now) {
				return
			}
		}
	}
	run := Bounded(3, 5)
	var sets sync.WaitGroup
	for i := range 4 {
		sets.Go(func() {
			var mine, mostOfMine atomic.Int32
			run(strconv.Itoa(i), 50, func(int) {
				count(&running, &most)
				count(&mine, &mostOfMine)
				goruntime.Gosched()
				calls.Add(1)
				mine.Add(-1)
				running.Add(-1)
			})
			if mostOfMine.Load() > 3 {
				t.Errorf("%d calls of one set at a time, want 3 at most", mostOfMine.Load())
			}
		})
	}
	sets.Wait()
	if calls.Load() != 200 || most.Load() > 5 {
		t.Errorf("%d calls, at most %d at a time; want 200 and 5", calls.Load(), most.Load())
	}
}

// TestANamespaceThatHangsHoldsHalf lets all calls of a namespace hang. Those of another one are made.
func TestANamespaceThatHangsHoldsHalf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, otherCallsAreMade) // it fails at once if all wait for each other
}

func otherCallsAreMade(t *testing.T) {
	t.Helper()
	run := Bounded(10, 8)
	var hanging atomic.Int32
	var ended sync.WaitGroup
	full, release := make(chan struct{}), make(chan struct{})
	for range 3 {
		ended.Go(func() {
			run("slow", 5, func(int) {
				if hanging.Add(1) == 4 {
					close(full)
				}
				<-release
			})
		})
	}
	<-full
	var done atomic.Int32
	run("other", 5, func(int) { done.Add(1) })
	if done.Load() != 5 || hanging.Load() != 4 {
		t.Errorf("%d calls of the other namespace were made beside %d that hang, want 5 beside 4", done.Load(), hanging.Load())
	}
	close(release)
	ended.Wait()
}
