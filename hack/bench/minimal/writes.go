// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package minimal

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// both does one job and then another. If the second is retried, the first is not repeated.
func both(first, second job) job {
	done := false
	return func(ctx context.Context) error {
		if !done {
			if err := first(ctx); err != nil {
				return err
			}
			done = true
		}
		return second(ctx)
	}
}

func (s *set) create(name string) job {
	api, object := s.client.api.CoreV1().Pods(s.name.Namespace), s.build(name)
	return func(ctx context.Context) error {
		_, err := api.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
}

// build makes a pod of the template. All pods share the template's spec, which is never changed.
func (s *set) build(name string) *corev1.Pod {
	template := &s.spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: s.name.Name, UID: s.uid, Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: template.Spec,
	}
}

func (s *set) delete(name string) job {
	api := s.client.api.CoreV1().Pods(s.name.Namespace)
	return func(ctx context.Context) error {
		err := api.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
}

// patch gives a pod the labels, annotations and image of the template.
func (s *set) patch(p *pod) job {
	template := &s.spec.Template
	meta := map[string]any{"labels": template.Labels, "annotations": template.Annotations}
	body := map[string]any{"metadata": meta}
	if !s.metadataOnly {
		c := template.Spec.Containers[0]
		body["spec"] = map[string]any{"containers": []any{map[string]any{"name": c.Name, "image": c.Image}}}
	}
	return s.send(p.name, body)
}

func (s *set) setGate(p *pod, to corev1.ConditionStatus) job {
	return s.send(p.name, map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": Gate, "status": to, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}}}}, "status")
}

func (s *set) send(name string, body map[string]any, subresources ...string) job {
	api := s.client.api.CoreV1().Pods(s.name.Namespace)
	return func(ctx context.Context) error {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		_, err = api.Patch(ctx, name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, subresources...)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
}
