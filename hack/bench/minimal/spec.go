// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package minimal is a client that does with pods what a workload controller has to do, and nothing else: the floor that
// controllers are measured against.
//
// It learns by watches what there is, keeps counts instead of looking at all pods, sends no write that the work does not
// need, writes no status, keeps no history, and trusts that nobody interferes. Sets are ConfigMaps.
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
	// RevisionLabel carries the revision of a pod.
	RevisionLabel = "bench.example.com/revision"
	// Gate is the readiness gate of pods that are updated in place.
	Gate = corev1.PodConditionType("bench.example.com/InPlaceUpdateReady")

	specKey = "spec"
)

// Spec is what a set wants.
type Spec struct {
	Replicas       int                    `json:"replicas"`
	MaxUnavailable int                    `json:"maxUnavailable"`
	Revision       string                 `json:"revision"`
	Template       corev1.PodTemplateSpec `json:"template"`
	// InPlace says that pods are patched, and gated meanwhile if the image changes.
	InPlace bool `json:"inPlace,omitempty"`
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
