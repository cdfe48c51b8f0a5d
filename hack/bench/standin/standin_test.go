// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/manager/apiclient"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

const (
	namespace = "default"
	pollEvery = 5 * time.Millisecond
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// typed returns a client of the server that asks for a format.
func typed(t *testing.T, s *Server, format string) kubernetes.Interface {
	t.Helper()
	config := s.RESTConfig()
	config.ContentType = format
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// usual returns the client of controller-runtime.
func usual(t *testing.T, s *Server) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(s.RESTConfig(), client.Options{Scheme: apiserver.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func formats() []string { return []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} }

func aPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
}

func aSet(name string) *v1alpha1.RollSet {
	pod := aPod(name)
	return &v1alpha1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RollSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
}

func create[T client.Object](t *testing.T, s *Server, object T) T {
	t.Helper()
	if err := usual(t, s).Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// churn creates pods, changes each, and deletes half of them, from several clients at a time.
func churn(ctx context.Context, api kubernetes.Interface, prefix string, pods int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	client := api.CoreV1().Pods(namespace)
	for i := range pods {
		name := prefix + strconv.Itoa(i)
		group.Go(func() error {
			if _, err := client.Create(ctx, aPod(name), metav1.CreateOptions{}); err != nil {
				return err
			}
			for n := range 3 {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, n)
				if _, err := client.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
					return err
				}
			}
			if i%2 == 0 {
				return nil
			}
			return client.Delete(ctx, name, metav1.DeleteOptions{})
		})
	}
	return group.Wait()
}

// seen is an event of a watch.
type seen struct {
	Kind    watch.EventType
	Name    string
	Version string
}

// written returns what a watch from a version must show.
func (s *Server) written(after int64) (all []seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.store.Since(apiserver.Pods, after) {
		kind := watch.Modified
		switch {
		case e.Old == nil:
			kind = watch.Added
		case e.New == nil:
			kind = watch.Deleted
		}
		all = append(all, seen{kind, e.Key.Name, strconv.FormatInt(e.Version, 10)})
	}
	return all
}

// receive returns the next events of a watch.
func receive(t *testing.T, w watch.Interface, n int) (all []seen) {
	t.Helper()
	for range n {
		e, ok := <-w.ResultChan()
		pod, isPod := e.Object.(*corev1.Pod)
		if !ok || !isPod {
			t.Fatalf("after %d of %d events: %v", len(all), n, e)
		}
		all = append(all, seen{e.Type, pod.Name, pod.ResourceVersion})
	}
	return all
}

func TestAWatchShowsEveryWriteInOrder(t *testing.T) {
	t.Parallel()
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			api := typed(t, s, format)
			begin := s.version()
			w, err := api.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: strconv.FormatInt(begin, 10)})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if err := churn(t.Context(), api, "a-", 40); err != nil {
				t.Fatal(err)
			}
			want := s.written(begin)
			if len(want) < 40*5 {
				t.Fatalf("%d writes", len(want))
			}
			if diff := cmp.Diff(want, receive(t, w, len(want))); diff != "" {
				t.Errorf("events (-written +seen):\n%s", diff)
			}
		})
	}
}

func TestAWatchContinuesFromAnOldVersion(t *testing.T) {
	t.Parallel()
	s := start(t)
	api := typed(t, s, runtime.ContentTypeProtobuf)
	if err := churn(t.Context(), api, "a-", 20); err != nil {
		t.Fatal(err)
	}
	for _, e := range []int{0, 17, 50} {
		all := s.written(1)
		version := all[e].Version
		w, err := api.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[e+1:], receive(t, w, len(all)-e-1)); diff != "" {
			t.Errorf("events after version %s (-written +seen):\n%s", version, diff)
		}
		w.Stop()
	}
}

