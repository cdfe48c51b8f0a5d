// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestExamples applies the examples as their comments say, in namespaces that enforce restricted pods. Each becomes ready,
// its budget counts its pods, and its autoscaler finds it.
func TestExamples(t *testing.T) {
	manifest := kustomize(t, "config/default")
	apply(t, manifest)
	run(t, deployment(t, objects(t, manifest)))
	for _, name := range []string{"postgres", "kafka", "nginx"} {
		example := kustomize(t, "examples/"+name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labels := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
			put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "example-" + name, Labels: labels}})
			ensureNamespace(t, "example-"+name)
			in := "--namespace=example-" + name
			kubectl(t, example, "apply", in, "-f", "-")
			kubectl(t, "", "wait", in, "rollset/"+name, "--for=condition=Ready", "--timeout=2m")
			key := client.ObjectKey{Namespace: "example-" + name, Name: name}
			eventually(t, "a budget that allows a disruption", func() error {
				pdb := &policyv1.PodDisruptionBudget{}
				err := shared.Get(t.Context(), key, pdb)
				if err == nil && (pdb.Status.ExpectedPods != 3 && name != "nginx" || pdb.Status.DisruptionsAllowed == 0) {
					err = fmt.Errorf("the status is %+v", pdb.Status)
				}
				return err
			})
			if name == "nginx" {
				eventually(t, "an autoscaler that scales it", func() error { return scales(t, key) })
			}
		})
	}
}

// scales checks that an autoscaler has found its target and scaled it to its minimum.
func scales(t *testing.T, key client.ObjectKey) error {
	t.Helper()
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := shared.Get(t.Context(), key, hpa); err != nil {
		return err
	}
	for _, c := range hpa.Status.Conditions {
		if c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionTrue && hpa.Status.CurrentReplicas == *hpa.Spec.MinReplicas {
			return nil
		}
	}
	return fmt.Errorf("the status is %+v", hpa.Status)
}

// module is a Go module with CRDs in its files, at a version and with a checksum.
type module struct{ path, version, sum string }

// TestExamplesOfDelivery applies the applications of Argo CD and Flux to an API server that has their CRDs.
func TestExamplesOfDelivery(t *testing.T) {
	argo := module{"github.com/argoproj/argo-cd/v3", "v3.1.0", "h1:2+gPskQKCyPC9DzRSWQ1AvmS3WiIlRR7bKz/FO3DozI="}
	source := module{"github.com/fluxcd/source-controller", "v1.7.0", "h1:/fBgS4CSmT5Jj/fjQDF92y+pC3gst1GJjgNSzY8Ff9I="}
	flux := module{"github.com/fluxcd/kustomize-controller", "v1.7.3", "h1:SzNnGn/4ObAPEHHleM5U7y/AKxKXph3Vj6ZhteeXw8M="}
	for name, file := range map[string]string{
		"applications.argoproj.io":                   filepath.Join(argo.files(t), "manifests", "crds", "application-crd.yaml"),
		"gitrepositories.source.toolkit.fluxcd.io":   filepath.Join(source.files(t), "config", "crd", "bases", "source.toolkit.fluxcd.io_gitrepositories.yaml"),
		"kustomizations.kustomize.toolkit.fluxcd.io": filepath.Join(flux.files(t), "config", "crd", "bases", "kustomize.toolkit.fluxcd.io_kustomizations.yaml"),
	} {
		kubectl(t, "", "apply", "--server-side", "-f", file)
		established(t, name)
	}
	for _, namespace := range []string{"argocd", "flux-system"} {
		if err := client.IgnoreAlreadyExists(shared.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"examples/argo-cd/application.yaml", "examples/flux/shop.yaml"} {
		kubectl(t, "", "apply", "--dry-run=server", "--validate=strict", "-f", file)
	}
}

// files downloads a module, if it is not there, and returns its folder.
func (m module) files(t *testing.T) string {
	t.Helper()
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal([]byte(command(t, "", "go", "-C", t.TempDir(), "mod", "download", "-json", m.path+"@"+m.version)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Sum != m.sum {
		t.Fatalf("%s@%s has the checksum %s, want %s", m.path, m.version, got.Sum, m.sum)
	}
	return got.Dir
}
