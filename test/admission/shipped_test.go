// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShipped reads the CRD that TestMain installed through the tool that users install it with. The steps build on one another,
// in a namespace of their own.
func TestShipped(t *testing.T) {
	// Client-side apply keeps the whole CRD in an annotation, which holds at most 256 KiB. kubectl reads the
	// kustomization, as in "kubectl apply -k config/crd".
	contains(t, must(t, "apply", "-k", crdFolder), "unchanged")
	must(t, "create", "namespace", "shipped")

	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("apply", func(t *testing.T) {
		contains(t, must(t, "apply", "-f", file), "rollset.apps.rollset.dev/web created")
		contains(t, must(t, "apply", "-f", file), "rollset.apps.rollset.dev/web unchanged")
	})
	t.Run("scale", func(t *testing.T) {
		must(t, "scale", "rollset", "web", "--replicas=4")
		contains(t, must(t, "get", "rls", "web", "-o", "jsonpath={.spec.replicas}"), "4")
	})
	t.Run("get", func(t *testing.T) {
		must(t, "patch", "rls", "web", "--subresource=status", "--type=merge", "-p",
			`{"status":{"replicas":3,"readyReplicas":2,"updatedReplicas":1,"updateRevision":"web-abc","labelSelector":"app=web","images":["nginx:1.27"],
			"conditions":[{"type":"Ready","status":"False","reason":"Waiting","message":"all is said","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		columns(t, []string{"get", "rls"}, "NAME DESIRED UPDATED READY AVAILABLE TOTAL STATUS AGE", `web 4 1 2 0? ?3 Waiting \d+s`)
		columns(t, []string{"get", "rls", "-o", "wide"}, "NAME DESIRED UPDATED READY AVAILABLE TOTAL STATUS AGE MESSAGE REVISION IMAGES SELECTOR",
			`web 4 1 2 0? ?3 Waiting \d+s all is said web-abc nginx:1.27 app=web`)
		contains(t, must(t, "get", "all"), "rollset.apps.rollset.dev/web")
	})
	t.Run("selector of scale", func(t *testing.T) {
		contains(t, must(t, "get", "rls", "web", "--subresource=scale", "-o", "jsonpath={.status.selector} {.spec.replicas} {.status.replicas}"), "app=web 4 3")
	})
	t.Run("explain", func(t *testing.T) {
		for field, want := range map[string]string{
			"rollset": "RollSet keeps a number of pods running",
			"rollset.spec.updateStrategy.rollingUpdate.partition":           "partition is how many pods stay at the current revision",
			"rollset.spec.template.spec.containers":                         "List of containers belonging to the pod",
			"rollset.spec.volumeClaimTemplates.metadata.name":               "name of the template, and of the pods' volume",
			"rollset.status.conditions":                                     "conditions are Ready, Available, Progressing",
			"rollset.spec.lifecycle.preDelete.labelsHandler":                "labelsHandler are labels that mark a pod as hooked",
			"rollset.spec.updateStrategy.rollingUpdate.priorityStrategy":    "priorityStrategy selects which pods are updated first",
			"rollset.spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "whenDeleted specifies what happens to all claims",
		} {
			text := strings.Join(strings.Fields(must(t, "explain", field)), " ")
			contains(t, text, want)
		}
	})
}

// must runs a command that must succeed, and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := shared.kubectl(append([]string{"--namespace=shipped"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func contains(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("want %q in:\n%s", want, got)
	}
}

// columns checks the header and the only line of a table, ignoring the space between columns.
func columns(t *testing.T, args []string, header, line string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(must(t, args...)), "\n")
	if len(lines) != 2 {
		t.Fatalf("want a header and a line, got:\n%s", strings.Join(lines, "\n"))
	}
	if got := strings.Join(strings.Fields(lines[0]), " "); got != header {
		t.Errorf("header is %q, want %q", got, header)
	}
	if got := strings.Join(strings.Fields(lines[1]), " "); !regexp.MustCompile("^" + line + "$").MatchString(got) {
		t.Errorf("line is %q, want %q", got, line)
	}
}
