// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/hack/crdgen/schema"
	"rollset.dev/rollset/internal/testing/testbed/assets"
	"rollset.dev/rollset/internal/testing/testbed/nodes"
)

// updateFlag rewrites the column of the cluster's version.
var updateFlag = flag.Bool("update", false, "write what the cluster's version has into docs/kubernetes.md")

// versionsPage is the page with the table of what versions have.
const versionsPage = "docs/kubernetes.md"

// ability is something that RollSet uses where a version of Kubernetes has it.
type ability struct {
	// name is the row of the table.
	name string
	// has asks the cluster, by doing it.
	has func(ctx context.Context, f *fixture) bool
}

// abilities are the rows of the table.
func abilities() []ability {
	return []ability{
		{"resize of a running container", func(ctx context.Context, f *fixture) bool {
			return f.resizes(ctx, cpu("containers", "main", "20m"))
		}},
		{"resize that lowers a memory limit", func(ctx context.Context, f *fixture) bool {
			return f.resizes(ctx, `{"spec":{"containers":[{"name":"main","resources":{"limits":{"memory":"32Mi"}}}]}}`)
		}},
		{"resize of a sidecar", func(ctx context.Context, f *fixture) bool {
			return f.resizes(ctx, cpu("initContainers", "sidecar", "20m"))
		}},
		{"refusal of a resize that is larger than the node", func(ctx context.Context, f *fixture) bool {
			return !f.resizes(ctx, cpu("containers", "main", "100k"))
		}},
		{"generation of pods", func(ctx context.Context, f *fixture) bool { return f.probe(ctx).Generation > 0 }},
		{"zone of the node as a label of its pods", func(ctx context.Context, f *fixture) bool {
			return f.probe(ctx).Labels[corev1.LabelTopologyZone] != ""
		}},
		{"lowering a request of storage that was not met yet", takesGrowthBack},
		{"VolumeAttributesClass", func(context.Context, *fixture) bool {
			return served("storage.k8s.io/v1", "volumeattributesclasses")
		}},
		{"maxUnavailable of a StatefulSet", keepsMaxUnavailable},
	}
}

var _ = Describe("A version of Kubernetes", core, func() {
	f := newFixture()

	BeforeEach(onLocalCluster) // another cluster may have other feature gates

	It("has what docs/kubernetes.md says", func(ctx SpecContext) {
		page, err := loadTable(versionsPage)
		Expect(err).NotTo(HaveOccurred())
		client, err := discovery.NewDiscoveryClientForConfig(cluster.config)
		Expect(err).NotTo(HaveOccurred())
		info, err := client.ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		version := info.Major + "." + info.Minor
		found := map[string]string{}
		for _, a := range abilities() {
			found[a.name] = "no"
			if a.has(ctx, f) {
				found[a.name] = "yes"
			}
		}
		found["fields of pod templates that it does not know"] = unknownFields(ctx)
		if *updateFlag {
			Expect(page.write(version, found)).To(Succeed())
			return
		}
		for row, answer := range found {
			Expect(page.cell(row, version)).To(Equal(answer), "%s of %s on %s; with -update, the page is rewritten", row, version, versionsPage)
		}
	})
})

// cpu returns a patch that gives a container a request of cpu.
func cpu(list, name, request string) string {
	return fmt.Sprintf(`{"spec":{%q:[{"name":%q,"resources":{"requests":{"cpu":%q}}}]}}`, list, name, request)
}

// probe returns a pod with a sidecar that runs on a node. It is made when it is asked for first.
func (f *fixture) probe(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := f.pod("probe")
	if pod == nil {
		resources := corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		}
		f.createObject(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(1)),
				Containers:                    []corev1.Container{{Name: "main", Image: cluster.image(), Resources: resources}},
				InitContainers: []corev1.Container{{
					Name: "sidecar", Image: cluster.image(), Resources: resources, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				}},
			},
		})
	}
	f.await(ctx, "the pod probe to run", func() error {
		if pod = f.pod("probe"); pod == nil || pod.Status.Phase != corev1.PodRunning {
			return errors.New("it does not run yet")
		}
		return nil
	})
	return pod
}

// resizes reports whether the API server accepts a patch of a running pod's resources.
func (f *fixture) resizes(ctx context.Context, patch string) bool {
	GinkgoHelper()
	return cluster.client.SubResource("resize").Patch(ctx, f.probe(ctx).DeepCopy(),
		client.RawPatch("application/strategic-merge-patch+json", []byte(patch)), &client.SubResourcePatchOptions{
			PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}},
		}) == nil
}

// takesGrowthBack reports whether a claim may ask for less again than it asked for, as long as it has no more.
func takesGrowthBack(ctx context.Context, f *fixture) bool {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(nodes.FullClaimClass),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	f.createObject(ctx, claim)
	f.awaitClaims(ctx, "the claim probe to be bound", func([]*corev1.PersistentVolumeClaim) bool { return has(f.claimNamed("probe"), "1Gi") })
	request := func(size string) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			now := &corev1.PersistentVolumeClaim{}
			if err := cluster.client.Get(ctx, client.ObjectKeyFromObject(claim), now); err != nil {
				return err
			}
			now.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
			return cluster.client.Update(ctx, now)
		})
	}
	Expect(request("3Gi")).To(Succeed())
	return request("2Gi") == nil
}

