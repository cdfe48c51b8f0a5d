// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/cli/session"
)

func newSet(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change an image or the partition",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSetImage(s), newSetPartition(s))
	return cmd
}

func newSetImage(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image (NAME | -f FILE) CONTAINER=IMAGE...",
		Short: "Change images of the template",
		Long: templates.LongDesc(`Change images of the template's containers and init containers. * is all containers, and no init
			containers.`),
		Example: templates.Examples(`
			kubectl rollset set image web app=nginx:1.29
			kubectl rollset set image web app=nginx:1.29 --dry-run=server -o yaml`),
	}
	c := newChange(s, cmd, "image updated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		split := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
		if split < 0 {
			return errors.New("which image? Give CONTAINER=IMAGE")
		}
		images, err := parseImages(args[split:])
		if err != nil {
			return err
		}
		return c.run(cmd.Context(), args[:split], func(_ context.Context, _ client.Client, set set) (string, error) {
			changed, err := setImages(set.raw, images)
			switch {
			case err != nil:
				return "", err
			case !changed:
				return "it has the image already", nil
			}
			return rollsNext(set.RollSet, someRevision, stepsOf(set.RollSet)), nil
		})
	}
	return cmd
}

// parseImages parses CONTAINER=IMAGE.
func parseImages(args []string) (map[string]string, error) {
	images := map[string]string{}
	for _, arg := range args {
		name, image, ok := strings.Cut(arg, "=")
		switch {
		case !ok || name == "" || image == "" || strings.ContainsAny(image, " \t\n"):
			return nil, fmt.Errorf("%q is not CONTAINER=IMAGE", arg)
		case images[name] != "":
			return nil, fmt.Errorf("container %s is given two images: %s and %s", name, images[name], image)
		}
		images[name] = image
	}
	return images, nil
}

// everyContainer stands for the names of all containers.
const everyContainer = "*"

// setImages writes images into a template, and reports whether that changes it. All containers must exist.
func setImages(set *unstructured.Unstructured, images map[string]string) (changed bool, err error) {
	var known []string
	left := map[string]bool{}
	for name := range images {
		left[name] = true
	}
	for _, field := range []string{"initContainers", "containers"} {
		names, changes, err := setImagesIn(set, field, images, left)
		if err != nil {
			return false, err
		}
		known, changed = append(known, names...), changed || changes
	}
	for name := range left {
		return false, fmt.Errorf("there is no container %q; the containers are %s", name, strings.Join(known, ", "))
	}
	return changed, nil
}

// setImagesIn writes images into the containers of a field, removes those that it finds from left, and returns the names of
// the field's containers.
func setImagesIn(set *unstructured.Unstructured, field string, images map[string]string, left map[string]bool) (names []string, changed bool, err error) {
	list, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", field)
	if err != nil || len(list) == 0 {
		return nil, false, err
	}
	for _, item := range list {
		if container, ok := item.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(container, "name")
			names = append(names, name)
			changed = setImage(container, name, field, images, left) || changed
		}
	}
	return names, changed, unstructured.SetNestedSlice(set.Object, list, "spec", "template", "spec", field)
}

// setImage writes an image into a container of a field if one is given for it. It reports whether that changes the
// container.
func setImage(container map[string]any, name, field string, images map[string]string, left map[string]bool) bool {
	image, wanted := images[name]
	if all, ok := images[everyContainer]; ok && field == "containers" {
		if !wanted {
			image, wanted = all, true
		}
		delete(left, everyContainer)
	}
	delete(left, name)
	if !wanted || container["image"] == image {
		return false
	}
	container["image"] = image
	return true
}

func newSetPartition(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "partition (NAME | -f FILE) PARTITION",
		Short: "Change how many pods stay at the current revision",
		Long: templates.LongDesc(`Change how many pods stay at the current revision: a number or a percentage. Lowering it moves pods to the
			update revision, raising it moves pods back.`),
		Example: templates.Examples(`
			kubectl rollset set partition web 3
			kubectl rollset set partition web 90%`),
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { // -1 looks like a flag
		return fmt.Errorf("%w; PARTITION is a number from 0 on, or a percentage", err)
	})
	c := newChange(s, cmd, "partition set")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("which partition? Give a number or a percentage")
		}
		last := len(args) - 1
		value, err := session.ParsePartition(args[last])
		if err != nil {
			return err
		}
		return c.run(cmd.Context(), args[:last], func(_ context.Context, _ client.Client, set set) (string, error) {
			return setPartition(set, value)
		})
	}
	return cmd
}

// setPartition writes a partition into a set.
func setPartition(set set, value intstr.IntOrString) (string, error) {
	rolling := &set.Spec.UpdateStrategy.RollingUpdate
	if rolling.Partition != nil && *rolling.Partition == value {
		return "the partition is " + value.String() + " already", nil
	}
	var raw any = int64(value.IntVal)
	if value.Type == intstr.String {
		raw = value.StrVal
	}
	if err := unstructured.SetNestedField(set.raw.Object, raw, "spec", "updateStrategy", "rollingUpdate", "partition"); err != nil {
		return "", err
	}
	switch s := &set.Status; {
	case rejected(set.RollSet):
		return fmt.Sprintf("revision %s is given up: no pod moves", s.UpdateRevision), nil
	case s.CurrentRevision == s.UpdateRevision:
		return "all pods are at one revision: no pod moves", nil
	}
	after := set.DeepCopy()
	after.Spec.UpdateStrategy.RollingUpdate.Partition = &value
	return rollsNext(after, set.Status.UpdateRevision, stepsOf(after)), nil
}
