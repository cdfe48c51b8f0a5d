// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"rollset.dev/rollset/internal/testing/testbed/assets"
	auditlog "rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// unasked are the rights that the manager needs and that its requests need not show.
var unasked = []string{
	// Admission checks them when an object becomes the blocking owner of another. On the local cluster it does.
	"update apps.rollset.dev/rollsets/finalizers", "update /pods/finalizers",
	// A surplus claim whose pod is gone already. The garbage collector may be faster.
	"delete /persistentvolumeclaims",
	// An informer watches its first list. It asks for one only if the API server goes away meanwhile.
	"list /nodes", "list policy/poddisruptionbudgets",
}

// expectRights checks after all specs that the manager has asked for nothing that its role does not have, and that its role has
// nothing that no spec needs.
func expectRights() {
	GinkgoHelper()
	if cluster.local == nil {
		return
	}
	asked, err := auditlog.Whole(cluster.auditLog).Rights(manager.User)
	Expect(err).NotTo(HaveOccurred())
	granted := grantedRights()
	for right, forbidden := range asked {
		// An API server that has just started forbids for a moment what it has not read of its roles.
		Expect(!forbidden || granted[right]).To(BeTrue(), "the manager may not %s", right)
	}
	if suite, _ := GinkgoConfiguration(); suite.LabelFilter != "" && suite.LabelFilter != short || len(slices.Concat(suite.FocusStrings, suite.FocusFiles, suite.SkipStrings, suite.SkipFiles)) > 0 {
		return // not all specs have run
	}
	maps.DeleteFunc(granted, func(right string, _ bool) bool {
		_, used := asked[right]
		return used || slices.Contains(unasked, right)
	})
	Expect(granted).To(BeEmpty(), "rights in the manager's roles that no spec needs")
}

// grantedRights returns those of the generated roles.
func grantedRights() map[string]bool {
	GinkgoHelper()
	root, err := assets.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	granted := map[string]bool{}
	for _, folder := range []string{"manager", "disruption"} {
		raw, err := os.ReadFile(filepath.Join(root, "config", "rbac", folder, "role.yaml"))
		Expect(err).NotTo(HaveOccurred())
		readRights(raw, granted)
	}
	return granted
}

// readRights adds the rights of a file of roles.
func readRights(raw []byte, granted map[string]bool) {
	GinkgoHelper()
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		role := &rbacv1.ClusterRole{}
		err := documents.Decode(role)
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted[verb+" "+group+"/"+resource] = true
					}
				}
			}
		}
	}
}
