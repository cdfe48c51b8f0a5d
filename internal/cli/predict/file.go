// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

// readFile reads the only RollSet in the files. As kubectl apply does, it gives it the namespace of the command if it has none.
func (e *edit) readFile(s *session.Session) error {
	sets, err := rollSets(s, e.filenames)
	if err != nil {
		return err
	}
	if len(sets) != 1 {
		return fmt.Errorf("%s holds %d RollSets; a plan is about one", strings.Join(e.filenames, ", "), len(sets))
	}
	e.file = sets[0]
	namespace, given, err := s.Flags().ToRawKubeConfigLoader().Namespace()
	switch {
	case err != nil:
		return fmt.Errorf("find the namespace: %w", err)
	case e.file.GetNamespace() == "":
		e.file.SetNamespace(namespace)
	case given && e.file.GetNamespace() != namespace:
		return fmt.Errorf("the file has namespace %s, and namespace %s is given; give one of them", e.file.GetNamespace(), namespace)
	}
	_, err = typed(e.file)
	return err
}

// rollSets returns the RollSets in files.
func rollSets(s *session.Session, filenames []string) (sets []*unstructured.Unstructured, err error) {
	kind := v1beta1.GroupVersion.WithKind("RollSet").GroupKind()
	for _, name := range filenames {
		objects, err := session.ReadFiles(s, []string{name})
		if err != nil {
			return nil, err
		}
		others := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().GroupKind() == kind })
		if len(others) == len(objects) {
			return nil, noRollSet(name, others)
		}
		for _, o := range objects {
			if o.GroupVersionKind().GroupKind() == kind {
				o.SetAPIVersion(v1beta1.GroupVersion.String()) // all versions have the same fields
				sets = append(sets, o)
			}
		}
	}
	return sets, nil
}

// noRollSet returns the error about a file with other objects.
func noRollSet(name string, others []*unstructured.Unstructured) error {
	if len(others) == 0 {
		return fmt.Errorf("%s holds nothing", name)
	}
	return fmt.Errorf("%s holds no RollSet, but %s %s (%s); kubectl rollset convert makes a RollSet of a workload",
		name, others[0].GetKind(), others[0].GetName(), others[0].GetAPIVersion())
}

// applyFile changes the set as kubectl apply does: by comparing the file applied last, the file, and the set. A set that was
// applied on the server is applied there again, in the name of the one who applied its template.
func (e *edit) applyFile(ctx context.Context, c client.Client, set *v1beta1.RollSet) error {
	last := set.Annotations[corev1.LastAppliedConfigAnnotation]
	if manager := appliedBy(set); last == "" && manager != "" {
		answer := e.file.DeepCopy()
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), client.FieldOwner(manager), client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return fmt.Errorf("the file is refused: %w", err)
		}
		applied := &v1beta1.RollSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, applied); err != nil {
			return fmt.Errorf("decode rollset %s: %w", set.Name, err)
		}
		*set = *applied
		return nil
	}
	modified, err := json.Marshal(e.file.Object)
	if err != nil {
		return fmt.Errorf("encode the file: %w", err)
	}
	current, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("encode rollset %s: %w", set.Name, err)
	}
	body, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(cmp.Or(last, "{}")), modified, current)
	if err != nil {
		return fmt.Errorf("compare the file with rollset %s: %w", set.Name, err)
	}
	return patch(set, string(body))
}

// appliedBy returns who applied the template of a set on the server; empty if no client did.
func appliedBy(set *v1beta1.RollSet) string {
	for _, entry := range set.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil &&
			strings.Contains(entry.FieldsV1.GetRawString(), `"f:template"`) {
			return entry.Manager
		}
	}
	return ""
}
