// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// resource is a kind that is served.
type resource struct {
	version    schema.GroupVersion
	plural     string
	kind       apiserver.Kind
	list       func() runtime.Object
	namespaced bool
	// subresources are those that can be written.
	subresources []string
	// transient resources are answered, and kept nowhere.
	transient bool
}

// resources returns all kinds that are served.
func resources() []resource {
	return []resource{
		{
			version: corev1.SchemeGroupVersion, plural: "pods", kind: apiserver.Pods, namespaced: true,
			list: func() runtime.Object { return &corev1.PodList{} }, subresources: []string{"status", "resize"},
		},
		{
			version: corev1.SchemeGroupVersion, plural: "persistentvolumeclaims", kind: apiserver.Claims, namespaced: true,
			list: func() runtime.Object { return &corev1.PersistentVolumeClaimList{} }, subresources: []string{"status"},
		},
		{
			version: corev1.SchemeGroupVersion, plural: "nodes", kind: apiserver.Nodes,
			list: func() runtime.Object { return &corev1.NodeList{} },
		},
		{
			version: appsv1.SchemeGroupVersion, plural: "controllerrevisions", kind: apiserver.Revisions, namespaced: true,
			list: func() runtime.Object { return &appsv1.ControllerRevisionList{} },
		},
		{
			version: storagev1.SchemeGroupVersion, plural: "storageclasses", kind: apiserver.StorageClasses,
			list: func() runtime.Object { return &storagev1.StorageClassList{} },
		},
		{
			version: policyv1.SchemeGroupVersion, plural: "poddisruptionbudgets", kind: apiserver.Budgets, namespaced: true,
			list: func() runtime.Object { return &policyv1.PodDisruptionBudgetList{} },
		},
		{
			version: v1alpha1.GroupVersion, plural: "rollsets", kind: apiserver.RollSets, namespaced: true,
			list: func() runtime.Object { return &v1alpha1.RollSetList{} }, subresources: []string{"status"},
		},
		{version: eventsv1.SchemeGroupVersion, plural: "events", kind: "Event", namespaced: true, transient: true},
		{version: authorizationv1.SchemeGroupVersion, plural: "selfsubjectaccessreviews", kind: "SelfSubjectAccessReview", transient: true},
	}
}

// route is the part of a path that names a kind.
type route struct{ version, plural string }

func routes() map[route]resource {
	all := map[route]resource{}
	for _, r := range resources() {
		all[route{r.version.String(), r.plural}] = r
	}
	return all
}

// target is what a path names.
type target struct {
	kind                         resource
	namespace, name, subresource string
}

func (t target) key() apiserver.Key {
	return apiserver.Key{Kind: t.kind.kind, Namespace: t.namespace, Name: t.name}
}

// parse returns what a path names. A path is /api/VERSION or /apis/GROUP/VERSION, then namespaces/NAMESPACE unless all are meant,
// and then RESOURCE/NAME/SUBRESOURCE, as far as given.
func (s *Server) parse(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	from := 2
	if parts[0] == "apis" {
		from = 3
	}
	if len(parts) <= from {
		return t, false
	}
	version, parts := strings.Join(parts[1:from], "/"), parts[from:]
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	if t.kind, ok = s.routes[route{version, parts[0]}]; !ok || len(parts) > 3 {
		return t, false
	}
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = parts[2]
		ok = slices.Contains(t.kind.subresources, t.subresource)
	}
	return t, ok
}
