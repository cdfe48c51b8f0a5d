// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
)

// HangingWebhook is an admission webhook that never answers.
type HangingWebhook struct {
	// Config registers the webhook for creates of pods in one namespace.
	Config *admissionv1.ValidatingWebhookConfiguration
	// Waiting is how many requests wait for an answer, and Ended how many the API server has given up.
	Waiting, Ended atomic.Int64

	server *httptest.Server
}

// NewHangingWebhook serves a webhook for a namespace, with a certificate of its own.
func NewHangingWebhook(namespace string) (*HangingWebhook, error) {
	h := &HangingWebhook{}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.Waiting.Add(1)
		<-r.Context().Done()
		h.Waiting.Add(-1)
		h.Ended.Add(1)
	}))
	h.server.StartTLS() // httptest's certificate is for 127.0.0.1
	authority, err := cert.EncodeCertificates(h.server.Certificate())
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("encode the certificate of the webhook: %w", err)
	}
	h.Config = &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hangs-"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hangs.test.rollset.dev", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
			FailurePolicy: new(admissionv1.Fail), TimeoutSeconds: new(int32(30)),
			ClientConfig:      admissionv1.WebhookClientConfig{URL: new(h.server.URL), CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	return h, nil
}

// Close ends the requests that wait.
func (h *HangingWebhook) Close() { h.server.CloseClientConnections() }
