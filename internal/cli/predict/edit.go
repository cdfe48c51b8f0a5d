// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/revision"
)

// edit is a change to a set.
type edit struct {
	filenames  []string
	images     []string
	toRevision int64
	replicas   int32
	partition  string
	patch      string
}

func (e *edit) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&e.filenames, "filename", "f", nil, "File that has the RollSet as it will be, as for kubectl apply; - is standard input")
	flags.StringArrayVar(&e.images, "set-image", nil, "CONTAINER=IMAGE, a new image for a container; * stands for all containers")
	flags.Int64Var(&e.toRevision, "to-revision", 0, "Number of the revision whose template the set gets")
	flags.Int32Var(&e.replicas, "replicas", -1, "New number of pods")
	flags.StringVar(&e.partition, "partition", "", "New partition, a number or a percentage")
	flags.StringVar(&e.patch, "patch", "", "Merge patch for the set, or a JSON patch, in JSON or YAML")
}

// creates reports whether the edit may create the set.
func (e *edit) creates() bool { return len(e.filenames) > 0 }

// key returns which set is meant.
func (e *edit) key(s *session.Session, args []string) (client.ObjectKey, error) {
	target := session.Target{}
	if len(args) == 0 {
		target.Filenames = e.filenames
	}
	key, err := target.Key(s, args)
	if err != nil || len(args) == 0 || !e.creates() {
		return key, err
	}
	file, err := e.fromFile(s)
	if err != nil {
		return key, err
	}
	if file.GetName() != key.Name {
		return key, fmt.Errorf("the file has rollset %s, and rollset %s is named; give one of them", file.GetName(), key.Name)
	}
	return key, nil
}

// apply returns the set after the edit, as the API server answers a dry run.
func (e *edit) apply(ctx context.Context, s *session.Session, c client.Client, before *v1alpha1.RollSet, objects []client.Object) (*v1alpha1.RollSet, error) {
	if before == nil {
		return e.create(ctx, s, c)
	}
	after := before.DeepCopy()
	if err := e.change(s, after, objects); err != nil {
		return nil, err
	}
	after.ManagedFields = nil
	if err := c.Update(ctx, after, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("the edit is refused: %w", err)
	}
	return after, nil
}

func (e *edit) create(ctx context.Context, s *session.Session, c client.Client) (*v1alpha1.RollSet, error) {
	file, err := e.fromFile(s)
	if err != nil {
		return nil, err
	}
	set, err := typed(file)
	if err != nil {
		return nil, err
	}
	if set.Namespace == "" {
		if set.Namespace, err = s.Namespace(); err != nil {
			return nil, err
		}
	}
	if err := e.change(s, set, nil); err != nil {
		return nil, err
	}
	if err := c.Create(ctx, set, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("the set is refused: %w", err)
	}
	return set, nil
}

// change makes the edit, the file first.
func (e *edit) change(s *session.Session, set *v1alpha1.RollSet, objects []client.Object) error {
	if e.creates() && set.ResourceVersion != "" {
		if err := e.applyFile(s, set); err != nil {
			return err
		}
	}
	if e.toRevision > 0 {
		if err := toRevision(set, objects, e.toRevision); err != nil {
			return err
		}
	}
	for _, image := range e.images {
		if err := setImage(&set.Spec.Template.Spec, image); err != nil {
			return err
		}
	}
	if e.replicas >= 0 {
		set.Spec.Replicas = &e.replicas
	}
	if e.partition != "" {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.Parse(e.partition))
	}
	if e.patch != "" {
		return patch(set, e.patch)
	}
	return nil
}

// fromFile returns the only RollSet in the files.
func (e *edit) fromFile(s *session.Session) (*unstructured.Unstructured, error) {
	sets, err := rollSets(s, e.filenames)
	if err != nil {
		return nil, err
	}
	if len(sets) != 1 {
		return nil, fmt.Errorf("%s holds %d RollSets; a plan is about one", strings.Join(e.filenames, ", "), len(sets))
	}
	return sets[0], nil
}

