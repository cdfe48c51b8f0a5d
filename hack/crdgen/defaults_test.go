// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"rollset.dev/rollset/hack/crdgen/schema"
)

// TestNoDefaultIsNewInTemplates compares the defaults inside the templates of pods and claims with those that stored sets have.
func TestNoDefaultIsNewInTemplates(t *testing.T) {
	_, _, root := read(t)
	var found []string
	schema.Walk(root, func(path string, s *apiextensionsv1.JSONSchemaProps) {
		for _, template := range []string{"spec.template", "spec.volumeClaimTemplates"} {
			if s.Default != nil && (path == template || strings.HasPrefix(path, template+".") || strings.HasPrefix(path, template+"[")) {
				found = append(found, path+": "+string(s.Default.Raw))
			}
		}
	})
	slices.Sort(found)
	if diff := cmp.Diff(templateDefaults(), found); diff != "" {
		t.Errorf("a default inside a template is new, gone or another (-want +got):\n%s\n"+
			"The API server shows a new default in the template of every set as soon as it has the new CRD. If internal/model/defaults "+
			"does not know it, and a set is edited before its manager has seen it, the manager takes both for the edit and restarts "+
			"all pods: see docs/adr/0051-no-change.md. Let hack/crdgen take the default out of the CRD, unless it is "+
			"below a field that is new itself.", diff)
	}
}

// templateDefaults returns the defaults that the CRD may have inside templates.
func templateDefaults() []string {
	return []string{
		`spec.template.spec.containers[].envFrom[].configMapRef.name: ""`,
		`spec.template.spec.containers[].envFrom[].secretRef.name: ""`,
		`spec.template.spec.containers[].env[].valueFrom.configMapKeyRef.name: ""`,
		`spec.template.spec.containers[].env[].valueFrom.fileKeyRef.optional: false`,
		`spec.template.spec.containers[].env[].valueFrom.secretKeyRef.name: ""`,
		`spec.template.spec.containers[].livenessProbe.grpc.service: ""`,
		`spec.template.spec.containers[].ports[].protocol: "TCP"`,
		`spec.template.spec.containers[].readinessProbe.grpc.service: ""`,
		`spec.template.spec.containers[].startupProbe.grpc.service: ""`,
		`spec.template.spec.imagePullSecrets[].name: ""`,
		`spec.template.spec.initContainers[].envFrom[].configMapRef.name: ""`,
		`spec.template.spec.initContainers[].envFrom[].secretRef.name: ""`,
		`spec.template.spec.initContainers[].env[].valueFrom.configMapKeyRef.name: ""`,
		`spec.template.spec.initContainers[].env[].valueFrom.fileKeyRef.optional: false`,
		`spec.template.spec.initContainers[].env[].valueFrom.secretKeyRef.name: ""`,
		`spec.template.spec.initContainers[].livenessProbe.grpc.service: ""`,
		`spec.template.spec.initContainers[].ports[].protocol: "TCP"`,
		`spec.template.spec.initContainers[].readinessProbe.grpc.service: ""`,
		`spec.template.spec.initContainers[].startupProbe.grpc.service: ""`,
		`spec.template.spec.volumes[].azureDisk.fsType: "ext4"`,
		`spec.template.spec.volumes[].azureDisk.readOnly: false`,
		`spec.template.spec.volumes[].cephfs.secretRef.name: ""`,
		`spec.template.spec.volumes[].cinder.secretRef.name: ""`,
		`spec.template.spec.volumes[].configMap.name: ""`,
		`spec.template.spec.volumes[].csi.nodePublishSecretRef.name: ""`,
		`spec.template.spec.volumes[].flexVolume.secretRef.name: ""`,
		`spec.template.spec.volumes[].iscsi.iscsiInterface: "default"`,
		`spec.template.spec.volumes[].iscsi.secretRef.name: ""`,
		`spec.template.spec.volumes[].projected.sources[].configMap.name: ""`,
		`spec.template.spec.volumes[].projected.sources[].secret.name: ""`,
		`spec.template.spec.volumes[].rbd.keyring: "/etc/ceph/keyring"`,
		`spec.template.spec.volumes[].rbd.pool: "rbd"`,
		`spec.template.spec.volumes[].rbd.secretRef.name: ""`,
		`spec.template.spec.volumes[].rbd.user: "admin"`,
		`spec.template.spec.volumes[].scaleIO.fsType: "xfs"`,
		`spec.template.spec.volumes[].scaleIO.secretRef.name: ""`,
		`spec.template.spec.volumes[].scaleIO.storageMode: "ThinProvisioned"`,
		`spec.template.spec.volumes[].storageos.secretRef.name: ""`,
	}
}