func TestAStreamingListEndsWithItsBookmark(t *testing.T) {
	t.Parallel()
	s := start(t)
	api := typed(t, s, runtime.ContentTypeProtobuf)
	if err := churn(t.Context(), api, "old-", 10); err != nil {
		t.Fatal(err)
	}
	begin := s.version()
	w, err := api.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var names []string
	for _, e := range receive(t, w, 5) {
		if e.Kind != watch.Added {
			t.Errorf("initial event %v", e)
		}
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"old-0", "old-2", "old-4", "old-6", "old-8"}, names); diff != "" {
		t.Errorf("initial pods (-want +got):\n%s", diff)
	}
	bookmark := <-w.ResultChan()
	end, ok := bookmark.Object.(*corev1.Pod)
	if !ok || bookmark.Type != watch.Bookmark || end.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Fatalf("the list ends with %v", bookmark)
	}
	if end.ResourceVersion != strconv.FormatInt(begin, 10) {
		t.Errorf("the bookmark has version %s, want %d", end.ResourceVersion, begin)
	}
	if err := churn(t.Context(), api, "new-", 5); err != nil {
		t.Fatal(err)
	}
	want := s.written(begin)
	if diff := cmp.Diff(want, receive(t, w, len(want))); diff != "" {
		t.Errorf("events after the list (-written +seen):\n%s", diff)
	}
}

// TestABookmarkFollowsWhatItPromises sends bookmarks between writes, as fast as they can be.
func TestABookmarkFollowsWhatItPromises(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.bookmarks = 1
	api := typed(t, s, runtime.ContentTypeProtobuf)
	begin := s.version()
	w, err := api.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: strconv.FormatInt(begin, 10), AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := churn(t.Context(), api, "a-", 10); err != nil {
		t.Fatal(err)
	}
	want := s.written(begin)
	sent, last := 0, strconv.FormatInt(s.version(), 10)
	for e := range w.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("event %v", e)
		}
		if e.Type != watch.Bookmark {
			sent++
			continue
		}
		promised := slices.IndexFunc(want, func(w seen) bool { return number(t, w.Version) > number(t, pod.ResourceVersion) })
		if promised > sent || promised < 0 && sent < len(want) {
			t.Fatalf("a bookmark of version %s after %d events", pod.ResourceVersion, sent)
		}
		if pod.ResourceVersion == last {
			return
		}
	}
}