func rollSets(s *session.Session, filenames []string) ([]*unstructured.Unstructured, error) {
	objects, err := session.ReadFiles(s, filenames)
	if err != nil {
		return nil, err
	}
	kind := v1alpha1.GroupVersion.WithKind("RollSet").GroupKind()
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().GroupKind() != kind }), nil
}

// typed returns an object as a RollSet. An unknown field is an error.
func typed(u *unstructured.Unstructured) (*v1alpha1.RollSet, error) {
	set := &v1alpha1.RollSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, set, true); err != nil {
		return nil, fmt.Errorf("rollset %s: %w", u.GetName(), err)
	}
	return set, nil
}

// applyFile changes the set as kubectl apply does, by comparing the file applied last, the file, and the set.
func (e *edit) applyFile(s *session.Session, set *v1alpha1.RollSet) error {
	file, err := e.fromFile(s)
	if err != nil {
		return err
	}
	if _, err := typed(file); err != nil {
		return err
	}
	modified, err := json.Marshal(file.Object)
	if err != nil {
		return fmt.Errorf("encode the file: %w", err)
	}
	current, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("encode rollset %s: %w", set.Name, err)
	}
	last := []byte(set.Annotations[corev1.LastAppliedConfigAnnotation])
	if len(last) == 0 {
		last = []byte("{}")
	}
	body, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, modified, current)
	if err != nil {
		return fmt.Errorf("compare the file with rollset %s: %w", set.Name, err)
	}
	return patch(set, string(body))
}

// patch changes the set by a merge patch, or by a JSON patch, which is a list.
func patch(set *v1alpha1.RollSet, text string) error {
	body, err := yaml.ToJSON([]byte(text))
	if err != nil {
		return fmt.Errorf("--patch is neither JSON nor YAML: %w", err)
	}
	current, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("encode rollset %s: %w", set.Name, err)
	}
	var patched []byte
	if strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(body); err == nil {
			patched, err = operations.Apply(current)
		}
	} else {
		patched, err = jsonpatch.MergePatch(current, body)
	}
	if err != nil {
		return fmt.Errorf("apply the patch: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(patched, &u.Object); err != nil {
		return fmt.Errorf("apply the patch: %w", err)
	}
	changed, err := typed(u)
	if err != nil {
		return err
	}
	*set = *changed
	return nil
}

// setImage gives a container, or all, a new image.
func setImage(spec *corev1.PodSpec, text string) error {
	name, image, ok := strings.Cut(text, "=")
	if !ok || name == "" || image == "" {
		return fmt.Errorf("--set-image %s: give CONTAINER=IMAGE", text)
	}
	found := false
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if containers[i].Name == name || name == "*" {
				containers[i].Image, found = image, true
			}
		}
	}
	if !found {
		return fmt.Errorf("--set-image %s: the template has no container %s; it has %s", text, name, strings.Join(containerNames(spec), ", "))
	}
	return nil
}

func containerNames(spec *corev1.PodSpec) []string {
	var names []string
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			names = append(names, containers[i].Name)
		}
	}
	return names
}

// toRevision gives the set the template of one of its revisions.
func toRevision(set *v1alpha1.RollSet, objects []client.Object, number int64) error {
	var known []string
	for _, obj := range objects {
		object, ok := obj.(*appsv1.ControllerRevision)
		if !ok || !metav1.IsControlledBy(object, set) {
			continue
		}
		known = append(known, strconv.FormatInt(object.Revision, 10))
		if object.Revision != number {
			continue
		}
		template, _, err := revision.Decode(object)
		if err != nil {
			return fmt.Errorf("revision %d: %w", number, err)
		}
		set.Spec.Template = *template.DeepCopy()
		return nil
	}
	if len(known) == 0 {
		return errors.New("the set has no revisions yet")
	}
	slices.Sort(known)
	return fmt.Errorf("rollset %s has no revision %d; it has %s", set.Name, number, strings.Join(known, ", "))
}
