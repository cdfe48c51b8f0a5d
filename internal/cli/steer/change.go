// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package steer is the verbs that change RollSets: undo, restart, pause, resume, promote, abort, retry, set image, set
// partition and delete-pod.
//
// The rule: a verb sends one patch of the spec, or of an annotation, and only if the fields that it is about have not
// changed since it read them. Then it says what happens next. Errors are found before anything is written.
package steer

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/cli/view"
)

// Commands returns the verbs of this package.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newUndo(s), newRestart(s), newPause(s), newResume(s), newPromote(s), newAbort(s), newRetry(s), newSet(s), newDeletePod(s)}
}

// attempts is how often a patch is sent whose precondition failed because of an unrelated write, such as one of the status.
const attempts = 20

// set is a RollSet as a verb reads it: as the API server wrote it, and decoded.
type set struct {
	*v1beta1.RollSet

	raw *unstructured.Unstructured
}

// edit changes a copy of a set and returns what happens next.
type edit func(ctx context.Context, c client.Client, set set) (next string, err error)

// change is a command that edits one set.
type change struct {
	session *session.Session
	target  session.Target
	printer *genericclioptions.PrintFlags
	dryRun  string
	wait    bool
	// await configures how to wait.
	await view.AwaitOptions
	// request is the annotation by which the command asks for something; empty if it changes the spec.
	request string
	// judges means that what the command does depends on the status, which must be about the spec.
	judges bool
}

// newChange returns a change with the word that reports it as done, and adds its flags to a command.
func newChange(s *session.Session, cmd *cobra.Command, done string) *change {
	c := &change{session: s, printer: genericclioptions.NewPrintFlags(done)}
	c.target.AddFlag(cmd)
	c.printer.AddFlags(cmd)
	addDryRun(cmd, &c.dryRun)
	cmd.Flags().BoolVar(&c.wait, "wait", false, "Wait until the change is carried out, as status does")
	cmd.Flags().DurationVar(&c.await.Timeout, "timeout", 0, "How long to wait at most; 0 means no limit")
	cmd.ValidArgsFunction = s.CompleteNames
	return c
}

func addDryRun(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "dry-run", "none", `Must be "none" or "server". With server the API server judges the change, and does not keep it`)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
}

// checkDryRun returns the options of a write, and the suffix for its result.
func checkDryRun(value string) (options []client.PatchOption, suffix string, err error) {
	switch value {
	case "none", "":
		return nil, "", nil
	case "server":
		return []client.PatchOption{client.DryRunAll}, " (server dry run)", nil
	default:
		return nil, "", fmt.Errorf("--dry-run is none or server, not %q", value)
	}
}

// run edits the set that the arguments name.
func (c *change) run(ctx context.Context, args []string, edit edit) error {
	options, suffix, err := checkDryRun(c.dryRun)
	if err != nil {
		return err
	}
	key, err := c.target.Key(c.session, args)
	if err != nil {
		return err
	}
	ctx, cancel := session.Within(ctx, c.await.Timeout)
	defer cancel()
	err = c.make(ctx, key, edit, options, suffix)
	return session.Late(ctx, err, fmt.Sprintf("rollset %s was not changed within %v: the API server does not answer", key.Name, c.await.Timeout))
}

// make edits a set, and waits for what follows if that is wanted.
func (c *change) make(ctx context.Context, key client.ObjectKey, edit edit, options []client.PatchOption, suffix string) error {
	api, err := c.session.Client()
	if err != nil {
		return err
	}
	before, err := read(ctx, api, key)
	if err != nil {
		return err
	}
	if c.request != "" || c.judges {
		if before, err = observed(ctx, c.session, api, before); err != nil {
			return err
		}
	}
	if suffix == "" {
		if before, err = forget(ctx, c.session, api, before, c.request); err != nil {
			return err
		}
	}
	after, next, err := before.edited(ctx, api, edit)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(before.raw.Object, after.raw.Object) {
		_, err := fmt.Fprintf(c.session.Out, "rollset.%s/%s unchanged: %s\n", v1beta1.GroupVersion.Group, key.Name, next)
		return err
	}
	written, err := patch(ctx, api, before, edit, options)
	if err != nil {
		return err
	}
	if err := c.tell(written, next, suffix); err != nil || !c.wait || suffix != "" {
		return err
	}
	c.await.Generation = written.GetGeneration()
	return view.Await(ctx, c.session, key, c.await)
}

// tell prints what was written. It also prints what happens next, unless the output is for programs.
func (c *change) tell(written *unstructured.Unstructured, next, suffix string) error {
	c.printer.NamePrintFlags.Operation += suffix
	printer, err := c.printer.ToPrinter()
	if err != nil {
		return err
	}
	if err := printer.PrintObj(written, c.session.Out); err != nil {
		return err
	}
	if *c.printer.OutputFormat != "" || next == "" {
		return nil
	}
	_, err = fmt.Fprintln(c.session.Out, next)
	return err
}

// read reads a set.
func read(ctx context.Context, c client.Client, key client.ObjectKey) (set, error) {
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("RollSet"))
	if err := c.Get(ctx, key, raw); err != nil {
		return set{}, err
	}
	return decode(raw)
}

func decode(raw *unstructured.Unstructured) (set, error) {
	typed := &v1beta1.RollSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, typed); err != nil {
		return set{}, fmt.Errorf("decode rollset %s: %w", raw.GetName(), err)
	}
	return set{RollSet: typed, raw: raw}, nil
}

// edited returns a copy of the set that an edit has changed.
func (s set) edited(ctx context.Context, c client.Client, edit edit) (after set, next string, err error) {
	after = set{RollSet: s.RollSet, raw: s.raw.DeepCopy()}
	next, err = edit(ctx, c, after)
	return after, next, err
}

// patch sends an edit as one patch. Its precondition is the version that was read. If only the status or the number of
// replicas was written meanwhile, the same edit is sent again.
func patch(ctx context.Context, c client.Client, seen set, edit edit, options []client.PatchOption) (*unstructured.Unstructured, error) {
	before := seen
	for range attempts {
		after, _, err := before.edited(ctx, c, edit)
		if err != nil {
			return nil, err
		}
		locked := client.MergeFromWithOptions(before.raw, client.MergeFromWithOptimisticLock{})
		err = c.Patch(ctx, after.raw, locked, options...)
		if !apierrors.IsConflict(err) {
			return after.raw, err
		}
		if before, err = read(ctx, c, client.ObjectKeyFromObject(seen.raw)); err != nil {
			return nil, err
		}
		if before.UID != seen.UID || !reflect.DeepEqual(specOf(before), specOf(seen)) {
			return nil, fmt.Errorf("rollset %s was changed by someone else meanwhile; nothing was done; look at it and try again", seen.Name)
		}
	}
	return nil, errors.New("the set is written too often to change it; nothing was done; try again")
}

// specOf returns the spec without the replicas, which an autoscaler may write at any time.
func specOf(s set) v1beta1.RollSetSpec {
	spec := *s.Spec.DeepCopy()
	spec.Replicas = nil
	return spec
}
