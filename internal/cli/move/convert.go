// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/internal/cli/session"
)

// maxName is the length of a RollSet's longest name: its pods' hostnames and revision labels have 11 characters more.
const maxName = validation.DNS1123LabelMaxLength - 11

func newConvert(s *session.Session) *cobra.Command {
	var filenames []string
	var lossy bool
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Turn manifests of StatefulSets, Deployments and CloneSets into RollSets",
		Long: templates.LongDesc(`Turn manifests of StatefulSets, Deployments and CloneSets into RollSets, and print them. Objects of other kinds
			are printed as they are, so that this can be a post-renderer of Helm. Only the autoscalers of what is turned change: a
			HorizontalPodAutoscaler, a VerticalPodAutoscaler or a ScaledObject of KEDA points to the RollSet. No cluster is asked.

			What has no counterpart is an error that names it, and nothing is printed, unless --lossy leaves it out. Another object that
			refers to what is turned is such an error too; --lossy leaves it as it is.`),
		Example: templates.Examples(`
			kubectl rollset convert -f statefulset.yaml >rollset.yaml
			kubectl get deployment web -o yaml | kubectl rollset convert -f -`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(filenames) == 0 {
				return errors.New("which manifest? Give -f FILE, or -f - for standard input")
			}
			return convert(s, filenames, lossy)
		},
	}
	cmd.Flags().StringSliceVarP(&filenames, "filename", "f", nil, "File, URL or directory with manifests; - is standard input")
	cmd.Flags().BoolVar(&lossy, "lossy", false, "Leave out what has no counterpart, with a warning")
	return cmd
}

// convert prints the objects of files, translated. It prints all of them or none.
func convert(s *session.Session, filenames []string, lossy bool) error {
	objects, err := session.ReadFiles(s, filenames)
	if err != nil {
		return err
	}
	c := &conversion{objects: objects}
	c.run()
	if len(c.refused) > 0 {
		return errors.New(strings.Join(c.refused, "; "))
	}
	if err := acceptLoss(s, c.lost, lossy); err != nil {
		return err
	}
	for _, what := range c.left {
		fmt.Fprintln(s.ErrOut, "warning: printed as it is:", what)
	}
	var out bytes.Buffer
	for i, o := range c.objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("write %s: %w", describe(o), err)
		}
		out.Write(text)
	}
	_, err = s.Out.Write(out.Bytes())
	return err
}

// conversion is a list of objects on its way to RollSets.
type conversion struct {
	objects []*unstructured.Unstructured
	// refused lists what no RollSet can have, lost what is left out, and left what looks like a workload and is not translated.
	refused, lost, left []string
}

// run replaces the objects that become RollSets, and points their autoscalers to them.
func (c *conversion) run() {
	var moved []int
	before := slices.Clone(c.objects)
	for i, old := range before {
		kinds := versions(old.GetKind())
		if !slices.Contains(kinds, old.GetAPIVersion()) {
			if kinds != nil {
				c.left = append(c.left, fmt.Sprintf("%s of %s: only %s is converted", describe(old), old.GetAPIVersion(), strings.Join(kinds, " or ")))
			}
			continue
		}
		set, lost := translate(old)
		for _, what := range lost {
			c.lost = append(c.lost, describe(old)+" "+what)
		}
		if name := old.GetName(); name != "" && (len(name) > maxName || len(validation.IsDNS1123Label(name)) > 0) {
			c.refused = append(c.refused, fmt.Sprintf("%s: the name of a RollSet begins its pods' hostnames: it has at most %d characters, all of them lower case letters, digits and '-'", describe(old), maxName))
		}
		c.objects[i], moved = set, append(moved, i)
	}
	for _, i := range moved {
		for _, o := range c.objects {
			c.follow(o, before[i], c.objects[i])
		}
	}
}

// follow points an autoscaler of a workload to the RollSet that it becomes, and notes other references to the workload.
func (c *conversion) follow(o, old, set *unstructured.Unstructured) {
	retarget(o, old, set)
	for _, field := range references(o, old) {
		c.lost = append(c.lost, fmt.Sprintf("%s %s: it refers to %s, which becomes a RollSet", describe(o), field, describe(old)))
	}
}
