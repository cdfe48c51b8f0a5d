// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// fillVolume sets the defaults of a volume. One without a source is empty.
func fillVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Image != nil {
		orValue(&v.Image.PullPolicy, PullPolicy(v.Image.Reference))
	}
	if v.HostPath != nil {
		orNew(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		fillClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
	fillFiles(v)
	fillDisk(v)
}

func fillClaim(claim *corev1.PersistentVolumeClaimSpec) {
	orNew(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(claim.Resources.Limits)
	roundUp(claim.Resources.Requests)
}

// fillFiles sets the defaults of volumes whose files come from the API.
func fillFiles(v *corev1.Volume) {
	if v.Secret != nil {
		orNew(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		orNew(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		orNew(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		fillItems(v.DownwardAPI.Items)
	}
	if v.Projected == nil {
		return
	}
	orNew(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Projected.Sources {
		source := &v.Projected.Sources[i]
		if source.DownwardAPI != nil {
			fillItems(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			orNew(&source.ServiceAccountToken.ExpirationSeconds, int64(time.Hour/time.Second))
		}
	}
}

func fillItems(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		fillFieldRef(items[i].FieldRef)
	}
}

// fillDisk sets the defaults of disks that are attached to the node.
func fillDisk(v *corev1.Volume) {
	if v.ISCSI != nil {
		orValue(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		orValue(&v.RBD.RBDPool, "rbd")
		orValue(&v.RBD.RadosUser, "admin")
		orValue(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		orNew(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		orNew(&v.AzureDisk.FSType, "ext4")
		orNew(&v.AzureDisk.ReadOnly, false)
		orNew(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		orValue(&v.ScaleIO.StorageMode, "ThinProvisioned")
		orValue(&v.ScaleIO.FSType, "xfs")
	}
}
