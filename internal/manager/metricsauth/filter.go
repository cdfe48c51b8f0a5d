// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package metricsauth lets only users read the metrics who are allowed to by the API server. It asks what
// controller-runtime's own filter asks, without the authentication and authorization chain of an API server, which is a
// third of the binary.
//
// The rule: a client that may read the metrics gets them, even if others send many requests. An answer that allows a client is used for a minute.
// A client that was allowed before does not wait behind unknown clients. A client that is refused gets its answer late,
// so that it asks less often, and leaves at most one line a minute in the log.
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
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewTimeout is how long the API server may take to answer both questions of a request.
	reviewTimeout = 10 * time.Second
	// reviewsPerSecond bounds the load that unknown clients can put on the API server, and knownPerSecond that of
	// those that were allowed before.
	reviewsPerSecond, knownPerSecond = 200, 20
	// turnTimeout is how long a client waits for its turn to be asked about.
	turnTimeout = 1500 * time.Millisecond
	// refusalDelay delays each refusal, so that a few hundred clients that ask again and again do not use up all requests.
	refusalDelay = 3 * time.Second
)

// errUnknown means that the API server does not know the client of a request, and errBusy that there are too many such clients.
var (
	errUnknown = errors.New("no bearer token that the API server knows")
	errBusy    = errors.New("too many clients that are not known; try again later")
)

// Filter answers 401 to requests without a token that the API server knows, 403 to users who may not get the path, 429 to clients
// that are unknown while there are too many of them, and 500 when the API server cannot be asked.
func Filter(c clock.Clock) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
		return newFilter(config, httpClient, c)
	}
}

func newFilter(config *rest.Config, httpClient *http.Client, c clock.Clock) (metricsserver.Filter, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // lanes limit the requests
	tokens, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("build a client for token reviews: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("build a client for access reviews: %w", err)
	}
	r := &reviewer{
		tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), memory: memory{clock: c},
		known:   flowcontrol.NewTokenBucketRateLimiter(knownPerSecond, knownPerSecond),
		unknown: flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewsPerSecond),
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		refused, failed := &tally{clock: c}, &tally{clock: c}
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			allowed, err := r.allows(req)
			switch {
			case err == nil && allowed:
				next.ServeHTTP(w, req)
			case err == nil || errors.Is(err, errUnknown) || errors.Is(err, errBusy):
				if n := refused.add(); n > 0 {
					log.Info("refused to serve metrics", "path", req.URL.Path, "client", req.RemoteAddr, "requests", n, "reason", reasonOf(req, err))
				}
				late(req.Context(), c)
				http.Error(w, reasonOf(req, err), codeOf(err))
			default:
				if n := failed.add(); n > 0 {
					log.Error(err, "metrics were not served", "path", req.URL.Path, "requests", n)
				}
				http.Error(w, "the API server could not be asked who may read this", http.StatusInternalServerError)
			}
		}), nil
	}, nil
}

// reasonOf says why a request is refused.
func reasonOf(req *http.Request, err error) string {
	if err != nil {
		return err.Error()
	}
	return "not allowed to " + verb(req) + " " + req.URL.Path
}

func codeOf(refusal error) int {
	switch {
	case errors.Is(refusal, errUnknown):
		return http.StatusUnauthorized
	case errors.Is(refusal, errBusy):
		return http.StatusTooManyRequests
	default:
		return http.StatusForbidden
	}
}

// late waits before a refusal, unless the client goes away.
func late(ctx context.Context, c clock.Clock) {
	select {
	case <-ctx.Done():
	case <-c.After(refusalDelay):
	}
}

// reviewer asks the API server about clients.
type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	memory memory
	// known and unknown let clients wait for their turn: those that were allowed before, and all others.
	known, unknown flowcontrol.RateLimiter
}

// allows reports whether the client of a request may make it.
func (r *reviewer) allows(req *http.Request) (bool, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return false, errUnknown
	}
	c := clientOf(token, req)
	age, known := r.memory.age(c)
	if known && age < acceptedFor {
		return true, nil
	}
	lane := r.unknown
	if known {
		lane = r.known
	}
	turn, cancel := context.WithTimeout(req.Context(), turnTimeout)
	defer cancel()
	if lane.Wait(turn) != nil {
		return false, errBusy
	}
	allowed, err := r.ask(req, token)
	switch {
	case err == nil && allowed:
		r.memory.allow(c)
	case err == nil || errors.Is(err, errUnknown):
		r.memory.forget(c)
	}
	return allowed, err
}

// ask asks the API server whose token a request has, and whether that user may make the request.
func (r *reviewer) ask(req *http.Request, token string) (bool, error) {
	ctx, cancel := context.WithTimeout(req.Context(), reviewTimeout)
	defer cancel()
	user, err := r.user(ctx, token)
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

func (r *reviewer) user(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
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
