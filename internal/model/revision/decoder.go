// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Decoder decodes each version of a revision once, and not at every look. The zero Decoder is ready to use.
type Decoder struct {
	known map[types.UID]decoded
}

// decoded is one version of a revision, decoded.
type decoded struct {
	resourceVersion string
	template        *corev1.PodTemplateSpec
	claims          []string
	// keeps is true if the claim templates of the revision can be read.
	keeps bool
	err   error
}

// Decode does the same as [Decode], once for each version.
func (d *Decoder) Decode(object *appsv1.ControllerRevision) (template *corev1.PodTemplateSpec, claimNames []string, err error) {
	known := d.decode(object)
	return known.template, known.claims, known.err
}

// KeepsClaims reports whether all claim templates of a revision can be read from its ControllerRevision.
func (d *Decoder) KeepsClaims(object *appsv1.ControllerRevision) bool { return d.decode(object).keeps }

// decode decodes a revision, unless this version of it was decoded before.
func (d *Decoder) decode(object *appsv1.ControllerRevision) decoded {
	known, ok := d.known[object.UID]
	if ok && known.resourceVersion == object.ResourceVersion {
		return known
	}
	known = decoded{resourceVersion: object.ResourceVersion}
	known.template, known.claims, known.err = Decode(object)
	known.keeps = keeps(object, known.claims)
	if d.known == nil {
		d.known = map[types.UID]decoded{}
	}
	d.known[object.UID] = known
	return known
}

// Keep forgets all revisions but those that exist.
func (d *Decoder) Keep(existing []*appsv1.ControllerRevision) {
	uids := sets.New[types.UID]()
	for _, object := range existing {
		uids.Insert(object.UID)
	}
	maps.DeleteFunc(d.known, func(uid types.UID, _ decoded) bool { return !uids.Has(uid) })
}
