// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"encoding/json"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// resource is a kind that is served.
type resource struct {
	version    schema.GroupVersion
	plural     string
	kind       apiserver.Kind
	list       func() runtime.Object
	namespaced bool
	// jsonOnly is true for custom resources.
	jsonOnly bool
	// echoed resources are answered with what was sent, and kept nowhere.
	echoed bool
}

// resources are all kinds that are served.
func resources() []resource {
	return []resource{
		{version: corev1.SchemeGroupVersion, plural: "pods", kind: apiserver.Pods, namespaced: true, list: func() runtime.Object { return &corev1.PodList{} }},
		{
			version: corev1.SchemeGroupVersion, plural: "persistentvolumeclaims", kind: apiserver.Claims, namespaced: true,
			list: func() runtime.Object { return &corev1.PersistentVolumeClaimList{} },
		},
		{version: corev1.SchemeGroupVersion, plural: "nodes", kind: apiserver.Nodes, list: func() runtime.Object { return &corev1.NodeList{} }},
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
			version: v1alpha1.GroupVersion, plural: "rollsets", kind: apiserver.RollSets, namespaced: true, jsonOnly: true,
			list: func() runtime.Object { return &v1alpha1.RollSetList{} },
		},
		{version: eventsv1.SchemeGroupVersion, plural: "events", kind: "Event", namespaced: true, echoed: true},
		{version: coordinationv1.SchemeGroupVersion, plural: "leases", kind: "Lease", namespaced: true, echoed: true},
		{version: authorizationv1.SchemeGroupVersion, plural: "selfsubjectaccessreviews", kind: "SelfSubjectAccessReview", echoed: true},
	}
}

// statusKind is the kind of errors.
func statusKind() resource { return resource{version: schema.GroupVersion{Version: "v1"}} }

// target is what a path names.
type target struct {
	kind                         resource
	namespace, name, subresource string
}

func (t target) key() apiserver.Key {
	return apiserver.Key{Kind: t.kind.kind, Namespace: t.namespace, Name: t.name}
}

// parse returns what a path names.
func parse(path string) (t target, ok bool) {
	for _, r := range resources() {
		prefix := "/apis/" + r.version.String() + "/"
		if r.version.Group == "" {
			prefix = "/api/" + r.version.Version + "/"
		}
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		t := target{kind: r}
		if len(parts) > 2 && parts[0] == "namespaces" {
			t.namespace, parts = parts[1], parts[2:]
		}
		if parts[0] != r.plural {
			continue
		}
		if parts = append(parts, "", ""); len(parts) > 3 || true {
			t.name, t.subresource = parts[1], parts[2]
		}
		return t, true
	}
	return target{}, false
}

// discover answers what is asked about the API itself.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) bool {
	path := strings.Trim(r.URL.Path, "/")
	switch {
	case path == "api":
		respondJSON(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, version := range versions() {
			if version.Group != "" {
				list.Groups = append(list.Groups, group(version))
			}
		}
		respondJSON(w, list)
	case path == "version":
		respondJSON(w, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.0"})
	default:
		for _, version := range versions() {
			switch path {
			case "api/" + version.String(), "apis/" + version.String():
				respondJSON(w, kindsOf(version))
				return true
			case "apis/" + version.Group:
				respondJSON(w, group(version))
				return true
			}
		}
		return false
	}
	return true
}

// versions are the versions of all groups.
func versions() []schema.GroupVersion {
	var all []schema.GroupVersion
	seen := map[schema.GroupVersion]bool{}
	for _, r := range resources() {
		if !seen[r.version] {
			all = append(all, r.version)
		}
		seen[r.version] = true
	}
	return all
}

func group(version schema.GroupVersion) metav1.APIGroup {
	served := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: version.Group,
		Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served,
	}
}

func kindsOf(version schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.String()}
	for _, r := range resources() {
		if r.version == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.plural, Kind: string(r.kind), Namespaced: r.namespaced, Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	return list
}

func respondJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
}
