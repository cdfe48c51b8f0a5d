// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/internal/cli/session"
)

func newConvert(s *session.Session) *cobra.Command {
	var filenames []string
	var lossy bool
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Turn manifests of StatefulSets, Deployments and CloneSets into RollSets",
		Long: templates.LongDesc(`Turn manifests of StatefulSets, Deployments and CloneSets into RollSets, and print them. Objects of other kinds
			are printed as they are, but for HorizontalPodAutoscalers of what is turned, so that this can be a post-renderer of Helm. No
			cluster is asked.

			What has no counterpart is an error that names it, and nothing is printed, unless --lossy leaves it out.`),
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
	translated, lost := translateAll(objects)
	if len(translated) == 0 {
		return fmt.Errorf("%s holds no StatefulSet, Deployment or CloneSet", strings.Join(filenames, ", "))
	}
	if len(lost) > 0 && !lossy {
		return fmt.Errorf("no counterpart for %s; --lossy leaves it out", strings.Join(lost, "; "))
	}
	for _, what := range lost {
		fmt.Fprintln(s.ErrOut, "warning: left out:", what)
	}
	var out bytes.Buffer
	for i, o := range objects {
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

// translateAll replaces the objects that become RollSets, and points their autoscalers to them. It returns which objects it
// replaced, and what was lost.
func translateAll(objects []*unstructured.Unstructured) (translated []*unstructured.Unstructured, lost []string) {
	for i, old := range objects {
		if !translates(old) {
			continue
		}
		set, without := translate(old)
		for _, what := range without {
			lost = append(lost, describe(old)+" "+what)
		}
		objects[i] = set
		translated = append(translated, set)
		for _, other := range objects {
			retarget(other, old, set)
		}
	}
	return translated, lost
}
