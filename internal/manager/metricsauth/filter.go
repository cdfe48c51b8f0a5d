// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package metricsauth lets only users read the metrics who are allowed to by the API server. It asks what
// controller-runtime's own filter asks, without the authentication and authorization chain of an API server, which is a
// third of the binary.
package metricsauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewTimeout is how long the API server may take to answer both questions of a request.
	reviewTimeout = 10 * time.Second
	// reviewsPerSecond bounds the load that unknown clients can put on the API server. A request of a known client takes two
	// reviews.
	reviewsPerSecond = 20
)

// errUnknown means that the API server does not know the client of a request.
var errUnknown = errors.New("no bearer token that the API server knows")

// Filter answers 401 to requests without a token that the API server knows, 403 to users who may not get the path, and 500
// when the API server cannot be asked.
func Filter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = reviewsPerSecond, 2*reviewsPerSecond
	tokens, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("build a client for token reviews: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("build a client for access reviews: %w", err)
	}
	r := reviewer{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews()}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			allowed, err := r.allows(req)
			switch {
			case errors.Is(err, errUnknown):
				http.Error(w, err.Error(), http.StatusUnauthorized)
			case err != nil:
				log.Error(err, "metrics were not served", "path", req.URL.Path)
				http.Error(w, "the API server could not be asked who may read this", http.StatusInternalServerError)
			case !allowed:
				http.Error(w, "not allowed to "+verb(req)+" "+req.URL.Path, http.StatusForbidden)
			default:
				next.ServeHTTP(w, req)
			}
		}), nil
	}, nil
}

type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
}

// allows asks the API server whose token a request has, and whether that user may make the request.
func (r reviewer) allows(req *http.Request) (bool, error) {
	ctx, cancel := context.WithTimeout(req.Context(), reviewTimeout)
	defer cancel()
	user, err := r.user(ctx, req)
	if err != nil {
		return false, err
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: req.URL.Path, Verb: verb(req)},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

func (r reviewer) user(ctx context.Context, req *http.Request) (authenticationv1.UserInfo, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return authenticationv1.UserInfo{}, errUnknown
	}
	review, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authenticationv1.UserInfo{}, fmt.Errorf("review a token: %w", err)
	case !review.Status.Authenticated:
		return authenticationv1.UserInfo{}, errUnknown
	default:
		return review.Status.User, nil
	}
}

// verb returns the API server's verb for the method of a non-resource request.
func verb(req *http.Request) string { return strings.ToLower(req.Method) }
