// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discover answers a request about the API itself. It reports false for others.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) bool {
	answer := discovery(strings.Trim(r.URL.Path, "/"))
	if answer == nil {
		return false
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
	return true
}

// discovery returns the answer for a path; nil if it is not about the API itself.
func discovery(path string) any {
	switch path {
	case "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, version := range versions() {
			if version.Group != "" {
				list.Groups = append(list.Groups, group(version))
			}
		}
		return list
	case "version":
		return map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}
	}
	for _, version := range versions() {
		switch path {
		case "api/" + version.String(), "apis/" + version.String():
			return kindsOf(version)
		case "apis/" + version.Group:
			return group(version)
		}
	}
	return nil
}

// versions returns the versions of all groups. Each group has one.
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
		if r.version != version {
			continue
		}
		verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
		if r.transient {
			verbs = metav1.Verbs{"create"}
		}
		kind := metav1.APIResource{Name: r.plural, Kind: string(r.kind), Namespaced: r.namespaced, Verbs: verbs}
		list.APIResources = append(list.APIResources, kind)
		for _, name := range r.subresources {
			kind.Name, kind.Verbs = r.plural+"/"+name, metav1.Verbs{"patch", "update"}
			list.APIResources = append(list.APIResources, kind)
		}
	}
	return list
}
