// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// ReadBy returns which container or volume of a running pod reads, by the downward API, a label or annotation that
// changes, and which one; empty if none does. A pod may have containers that its template does not have.
func (c Change) ReadBy(pod *corev1.Pod) string { return c.firstReader(&pod.Spec) }

// firstReader finds an environment variable or a volume of a pod that reads, by the downward API, a label or annotation that
// changes. The variable would keep the old value, and a program that reads the file does not expect it to change.
func (c Change) firstReader(spec *corev1.PodSpec) string {
	for _, m := range members(spec) {
		for i := range m.Env {
			source := m.Env[i].ValueFrom
			if source == nil {
				continue
			}
			if field := c.changedField(source.FieldRef); field != "" {
				return fmt.Sprintf("%s: %s.env[%s] reads it", field, m.path(), m.Env[i].Name)
			}
		}
	}
	for i := range spec.Volumes {
		for _, file := range downwardFiles(&spec.Volumes[i]) {
			if field := c.changedField(file.FieldRef); field != "" {
				return fmt.Sprintf("%s: spec.volumes[%s] reads it", field, spec.Volumes[i].Name)
			}
		}
	}
	return ""
}

// downwardFiles returns the files of a volume that hold fields of the pod.
func downwardFiles(volume *corev1.Volume) []corev1.DownwardAPIVolumeFile {
	var files []corev1.DownwardAPIVolumeFile
	if volume.DownwardAPI != nil {
		files = append(files, volume.DownwardAPI.Items...)
	}
	if volume.Projected == nil {
		return files
	}
	for _, source := range volume.Projected.Sources {
		if source.DownwardAPI != nil {
			files = append(files, source.DownwardAPI.Items...)
		}
	}
	return files
}

// changedField returns the label or annotation that the change touches and a reference of the downward API reads: one,
// as in metadata.labels['tier'], or all, as in metadata.labels. It returns "" if there is none.
func (c Change) changedField(ref *corev1.ObjectFieldSelector) string {
	if ref == nil {
		return ""
	}
	field, subscript, one := strings.Cut(ref.FieldPath, "['")
	var keys Keys
	switch field {
	case "metadata.labels":
		keys = c.Labels
	case "metadata.annotations":
		keys = c.Annotations
	default:
		return ""
	}
	key := strings.TrimSuffix(subscript, "']")
	if !one {
		key = keys.first()
	}
	if key == "" {
		return ""
	}
	revision := one && field == "metadata.labels" && key == v1beta1.RevisionLabel
	if revision || keys.changed(key) {
		return field + "[" + key + "]"
	}
	return ""
}
