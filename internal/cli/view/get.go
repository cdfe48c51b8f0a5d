// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/podstate"
)

// outputWide requests the columns that do not fit on every screen.
const outputWide = "wide"

// get is the command get.
type get struct {
	session *session.Session
	target  session.Target
	output  string
	watch   bool
	noColor bool
	all     bool
}

func newGet(s *session.Session) *cobra.Command {
	g := &get{session: s}
	cmd := &cobra.Command{
		Use:   "get [NAME | -f FILE]",
		Short: "Show a set with its revisions, pods and claims, or list all sets",
		Long: templates.LongDesc(`Show a set with its revisions, pods and claims, and what it waits for; without a name, list all sets.

			✔ available, ● ready but not for long enough, ↻ updating in place, ○ not ready, ⊘ terminating, ✖ ended. Of the steps of
			a rollout: ✔ done, ▶ at work, ○ to come, ✖ failed.

			With -w a terminal is redrawn as things happen; elsewhere each change is a line.`),
		Example: templates.Examples(`
			kubectl rollset get
			kubectl rollset get web
			kubectl rollset get web -w`),
		ValidArgsFunction: s.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return g.run(cmd.Context(), args) },
	}
	g.target.AddFlag(cmd)
	cmd.Flags().StringVarP(&g.output, "output", "o", "", "Output format: json, yaml, name or wide; the first three print the sets themselves")
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "Show changes as they happen")
	cmd.Flags().BoolVar(&g.noColor, "no-color", false, "Print without colors; so does the environment variable NO_COLOR")
	cmd.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "List the sets of all namespaces")
	return cmd
}

func (g *get) run(ctx context.Context, args []string) error {
	c, err := g.session.Client()
	if err != nil {
		return err
	}
	if len(args) == 0 && len(g.target.Filenames) == 0 {
		if g.watch {
			return errors.New("which RollSet is to be watched? Give its NAME")
		}
		return g.list(ctx, c)
	}
	keys, err := g.target.Keys(g.session, args)
	if err != nil {
		return err
	}
	if !g.watch {
		return g.show(ctx, c, keys)
	}
	if len(keys) != 1 {
		return fmt.Errorf("%d RollSets are given; one can be watched", len(keys))
	}
	return g.watchSet(ctx, c, keys[0])
}

// show prints sets, each as a tree unless another format is requested.
func (g *get) show(ctx context.Context, c client.Client, keys []client.ObjectKey) error {
	var sets []*v1beta1.RollSet
	for _, key := range keys {
		set, err := getSet(ctx, c, key)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	if g.output != "" && g.output != outputWide {
		return g.print(sets, len(sets) > 1)
	}
	for i, set := range sets {
		if i > 0 {
			fmt.Fprintln(g.session.Out)
		}
		o, err := g.read(ctx, c, set)
		if err != nil {
			return err
		}
		if err := g.write(grow(o, g.session.Clock.Now()).lines(0, 0)); err != nil {
			return err
		}
	}
	return nil
}

// read reads what belongs to a set. A user without the right to see claims or revisions gets a tree without them, and a
// note.
func (g *get) read(ctx context.Context, c client.Client, set *v1beta1.RollSet) (o objects, err error) {
	o.set = set
	if o.pods, err = Pods(ctx, c, set); err != nil {
		return o, err
	}
	if o.revisions, err = Revisions(ctx, c, set); err != nil {
		g.warn(err)
	}
	list := &corev1.PersistentVolumeClaimList{}
	if err := c.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels{v1beta1.SetLabel: set.Name}); err != nil {
		g.warn(fmt.Errorf("list claims: %w", err))
	}
	o.claims = Pointers(list.Items)
	return o, nil
}

func (g *get) warn(err error) { fmt.Fprintln(g.session.ErrOut, "warning:", session.Explain(err)) }

// write writes lines, with as many colors as the output supports.
func (g *get) write(lines []string) error {
	_, err := io.WriteString(g.colors(), strings.Join(lines, "\n")+"\n")
	return err
}

// colors returns the output, which drops the colors that it does not support.
func (g *get) colors() io.Writer {
	w := colorprofile.NewWriter(g.session.Raw, os.Environ())
	if g.noColor {
		w.Profile = colorprofile.NoTTY
	}
	return w
}

// list prints a line for each set.
func (g *get) list(ctx context.Context, c client.Client) error {
	namespace, err := g.session.Namespace()
	if err != nil {
		return err
	}
	if g.all {
		namespace = ""
	}
	list := &v1beta1.RollSetList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	sets := Pointers(list.Items)
	for _, set := range sets {
		set.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("RollSet"))
	}
	if g.output != "" && g.output != outputWide {
		return g.print(sets, true)
	}
	if len(sets) == 0 {
		where := "namespace " + namespace
		if g.all {
			where = "any namespace"
		}
		fmt.Fprintf(g.session.ErrOut, "No RollSets in %s\n", where)
		return nil
	}
	slices.SortFunc(sets, func(a, b *v1beta1.RollSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return g.table(sets)
}

func (g *get) table(sets []*v1beta1.RollSet) error {
	w := printers.GetNewTabWriter(g.session.Out)
	columns := []string{"NAME", "DESIRED", "UPDATED", "READY", "AVAILABLE", "TOTAL", "STATUS", "AGE"}
	if g.all {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	if g.output == outputWide {
		columns = append(columns, "IMAGES", "MESSAGE")
	}
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, set := range sets {
		s := set.Status
		reason, message := "", ""
		if c := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionReady); c != nil {
			reason, message = c.Reason, c.Message
		}
		cells := []string{
			set.Name, count(*cmp.Or(set.Spec.Replicas, new(int32(1)))), count(s.UpdatedReplicas), count(s.ReadyReplicas),
			count(s.AvailableReplicas), count(s.Replicas), cmp.Or(reason, "Unobserved"), age(g.session.Clock.Now(), set.CreationTimestamp),
		}
		if g.all {
			cells = append([]string{set.Namespace}, cells...)
		}
		if g.output == outputWide {
			cells = append(cells, cmp.Or(podstate.Printable(strings.Join(s.Images, ","), textLimit), "<none>"), podstate.Printable(message, textLimit))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func count(n int32) string { return strconv.Itoa(int(n)) }

// print prints sets as objects.
func (g *get) print(sets []*v1beta1.RollSet, asList bool) error {
	flags := genericclioptions.NewPrintFlags("").WithDefaultOutput("")
	flags.OutputFormat = &g.output
	printer, err := flags.ToPrinter()
	if err != nil {
		return err
	}
	if g.output == "name" {
		for _, set := range sets {
			if err := printer.PrintObj(set, g.session.Out); err != nil {
				return err
			}
		}
		return nil
	}
	var object runtime.Object
	if asList {
		list := &v1beta1.RollSetList{Items: []v1beta1.RollSet{}} // programs do not expect null
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("RollSetList"))
		for _, set := range sets {
			set.ManagedFields = nil
			list.Items = append(list.Items, *set)
		}
		object = list
	} else {
		sets[0].ManagedFields = nil
		object = sets[0]
	}
	return printer.PrintObj(object, g.session.Out)
}
