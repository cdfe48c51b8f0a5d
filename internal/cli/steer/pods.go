// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/snapshot"
)

// podPoll is how often pods are read while waiting for their end.
const podPoll = 500 * time.Millisecond

// podDeletion is the command delete-pod.
type podDeletion struct {
	session *session.Session
	printer *genericclioptions.PrintFlags
	dryRun  string
	wait    bool
	timeout time.Duration
}

func newDeletePod(s *session.Session) *cobra.Command {
	d := &podDeletion{session: s, printer: genericclioptions.NewPrintFlags("marked for replacement").WithTypeSetter(clientgoscheme.Scheme)}
	cmd := &cobra.Command{
		Use:   "delete-pod POD...",
		Short: "Have pods replaced, within the limits of their set",
		Long: templates.LongDesc(`Have pods replaced, within the limits of their set: unlike kubectl delete pod, this waits for maxUnavailable,
			uses surge where there is some, and waits for lifecycle hooks. The pods are marked with a label. If the set is scaled down, they
			are the first to go.`),
		Example: templates.Examples(`kubectl rollset delete-pod web-x7k2p web-m4t8z --wait`),
		Args:    session.Arguments(1, 0, "which pods? Give their names"),
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), args) },
	}
	d.printer.AddFlags(cmd)
	addDryRun(cmd, &d.dryRun)
	cmd.Flags().BoolVar(&d.wait, "wait", false, "Wait until the pods are gone")
	cmd.Flags().DurationVar(&d.timeout, "timeout", 0, "How long to wait at most; 0 means no limit")
	return cmd
}

func (d *podDeletion) run(ctx context.Context, args []string) error {
	ctx, cancel := session.Within(ctx, d.timeout)
	defer cancel()
	err := d.mark(ctx, args)
	return session.Late(ctx, err, fmt.Sprintf("the pods were not replaced within %v: the API server does not answer", d.timeout))
}

// mark marks the pods, and waits until they are gone if that is wanted.
func (d *podDeletion) mark(ctx context.Context, args []string) error {
	options, suffix, err := checkDryRun(d.dryRun)
	if err != nil {
		return err
	}
	c, err := d.session.Client()
	if err != nil {
		return err
	}
	found, err := d.find(ctx, c, args)
	if err != nil {
		return err
	}
	d.printer.NamePrintFlags.Operation += suffix
	printer, err := d.printer.ToPrinter()
	if err != nil {
		return err
	}
	for _, pod := range found {
		if snapshot.SpecifiedDelete(pod) {
			continue
		}
		if err := markPod(ctx, c, pod, options); err != nil {
			return fmt.Errorf("mark pod %s: %w", pod.Name, err)
		}
		if err := printer.PrintObj(pod, d.session.Out); err != nil {
			return err
		}
	}
	if !d.wait || suffix != "" {
		return nil
	}
	return d.await(ctx, c, found)
}

// find reads all pods before any of them is marked. Each must belong to a RollSet.
func (d *podDeletion) find(ctx context.Context, c client.Client, args []string) ([]*corev1.Pod, error) {
	namespace, err := d.session.Namespace()
	if err != nil {
		return nil, err
	}
	var found []*corev1.Pod
	for _, arg := range args {
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "pod/"), "pods/")
		pod := &corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
			return nil, fmt.Errorf("nothing was done: %w", err)
		}
		if !ofSet(pod) {
			return nil, fmt.Errorf("nothing was done: pod %s belongs to no RollSet; use kubectl delete pod", name)
		}
		found = append(found, pod)
	}
	return found, nil
}

// ofSet reports whether a RollSet controls a pod. References made by other releases may name another version of the API.
func ofSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == v1beta1.GroupVersion.WithKind("RollSet").GroupKind()
}

// markPod labels a pod if it is the one that was seen.
func markPod(ctx context.Context, c client.Client, pod *corev1.Pod, options []client.PatchOption) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:"true"}}}`, pod.UID, v1beta1.SpecifiedDeleteLabel)
	return c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)), options...)
}

// await waits until pods are gone.
func (d *podDeletion) await(ctx context.Context, c client.Client, pods []*corev1.Pod) error {
	ticker := d.session.Clock.NewTicker(podPoll)
	defer ticker.Stop()
	for _, pod := range pods {
		for gone := false; !gone; {
			seen := &corev1.Pod{}
			err := c.Get(ctx, client.ObjectKeyFromObject(pod), seen)
			switch {
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				return &session.ExitError{Code: session.ExitTimeout, Err: fmt.Errorf("pod %s was not replaced within %v", pod.Name, d.timeout)}
			case apierrors.IsNotFound(err), err == nil && seen.UID != pod.UID:
				gone = true
				continue
			case err != nil:
				return err
			}
			select {
			case <-ctx.Done():
			case <-ticker.C():
			}
		}
	}
	return nil
}
