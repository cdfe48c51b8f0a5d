// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package minimal is a client that manages pods as a workload controller must, and does nothing else. It is the lower bound
// to compare controllers with.
//
// It learns from watches what exists, keeps counts instead of reading all pods, and sends only the writes that the work
// needs. It writes no status, keeps no history, and assumes that no other client interferes. Sets are ConfigMaps.
package minimal

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// SetLabel is on every ConfigMap that is a set, and on its pods. Its value is the set's name.
	SetLabel = "bench.example.com/set"
	// RevisionLabel holds the revision of a pod.
	RevisionLabel = "bench.example.com/revision"
	// Gate is the readiness gate of pods that are updated in place.
	Gate = corev1.PodConditionType("bench.example.com/InPlaceUpdateReady")

	specKey = "spec"
)

// Spec is the desired state of a set.
type Spec struct {
	Replicas       int                    `json:"replicas"`
	MaxUnavailable int                    `json:"maxUnavailable"`
	Revision       string                 `json:"revision"`
	Template       corev1.PodTemplateSpec `json:"template"`
	// InPlace is true if pods are patched. They are gated meanwhile if the image changes.
	InPlace bool `json:"inPlace,omitempty"`
	// Waits is true if a pod whose gate is closed is patched only once its node has reported that it is not ready.
	Waits bool `json:"waits,omitempty"`
}

// ConfigMap returns the object of a set.
func ConfigMap(name, namespace string, spec *Spec) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode set %s: %w", name, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{SetLabel: name}},
		Data:       map[string]string{specKey: string(text)},
	}, nil
}

func decode(object *corev1.ConfigMap) (*Spec, error) {
	spec := &Spec{}
	if err := json.Unmarshal([]byte(object.Data[specKey]), spec); err != nil {
		return nil, fmt.Errorf("decode set %s: %w", object.Name, err)
	}
	return spec, nil
}
