// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
)

const (
	// HashLabel carries, on a ControllerRevision, the digest at the end of its name. It is for users; the name decides.
	HashLabel = "controller.kubernetes.io/hash"

	// CollisionAnnotation carries, on a ControllerRevision, the collision count that went into its name, if not 0.
	CollisionAnnotation = "apps.rollset.dev/collision-count"

	// changeCause is the annotation that kubectl rollout history shows.
	changeCause = "kubernetes.io/change-cause"
)

// content is the decoded data of a revision.
type content struct {
	template *corev1.PodTemplateSpec
	// claims are the names of the claim templates, in order.
	claims []string
	// canonical is the JSON of both.
	canonical []byte
}

// document is the JSON in a ControllerRevision. It is a part of a RollSet, so that users can read it.
type document struct {
	Spec documentSpec `json:"spec"`
}

type documentSpec struct {
	Template             *corev1.PodTemplateSpec `json:"template"`
	VolumeClaimTemplates []claimTemplate         `json:"volumeClaimTemplates,omitempty"`
}

type claimTemplate struct {
	Metadata claimMetadata `json:"metadata"`
}

type claimMetadata struct {
	Name string `json:"name"`
}

// contentOf returns the content of the revision of a set's spec.
func contentOf(set *v1beta1.RollSet) (content, error) {
	c := content{template: set.Spec.Template.DeepCopy()}
	// The API server writes the rest of the metadata, or it has no effect.
	c.template.ObjectMeta = metav1.ObjectMeta{
		Labels:      c.template.Labels,
		Annotations: c.template.Annotations,
		Finalizers:  c.template.Finalizers,
	}
	for i := range set.Spec.VolumeClaimTemplates {
		c.claims = append(c.claims, set.Spec.VolumeClaimTemplates[i].Name)
	}
	slices.Sort(c.claims)
	c.claims = slices.Compact(c.claims)

	d := document{Spec: documentSpec{Template: c.template}}
	for _, name := range c.claims {
		d.Spec.VolumeClaimTemplates = append(d.Spec.VolumeClaimTemplates, claimTemplate{claimMetadata{name}})
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return content{}, err
	}
	c.canonical, err = canonicalize(raw)
	return c, err
}

// equal reports whether a revision means the same: nil and empty lists are equal, as are 1 and 1000m, and a field that is left out
// and its default.
func (c content) equal(r record) bool {
	return slices.Equal(c.claims, r.claims) && defaults.Same(c.template, r.template)
}

// object returns the ControllerRevision of a set that holds the content. Its name ends with the digest of the content and
// the collision count.
func (c content) object(set *v1beta1.RollSet, name string, collisions int32) *appsv1.ControllerRevision {
	object := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: set.Namespace,
			Labels:    maps.Clone(c.template.Labels),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("RollSet")),
			},
		},
		Data: runtime.RawExtension{Raw: c.canonical},
	}
	metav1.SetMetaDataLabel(&object.ObjectMeta, HashLabel, hashOf(name))
	if cause, ok := set.Annotations[changeCause]; ok {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, changeCause, cause)
	}
	if collisions != 0 {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, CollisionAnnotation, strconv.Itoa(int(collisions)))
	}
	return object
}

// hashOf returns the part of a revision's name that is a digest.
func hashOf(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// Decode returns the pod template that a ControllerRevision holds, and the names of its claim templates in order. It fails
// if this package did not write the content, or if the content does not match the name.
func Decode(object *appsv1.ControllerRevision) (template *corev1.PodTemplateSpec, claimNames []string, err error) {
	return decodeWith(object, digest)
}

func decodeWith(object *appsv1.ControllerRevision, digest digestFunc) (*corev1.PodTemplateSpec, []string, error) {
	var collisions int32
	if text, ok := object.Annotations[CollisionAnnotation]; ok {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, nil, fmt.Errorf("annotation %s is no number", CollisionAnnotation)
		}
		collisions = int32(n)
	}
	canonical, err := canonicalize(object.Data.Raw)
	if err != nil {
		return nil, nil, errors.New("data is not JSON")
	}
	if digest(canonical, collisions) != hashOf(object.Name) {
		return nil, nil, errors.New("data is not what the name stands for")
	}
	// Only what the digest covers is decoded. Otherwise a duplicate key in the raw data would be merged.
	var d document
	if err := utiljson.Unmarshal(canonical, &d); err != nil {
		return nil, nil, errors.New("data does not hold a pod template")
	}
	if d.Spec.Template == nil {
		return nil, nil, errors.New("data holds no pod template")
	}
	var claims []string
	for _, claim := range d.Spec.VolumeClaimTemplates {
		claims = append(claims, claim.Metadata.Name)
	}
	return d.Spec.Template, claims, nil
}

// canonicalize returns JSON that depends only on its meaning: keys sorted and unique, without nulls and empty lists, which
// mean the same as an absent field.
func canonicalize(raw []byte) ([]byte, error) {
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return json.Marshal(withoutEmpty(value))
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			child = withoutEmpty(child)
			if list, isList := child.([]any); child == nil || isList && len(list) == 0 {
				delete(value, key)
				continue
			}
			value[key] = child
		}
	case []any:
		for i, child := range value {
			value[i] = withoutEmpty(child)
		}
	}
	return value
}

// digestFunc computes the digest of a content and a collision count.
type digestFunc func(canonical []byte, collisions int32) string

const (
	// alphabet is that of k8s.io/apimachinery/pkg/util/rand, which generateName uses.
	alphabet     = "bcdfghjklmnpqrstvwxz2456789"
	digestLength = 10
)

// digest returns the first 47 bits of a SHA-256. The controllers of Kubernetes use 32-bit FNV-1a for such names. Here the
// name also vouches for the content. A user who may write ControllerRevisions must not be able to find another content for a
// name that pods already carry.
func digest(canonical []byte, collisions int32) string {
	h := sha256.New()
	h.Write(canonical)
	// A JSON object ends where its braces close, so what follows cannot be read as a part of it.
	h.Write(strconv.AppendInt(nil, int64(collisions), 10))
	x := binary.BigEndian.Uint64(h.Sum(nil))
	var text [digestLength]byte
	for i := range text {
		text[i] = alphabet[x%uint64(len(alphabet))]
		x /= uint64(len(alphabet))
	}
	return string(text[:])
}
