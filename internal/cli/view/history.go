// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/revision"
)

// changeCause is the annotation in which users record why they made a change.
const changeCause = "kubernetes.io/change-cause"

func newHistory(s *session.Session) *cobra.Command {
	var target session.Target
	var number int64
	flags := genericclioptions.NewPrintFlags("")
	cmd := &cobra.Command{
		Use:   "history (NAME | -f FILE)",
		Short: "List the revisions of a set, or print the template of one",
		Example: templates.Examples(`
			kubectl rollset history web
			kubectl rollset history web --revision=3`),
		ValidArgsFunction: s.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, revisions, err := setAndRevisions(cmd.Context(), s, &target, args)
			if err != nil {
				return err
			}
			switch {
			case number != 0:
				return printTemplate(s, set, revisions, number)
			case *flags.OutputFormat != "":
				return printRevisions(s, flags, revisions)
			default:
				return listRevisions(s, set, revisions)
			}
		},
	}
	target.AddFlag(cmd)
	cmd.Flags().StringVarP(flags.OutputFormat, "output", "o", "", "Output format: json, yaml or name")
	cmd.Flags().Int64Var(&number, "revision", 0, "Print the template of this revision")
	return cmd
}

func setAndRevisions(ctx context.Context, s *session.Session, target *session.Target, args []string) (
	*v1beta1.RollSet, []*appsv1.ControllerRevision, error,
) {
	key, err := target.Key(s, args)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Client()
	if err != nil {
		return nil, nil, err
	}
	set, err := getSet(ctx, c, key)
	if err != nil {
		return nil, nil, err
	}
	revisions, err := Revisions(ctx, c, set)
	return set, revisions, err
}

// listRevisions prints a line for each revision, oldest first, as kubectl rollout history does.
func listRevisions(s *session.Session, set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision) error {
	w := printers.GetNewTabWriter(s.Out)
	fmt.Fprintln(w, "REVISION\tNAME\tPROVEN\tPODS\tAVAILABLE\tAGE\tIMAGES\tCHANGE-CAUSE")
	for _, r := range revisions {
		shown := "unreadable"
		if t, err := template(r); err == nil {
			shown = images(t)
		}
		n := Counted(set, r.Name)
		fmt.Fprintf(w, "%d%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", r.Revision, inParentheses(role(set, r)), r.Name, proven(r), n.Replicas, n.AvailableReplicas,
			age(s.Clock.Now(), r.CreationTimestamp), shown, cmp.Or(podstate.Printable(r.Annotations[changeCause], textLimit), "<none>"))
	}
	return w.Flush()
}

// Counted returns the pods of a revision as the status counts them.
func Counted(set *v1beta1.RollSet, name string) v1beta1.RevisionStatus {
	for _, r := range set.Status.Revisions {
		if r.Name == name {
			return r
		}
	}
	return v1beta1.RevisionStatus{}
}

// role returns the role of a revision in its set; empty if it has none. One that was never complete is not the current one, even
// if the status of a new set says so.
func role(set *v1beta1.RollSet, r *appsv1.ControllerRevision) string {
	switch current, update := set.Status.CurrentRevision, set.Status.UpdateRevision; {
	case r.Name == update && (r.Name != current || !revision.WasProven(r)):
		return "update"
	case r.Name == current:
		return "current"
	default:
		return ""
	}
}

// proven reports whether a revision is proven, or was given up.
func proven(r *appsv1.ControllerRevision) string {
	_, rejected := r.Annotations[revision.RejectedAnnotation]
	switch {
	case rejected:
		return "given up"
	case revision.WasProven(r):
		return "proven"
	default:
		return "not proven"
	}
}

// inParentheses returns a remark that follows a name; empty if there is nothing to remark.
func inParentheses(words ...string) string {
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// age returns how long ago an object was created, as kubectl formats it.
func age(now time.Time, made metav1.Time) string {
	if made.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(made.Time))
}

func printRevisions(s *session.Session, flags *genericclioptions.PrintFlags, revisions []*appsv1.ControllerRevision) error {
	printer, err := flags.ToPrinter()
	if err != nil {
		return err
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, r := range revisions {
		r.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
		r.ManagedFields = nil
		list.Items = append(list.Items, runtime.RawExtension{Object: r})
	}
	return printer.PrintObj(list, s.Out)
}

func printTemplate(s *session.Session, set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision, number int64) error {
	r, err := Numbered(set, revisions, number)
	if err != nil {
		return err
	}
	text, err := templateYAML(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(s.Out, text)
	return err
}

// templateYAML returns the template of a revision as YAML.
func templateYAML(r *appsv1.ControllerRevision) (string, error) {
	t, err := template(r)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(t)
	return string(text), err
}

func newDiff(s *session.Session) *cobra.Command {
	var target session.Target
	var which string
	cmd := &cobra.Command{
		Use:   "diff (NAME | -f FILE)",
		Short: "Show how the templates of two revisions differ",
		Long: templates.LongDesc(`Show how the templates of two revisions differ. Without --revision they are the current and the update
			revision or, if no rollout is under way, the newest and the one before it.`),
		Example: templates.Examples(`
			kubectl rollset diff web
			kubectl rollset diff web --revision=3..5
			kubectl rollset diff web --revision=3`),
		ValidArgsFunction: s.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, revisions, err := setAndRevisions(cmd.Context(), s, &target, args)
			if err != nil {
				return err
			}
			return printDiff(s, set, revisions, which)
		},
	}
	target.AddFlag(cmd)
	cmd.Flags().StringVar(&which, "revision", "", "Two revisions, such as 3..5, or one that is compared with the newest")
	return cmd
}

func printDiff(s *session.Session, set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision, which string) error {
	from, to, err := between(set, revisions, which)
	if err != nil {
		return err
	}
	before, err := templateYAML(from)
	if err != nil {
		return err
	}
	after, err := templateYAML(to)
	if err != nil {
		return err
	}
	label := func(r *appsv1.ControllerRevision) string { return fmt.Sprintf("revision %d (%s)", r.Revision, r.Name) }
	_, err = fmt.Fprint(s.Out, udiff.Unified(label(from), label(to), before, after))
	return err
}

// between returns the two revisions to compare.
func between(set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision, which string) (from, to *appsv1.ControllerRevision, err error) {
	if len(revisions) == 0 {
		return nil, nil, fmt.Errorf("rollset %s has no revisions yet", set.Name)
	}
	to = revisions[len(revisions)-1]
	for _, r := range revisions {
		if r.Name == set.Status.UpdateRevision {
			to = r
		}
	}
	if which == "" {
		from, err = previous(set, revisions)
		return from, to, err
	}
	first, second, ranged := strings.Cut(which, "..")
	if from, err = numberedText(set, revisions, first); err != nil || !ranged {
		return from, to, err
	}
	to, err = numberedText(set, revisions, second)
	return from, to, err
}

func numberedText(set *v1beta1.RollSet, revisions []*appsv1.ControllerRevision, text string) (*appsv1.ControllerRevision, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w, not %q", errWhichRevision, text)
	}
	return Numbered(set, revisions, number)
}
