// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package metricsauth_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"rollset.dev/rollset/internal/manager/metricsauth"
)

// apiServer knows the token "good" as a user of a group who may get /metrics, and no other token.
func apiServer(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch req.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if review.Spec.Token == "broken" {
			http.Error(w, "no answer", http.StatusForbidden)
			return
		}
		review.Status.Authenticated = review.Spec.Token == "good"
		review.Status.User = authenticationv1.UserInfo{
			Username: "prometheus", UID: "1", Groups: []string{"monitoring"},
			Extra: map[string]authenticationv1.ExtraValue{"pod": {"prometheus-0"}},
		}
		_ = json.NewEncoder(w).Encode(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s := review.Spec
		review.Status.Allowed = s.User == "prometheus" && s.UID == "1" && slices.Equal(s.Groups, []string{"monitoring"}) &&
			slices.Equal(s.Extra["pod"], authorizationv1.ExtraValue{"prometheus-0"}) &&
			*s.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		_ = json.NewEncoder(w).Encode(review)
	default:
		http.Error(w, errors.ErrUnsupported.Error(), http.StatusNotFound)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(apiServer))
	t.Cleanup(server.Close)
	filter, err := metricsauth.Filter(&rest.Config{
		Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"no token":                   {authorization: "", want: http.StatusUnauthorized},
		"not a bearer token":         {authorization: "Basic good", want: http.StatusUnauthorized},
		"an empty token":             {authorization: "Bearer ", want: http.StatusUnauthorized},
		"an unknown token":           {authorization: "Bearer bad", want: http.StatusUnauthorized},
		"an API server that refuses": {authorization: "Bearer broken", want: http.StatusInternalServerError},
		"another path":               {path: "/debug", authorization: "Bearer good", want: http.StatusForbidden},
		"another method":             {method: http.MethodPost, authorization: "Bearer good", want: http.StatusForbidden},
		"allowed":                    {authorization: "Bearer good", want: http.StatusOK},
		"allowed, in other letters":  {authorization: "bearer  good", want: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/metrics"
			if test.path != "" {
				path = test.path
			}
			req := httptest.NewRequestWithContext(t.Context(), test.method, path, http.NoBody)
			if test.authorization != "" {
				req.Header.Set("Authorization", test.authorization)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, req)
			if answer.Code != test.want || (answer.Body.String() == "metrics") != (test.want == http.StatusOK) {
				t.Errorf("answered %d %q, want %d", answer.Code, answer.Body, test.want)
			}
		})
	}
}
