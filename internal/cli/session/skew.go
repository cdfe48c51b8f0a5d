// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerNamespace is the namespace that the manifests give to the manager.
const managerNamespace = "rollset-system"

// Skew is the difference between the plugin's version and the manager's.
type Skew struct {
	// Manager is the manager's version, or why it is unknown.
	Manager string
	// Warning says what may fail because the versions differ; empty if they do not, or if that is unknown.
	Warning string
}

// Skew compares the plugin's version with the manager's, the tag of its image.
func (s *Session) Skew(ctx context.Context, own string) Skew {
	c, err := s.Client()
	if err != nil {
		return Skew{Manager: "unknown: " + Explain(err)}
	}
	list := &appsv1.DeploymentList{}
	manager := client.MatchingLabels{"app.kubernetes.io/name": "rollset", "control-plane": "controller-manager"}
	if err := c.List(ctx, list, client.InNamespace(managerNamespace), manager); err != nil {
		return Skew{Manager: "unknown: " + Explain(err)}
	}
	if len(list.Items) == 0 || len(list.Items[0].Spec.Template.Spec.Containers) == 0 {
		return Skew{Manager: fmt.Sprintf("unknown: namespace %s has no Deployment of it", managerNamespace)}
	}
	image := list.Items[0].Spec.Template.Spec.Containers[0].Image
	tag := tagOf(image)
	switch {
	case tag == "":
		return Skew{Manager: "unknown: its image has no tag: " + image}
	case tag != own:
		return Skew{Manager: tag, Warning: fmt.Sprintf(
			"the plugin is %s and the manager %s: what the plugin predicts and explains may differ from what the manager does", own, tag)}
	default:
		return Skew{Manager: tag}
	}
}

// tagOf returns the tag of an image's name; empty if it has none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	if colon := strings.LastIndex(image, ":"); colon > slash {
		return image[colon+1:]
	}
	return ""
}