func number(t *testing.T, version string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAWatchWithoutAVersionBeginsWithWhatThereIs(t *testing.T) {
	t.Parallel()
	s := start(t)
	pod := create(t, s, aPod("a"))
	for _, version := range []string{"", "0"} {
		w, err := typed(t, s, runtime.ContentTypeJSON).CoreV1().Pods(pod.Namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		want := []seen{{watch.Added, "a", strconv.FormatInt(s.version(), 10)}}
		if diff := cmp.Diff(want, receive(t, w, 1)); diff != "" {
			t.Errorf("from %q (-want +got):\n%s", version, diff)
		}
		w.Stop()
	}
}

// TestAWatchOfSomePods lets a pod come into a selection and leave it.
func TestAWatchOfSomePods(t *testing.T) {
	t.Parallel()
	s := start(t)
	api := typed(t, s, runtime.ContentTypeProtobuf)
	create(t, s, aPod("a"))
	w, err := api.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "2", LabelSelector: "app=b"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, app := range []string{"b", "c"} {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"app":%q}}}`, app)
		if _, err := api.CoreV1().Pods(namespace).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	last := s.version()
	want := []seen{{watch.Added, "a", strconv.FormatInt(last-1, 10)}, {watch.Deleted, "a", strconv.FormatInt(last, 10)}}
	if diff := cmp.Diff(want, receive(t, w, 2)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestACacheFollows holds the cache of controller-runtime, as a manager has it, against lists.
func TestACacheFollows(t *testing.T) {
	t.Parallel()
	s := start(t)
	api := typed(t, s, runtime.ContentTypeProtobuf)
	if err := churn(t.Context(), api, "old-", 10); err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(s.RESTConfig(), cache.Options{Scheme: apiserver.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetInformer(t.Context(), &v1alpha1.RollSet{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(t.Context()) }()
	c.WaitForCacheSync(t.Context())
	if err := churn(t.Context(), api, "new-", 10); err != nil {
		t.Fatal(err)
	}
	set := create(t, s, aSet("web"))
	shared, ok := pods.(toolscache.SharedIndexInformer)
	if !ok {
		t.Fatalf("the informer is a %T", pods)
	}
	want := s.written(0)
	newest := number(t, want[len(want)-1].Version)
	err = wait.PollUntilContextCancel(t.Context(), pollEvery, true, func(ctx context.Context) (bool, error) {
		got := &v1alpha1.RollSet{}
		err := c.Get(ctx, client.ObjectKeyFromObject(set), got)
		return err == nil && number(t, shared.GetStore().LastStoreSyncResourceVersion()) >= newest, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	var cached, listed corev1.PodList
	if err := c.List(t.Context(), &cached); err != nil {
		t.Fatal(err)
	}
	if err := usual(t, s).List(t.Context(), &listed); err != nil {
		t.Fatal(err)
	}
	byName := cmpopts.SortSlices(func(a, b corev1.Pod) bool { return a.Name < b.Name })
	if diff := cmp.Diff(listed.Items, cached.Items, byName, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" || len(listed.Items) != 10 {
		t.Errorf("%d pods; (-list +cache):\n%s", len(listed.Items), diff)
	}
}

func TestFormatsAgree(t *testing.T) {
	t.Parallel()
	s := start(t)
	create(t, s, aPod("a"))
	create(t, s, aPod("b"))
	var gets []*corev1.Pod
	var lists []*corev1.PodList
	for _, format := range formats() {
		pods := typed(t, s, format).CoreV1().Pods(namespace)
		pod, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		gets, lists = append(gets, pod), append(lists, list)
	}
	if diff := cmp.Diff(gets[0], gets[1]); diff != "" || gets[0].UID == "" {
		t.Errorf("pod (-JSON +protobuf):\n%s", diff)
	}
	if diff := cmp.Diff(lists[0], lists[1]); diff != "" || len(lists[0].Items) != 2 {
		t.Errorf("list (-JSON +protobuf):\n%s", diff)
	}
	if diff := cmp.Diff(*gets[0], lists[0].Items[0]); diff != "" {
		t.Errorf("pod (-get +list):\n%s", diff)
	}
}

func TestAPodIsReadyAtOnceAndGoneAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := usual(t, s)
	pod := create(t, s, aPod("a"))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if !ready || pod.Spec.NodeName == "" || len(pod.Spec.Volumes) != 1 || len(pod.Spec.Tolerations) != 2 {
		t.Errorf("pod %v", pod)
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion: %v", err)
	}
}

func TestAStaleVersionIsAConflict(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := usual(t, s)
	set := create(t, s, aSet("web"))
	stale := set.DeepCopy()
	set.Spec.Replicas = new(int32(3))
	if err := c.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if set.ResourceVersion == stale.ResourceVersion || set.Generation != 2 {
		t.Errorf("version %s, generation %d", set.ResourceVersion, set.Generation)
	}
	stale.Spec.Replicas = new(int32(5))
	if err := c.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("update: %v", err)
	}
	changed := stale.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	if err := c.Patch(t.Context(), changed, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("patch: %v", err)
	}
	reported := set.DeepCopy()
	reported.Status.ObservedGeneration, reported.Spec.Replicas = 2, new(int32(9))
	if err := c.Status().Patch(t.Context(), reported, client.MergeFrom(set)); err != nil {
		t.Fatal(err)
	}
	if reported.Status.ObservedGeneration != 2 || *reported.Spec.Replicas != 3 || reported.Generation != 2 {
		t.Errorf("after a patch of the status: %v", reported)
	}
	if err := c.Create(t.Context(), aSet("web")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create: %v", err)
	}
}

func TestPreconditionsOfADelete(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := usual(t, s)
	pod := create(t, s, aPod("a"))
	old := pod.ResourceVersion // its kubelet has written since
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]client.Preconditions{
		"another UID": {UID: new(types.UID("other"))}, "an old version": {UID: &pod.UID, ResourceVersion: &old},
	} {
		if err := c.Delete(t.Context(), pod, p); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Delete(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), pod); !apierrors.IsNotFound(err) {
		t.Errorf("once more: %v", err)
	}
}

func TestPodsOfADeletedSetAreCollected(t *testing.T) {
	t.Parallel()
	s := start(t)
	set := create(t, s, aSet("web"))
	pod := aPod("web-a")
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind("RollSet"))}
	create(t, s, pod)
	c := usual(t, s)
	if err := c.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("the pod of the set: %v", err)
	}
}

// TestAManagersClientGetsMetadata writes as a manager does, and lists what it asks for to see its rights.
func TestAManagersClientGetsMetadata(t *testing.T) {
	t.Parallel()
	s := start(t)
	config := s.RESTConfig()
	plain := usual(t, s)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiclient.New(config, client.Options{Scheme: plain.Scheme(), HTTPClient: httpClient})
	if err != nil {
		t.Fatal(err)
	}
	pod := aPod("a")
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if pod.UID == "" || pod.ResourceVersion == "" || pod.Spec.DNSPolicy != "" {
		t.Errorf("the answer has %v", pod)
	}
	create(t, s, aPod("b"))
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := plain.List(t.Context(), list, client.Limit(1)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "a" || list.Continue == "" {
		t.Errorf("the first page is %v", list)
	}
	if err := plain.List(t.Context(), list, client.Limit(1), client.Continue(list.Continue)); !apierrors.IsResourceExpired(err) {
		t.Errorf("the next page: %v", err)
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	api := typed(t, s, runtime.ContentTypeProtobuf)
	pods := api.CoreV1().Pods(namespace)
	set := create(t, s, aSet("web"))
	for name, call := range map[string]func() (int32, error){
		"a version to come": func() (int32, error) {
			_, err := pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "1000"})
			return http.StatusGatewayTimeout, err
		},
		"an old version": func() (int32, error) {
			_, err := pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			return http.StatusBadRequest, err
		},
		"no version": func() (int32, error) {
			_, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "x"})
			return http.StatusBadRequest, err
		},
		"a field selector": func() (int32, error) {
			_, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=a"})
			return http.StatusBadRequest, err
		},
		"an unknown kind": func() (int32, error) {
			_, err := api.CoreV1().Services(namespace).Get(t.Context(), "a", metav1.GetOptions{})
			return http.StatusNotFound, err
		},
		"a pod that is not there": func() (int32, error) {
			_, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
			return http.StatusNotFound, err
		},
		"a pod without a name": func() (int32, error) {
			_, err := pods.Create(t.Context(), aPod(""), metav1.CreateOptions{})
			return http.StatusBadRequest, err
		},
		"apply": func() (int32, error) {
			_, err := pods.Patch(t.Context(), "a", types.ApplyPatchType, []byte("{}"), metav1.PatchOptions{FieldManager: "a"})
			return http.StatusUnsupportedMediaType, err
		},
		"a strategic patch of a set": func() (int32, error) {
			err := usual(t, s).Patch(t.Context(), set.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte("{}")))
			return http.StatusUnsupportedMediaType, err
		},
	} {
		code, err := call()
		if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Code != code {
			t.Errorf("%s: %v, want %d", name, err, code)
		}
	}
}

func TestTheAPIIsDiscovered(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := usual(t, s)
	for object, namespaced := range map[client.Object]bool{&v1alpha1.RollSet{}: true, &corev1.Pod{}: true, &corev1.Node{}: false} {
		kind, err := apiutil.GVKForObject(object, c.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.IsObjectNamespaced(object); err != nil || got != namespaced {
			t.Errorf("%s: namespaced %v (%v)", kind.Kind, got, err)
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := usual(t, s)
	set := create(t, s, aSet("web"))
	create(t, s, aPod("a"))
	if err := c.List(t.Context(), &corev1.PodList{}); err != nil {
		t.Fatal(err)
	}
	if s.Writes() != 2 || s.ReadySets() != 0 || s.Listed(apiserver.Pods).IsZero() || s.FirstCreated().IsZero() {
		t.Errorf("%d writes, records %v", s.Writes(), s.records)
	}
	before := set.DeepCopy()
	set.Status.ObservedGeneration = set.Generation
	set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Fine"}}
	if err := c.Status().Patch(t.Context(), set, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if n := s.ReadySets(); n != 1 {
		t.Errorf("%d sets are ready", n)
	}
	set.Spec.Replicas = new(int32(2))
	if err := c.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if n := s.ReadySets(); n != 0 {
		t.Errorf("%d sets are ready in a new generation", n)
	}
	s.Forget()
	if !s.Listed(apiserver.Pods).IsZero() || !s.FirstCreated().IsZero() {
		t.Error("something is remembered")
	}
}

func TestLoadedObjectsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := start(t)
	pod := aPod("a")
	pod.UID, pod.Status.Phase = "mine", corev1.PodFailed
	s.Load(pod)
	got := &corev1.Pod{}
	if err := usual(t, s).Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil {
		t.Fatal(err)
	}
	if got.UID != "mine" || got.Status.Phase != corev1.PodFailed || got.Spec.NodeName != "" {
		t.Errorf("the pod became %v", got)
	}
}
