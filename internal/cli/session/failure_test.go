// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rollset.dev/rollset/api/v1beta1"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestExplain(t *testing.T) {
	t.Parallel()
	sets := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "rollsets"}
	unknownKind := apierrors.NewNotFound(sets, "web")
	unknownKind.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Message: "404 page not found"}}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"lines become one": {errors.New("a\n  b"), "a b"},
		"a set that is not there": {
			fmt.Errorf("get: %w", apierrors.NewNotFound(sets, "web")),
			`get: rollsets.apps.rollset.dev "web" not found`,
		},
		"a cluster without RollSets": {
			unknownKind,
			"the API server does not serve RollSets of apps.rollset.dev/v1beta1; install RollSet first, or upgrade its CustomResourceDefinition",
		},
		"a right that is missing": {
			apierrors.NewForbidden(sets, "web", errors.New(`user "a" cannot patch resource "rollsets"`)),
			`rollsets.apps.rollset.dev "web" is forbidden: user "a" cannot patch resource "rollsets"; the cluster role rollset-editor-role gives it`,
		},
		"a right to read that is missing": {
			apierrors.NewForbidden(sets, "", errors.New(`user "a" cannot list resource "rollsets"`)),
			`rollsets.apps.rollset.dev is forbidden: user "a" cannot list resource "rollsets"; the cluster role rollset-viewer-role gives it`,
		},
		"a right about the definition of RollSets": {
			apierrors.NewForbidden(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "rollsets.apps.rollset.dev",
				errors.New(`user "a" cannot get resource "customresourcedefinitions"`)),
			`customresourcedefinitions.apiextensions.k8s.io "rollsets.apps.rollset.dev" is forbidden: user "a" cannot get resource "customresourcedefinitions"`,
		},
		"a server that does not answer": {
			&url.Error{Op: "Get", URL: "https://a", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}},
			`the API server does not answer: Get "https://a": dial: connection refused`,
		},
	} {
		if got := Explain(test.err); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}