// keepsMaxUnavailable reports whether the API server stores the field of a StatefulSet.
func keepsMaxUnavailable(ctx context.Context, f *fixture) bool {
	GinkgoHelper()
	labels := map[string]string{"app": "probe"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: cluster.image()}}},
			},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: new(intstr.FromInt32(2))},
			},
		},
	}
	Expect(cluster.client.Create(ctx, set, client.DryRunAll)).To(Succeed())
	return set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable != nil
}

// unknownFields returns the last two steps of the fields that a template may have in a RollSet, and that the API server does not
// know in a pod template. What is below such a field is left out.
func unknownFields(ctx context.Context) string {
	GinkgoHelper()
	known, err := fieldsOf(ctx, "io.k8s.api.core.v1.PodTemplateSpec")
	Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(cluster.client.Get(ctx, client.ObjectKey{Name: "rollsets.apps.rollset.dev"}, crd)).To(Succeed())
	object, err := schema.Of(crd)
	Expect(err).NotTo(HaveOccurred())
	var unknown, names []string
	schema.Walk(object, func(path string, _ *apiextensionsv1.JSONSchemaProps) {
		field, inTemplate := strings.CutPrefix(path, "spec.template.")
		isBelow := func(parent string) bool { return strings.HasPrefix(field, parent) }
		if !inTemplate || known[field] || slices.ContainsFunc(unknown, isBelow) {
			return
		}
		unknown = append(unknown, field)
		steps := strings.Split(field, ".")
		names = append(names, "`"+strings.Join(steps[len(steps)-2:], ".")+"`")
	})
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// fieldsOf returns the paths of all fields of a definition in the API server's OpenAPI document of the core group.
func fieldsOf(ctx context.Context, definition string) (map[string]bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/openapi/v3/api/v1").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var document struct {
		Components struct {
			Schemas map[string]*openAPI `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("decode the OpenAPI document: %w", err)
	}
	fields := map[string]bool{}
	document.Components.Schemas[definition].walk("", document.Components.Schemas, fields)
	return fields, nil
}

// openAPI has the fields of a schema that are read.
type openAPI struct {
	Ref                  string              `json:"$ref"`
	AllOf                []*openAPI          `json:"allOf"`
	Properties           map[string]*openAPI `json:"properties"`
	Items                *openAPI            `json:"items"`
	AdditionalProperties *openAPI            `json:"additionalProperties"`
}

// walk collects the paths of a schema's fields, in the form of package schema.
func (s *openAPI) walk(path string, all map[string]*openAPI, fields map[string]bool) {
	if s == nil {
		return
	}
	fields[path] = true
	all[strings.TrimPrefix(s.Ref, "#/components/schemas/")].walk(path, all, fields)
	for _, part := range s.AllOf {
		part.walk(path, all, fields)
	}
	for name, property := range s.Properties {
		property.walk(strings.TrimPrefix(path+"."+name, "."), all, fields)
	}
	s.Items.walk(path+"[]", all, fields)
	s.AdditionalProperties.walk(path+"{}", all, fields)
}

// served reports whether the API server serves a resource.
func served(groupVersion, name string) bool {
	GinkgoHelper()
	client, err := discovery.NewDiscoveryClientForConfig(cluster.config)
	Expect(err).NotTo(HaveOccurred())
	list, err := client.ServerResourcesForGroupVersion(groupVersion)
	Expect(err).NotTo(HaveOccurred())
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
}

// table is a table of a page, with a column for each version.
type table struct {
	path, text string
	header     []string
	rows       map[string][]string
}

// loadTable reads the first table of a page whose columns are versions.
func loadTable(page string) (*table, error) {
	root, err := assets.ModuleRoot()
	if err != nil {
		return nil, err
	}
	t := &table{path: filepath.Join(root, page), rows: map[string][]string{}}
	raw, err := os.ReadFile(t.path)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	t.text = string(raw)
	for line := range strings.Lines(t.text) {
		switch cells := cellsOf(line); {
		case len(cells) > 1 && strings.HasPrefix(cells[1], "1.") && t.header == nil:
			t.header = cells
		case len(cells) > 0 && t.header != nil && len(cells) == len(t.header):
			t.rows[cells[0]] = cells
		}
	}
	if t.header == nil {
		return nil, fmt.Errorf("%s has no table with columns of versions", page)
	}
	return t, nil
}

func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// cell returns the answer of a row and a version.
func (t *table) cell(row, version string) string {
	i := slices.Index(t.header, version)
	if cells := t.rows[row]; i > 0 && cells != nil {
		return cells[i]
	}
	return "nothing"
}

// write writes the answers of a version. The rows and the column must be there.
func (t *table) write(version string, found map[string]string) error {
	i := slices.Index(t.header, version)
	if i < 0 {
		return fmt.Errorf("%s has no column %s", t.path, version)
	}
	for row, answer := range found {
		cells := t.rows[row]
		if cells == nil {
			return fmt.Errorf("%s has no row %q", t.path, row)
		}
		before := strings.Join(cells, " | ")
		cells[i] = answer
		t.text = strings.Replace(t.text, "| "+before+" |", "| "+strings.Join(cells, " | ")+" |", 1)
	}
	return os.WriteFile(t.path, []byte(t.text), 0o600)
}
