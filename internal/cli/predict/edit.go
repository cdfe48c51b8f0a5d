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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
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

	// given reports whether a flag was given.
	given func(flag string) bool
	// keeps is the partition, parsed.
	keeps *intstr.IntOrString
	// file is the RollSet in the files, which are read once: standard input and pipes cannot be read again.
	file *unstructured.Unstructured
}

func (e *edit) addFlags(flags *pflag.FlagSet) {
	e.given = flags.Changed
	flags.StringSliceVarP(&e.filenames, "filename", "f", nil, "File, URL or directory with the RollSet as it will be, as for kubectl apply; - is standard input")
	flags.StringArrayVar(&e.images, "set-image", nil, "CONTAINER=IMAGE, a new image for a container; * stands for all containers, and no init containers")
	flags.Int64Var(&e.toRevision, "to-revision", 0, "Number of the revision whose template the set gets, counted from 1")
	flags.Int32Var(&e.replicas, "replicas", 0, "New number of pods")
	flags.StringVar(&e.partition, "partition", "", "New partition, a number or a percentage")
	flags.StringVar(&e.patch, "patch", "", "Merge patch for the set, or a JSON patch, in JSON or YAML")
}

// creates reports whether the edit may create the set.
func (e *edit) creates() bool { return len(e.filenames) > 0 }

// check parses the figures, and refuses those out of range.
func (e *edit) check() error {
	switch {
	case e.given("replicas") && e.replicas < 0:
		return fmt.Errorf("--replicas is %d; it must be 0 or more", e.replicas)
	case e.given("to-revision") && e.toRevision < 1:
		return fmt.Errorf("--to-revision is %d; revisions are counted from 1", e.toRevision)
	case e.given("partition"):
		keeps, err := session.ParsePartition(e.partition)
		if err != nil {
			return fmt.Errorf("--partition: %w", err)
		}
		e.keeps = &keeps
	}
	return nil
}

// key returns which set is meant.
func (e *edit) key(s *session.Session, args []string) (key client.ObjectKey, err error) {
	target := session.Target{}
	if len(args) > 0 || !e.creates() {
		if key, err = target.Key(s, args); err != nil || !e.creates() {
			return key, err
		}
	}
	if err := e.readFile(s); err != nil {
		return key, err
	}
	switch {
	case len(args) > 0 && e.file.GetName() != key.Name:
		return key, fmt.Errorf("the file has rollset %s, and rollset %s is named; give one of them", e.file.GetName(), key.Name)
	case e.file.GetName() == "":
		return key, errors.New("the RollSet in the file has no name")
	}
	return client.ObjectKeyFromObject(e.file), nil
}

// apply returns the set after the edit, as the API server answers a dry run. It has no precondition, so that it conflicts with
// no client that writes the set meanwhile.
func (e *edit) apply(ctx context.Context, c client.Client, before *v1beta1.RollSet, objects []client.Object) (*v1beta1.RollSet, error) {
	if before == nil {
		return e.create(ctx, c)
	}
	after := before.DeepCopy()
	if e.creates() {
		if err := e.applyFile(ctx, c, after); err != nil {
			return nil, err
		}
	}
	if err := e.change(after, objects); err != nil {
		return nil, err
	}
	body, err := difference(before, after)
	if err != nil {
		return nil, err
	}
	answer := before.DeepCopy()
	if string(body) == "{}" {
		return answer, nil // kubectl apply sends nothing either
	}
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, body), client.DryRunAll); err != nil {
		return nil, fmt.Errorf("the edit is refused: %w", err)
	}
	return answer, nil
}

// difference returns what a user changed in a set, as a merge patch.
func difference(before, after *v1beta1.RollSet) ([]byte, error) {
	var texts [2][]byte
	for i, set := range []*v1beta1.RollSet{before, after} {
		text, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"labels": set.Labels, "annotations": set.Annotations}, "spec": set.Spec,
		})
		if err != nil {
			return nil, fmt.Errorf("encode rollset %s: %w", set.Name, err)
		}
		texts[i] = text
	}
	return jsonpatch.CreateMergePatch(texts[0], texts[1])
}

func (e *edit) create(ctx context.Context, c client.Client) (*v1beta1.RollSet, error) {
	set, err := typed(e.file)
	if err != nil {
		return nil, err
	}
	if err := e.change(set, nil); err != nil {
		return nil, err
	}
	if err := c.Create(ctx, set, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("the set is refused: %w", err)
	}
	return set, nil
}

// change makes the edit, apart from the file.
func (e *edit) change(set *v1beta1.RollSet, objects []client.Object) error {
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
	if e.given("replicas") {
		set.Spec.Replicas = &e.replicas
	}
	if e.keeps != nil {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = e.keeps
	}
	if e.patch != "" {
		return patch(set, e.patch)
	}
	return nil
}

// typed returns an object as a RollSet. An unknown field is an error.
func typed(u *unstructured.Unstructured) (*v1beta1.RollSet, error) {
	set := &v1beta1.RollSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, set, true); err != nil {
		return nil, fmt.Errorf("rollset %s: %w", u.GetName(), err)
	}
	return set, nil
}

// patch changes the set by a merge patch, or by a JSON patch, which is a list.
func patch(set *v1beta1.RollSet, text string) error {
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
	give := func(containers []corev1.Container, all bool) {
		for i := range containers {
			if containers[i].Name == name || all {
				containers[i].Image, found = image, true
			}
		}
	}
	give(spec.InitContainers, false)
	give(spec.Containers, name == "*") // as set image has it
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
func toRevision(set *v1beta1.RollSet, objects []client.Object, number int64) error {
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
