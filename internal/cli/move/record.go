// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// recordKey is the key of a record in its ConfigMap.
const recordKey = "record.json"

// record describes the object that a move deletes, to resume after it was stopped and to go back. It is
// kept in a ConfigMap beside the objects.
type record struct {
	// Old is the workload of the other kind, as a manifest, and UID its UID.
	Old *unstructured.Unstructured `json:"old"`
	UID types.UID                  `json:"uid"`
	// Generation is the generation of the object to be deleted, when it was recorded.
	Generation int64 `json:"generation"`
	// Set is the RollSet that replaces it.
	Set *unstructured.Unstructured `json:"set"`
	// ReplicaSets holds the ReplicaSets of a Deployment, by name.
	ReplicaSets map[string]types.UID `json:"replicaSets,omitempty"`
	// Pods are the pods that keep running, by name.
	Pods map[string]types.UID `json:"pods"`
	// Revision is the revision of the pods of a RollSet that is moved back.
	Revision string `json:"revision,omitempty"`
	// Back is true for a move back to the old kind. Then UID is that of the RollSet.
	Back bool `json:"back,omitempty"`
}

// recordName returns the name of the ConfigMap for a set.
func recordName(set string) string { return set + "-rollset-adoption" }

// load reads the record of a set; nil if there is none.
func load(ctx context.Context, c client.Reader, namespace, set string) (*record, error) {
	object := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: recordName(set)}, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	r := &record{}
	if err := json.Unmarshal([]byte(object.Data[recordKey]), r); err != nil || r.Old == nil || r.Set == nil {
		return nil, fmt.Errorf("configmap %s is not what this plugin wrote; look at it, and delete it to begin anew", object.Name)
	}
	return r, nil
}

// save writes the record of a set. While the set exists, it owns the record.
func (r *record) save(ctx context.Context, c client.Client, namespace string, owner *v1beta1.RollSet) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	object := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: recordName(r.Set.GetName())}
	getErr := c.Get(ctx, key, object)
	if client.IgnoreNotFound(getErr) != nil {
		return getErr
	}
	object.Name, object.Namespace, object.Data = key.Name, key.Namespace, map[string]string{recordKey: string(text)}
	object.OwnerReferences = nil
	if owner != nil {
		object.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "RollSet", Name: owner.Name, UID: owner.UID,
		}}
	}
	if getErr != nil {
		return c.Create(ctx, object)
	}
	return c.Update(ctx, object)
}

// forget deletes the record of a set.
func forget(ctx context.Context, c client.Client, namespace, set string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: recordName(set)}}
	return client.IgnoreNotFound(c.Delete(ctx, object))
}
