// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/templates"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

// logs is the command logs. Most fields are its flags.
type logs struct {
	session                 *session.Session
	target                  session.Target
	revision, container     string
	follow, previous, allOf bool
	timestamps              bool
	tail                    int64
	since                   time.Duration
	maxStreams              int
	open                    func(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) (io.ReadCloser, error)
	printing                sync.Mutex
}

func newLogs(s *session.Session) *cobra.Command {
	l := &logs{session: s}
	cmd := &cobra.Command{
		Use:   "logs (NAME | -f FILE)",
		Short: "Print the logs of the pods of a set or of one revision, merged by time",
		Long: templates.LongDesc(`Print the logs of the pods of a set or of one revision. Each line begins with its pod. What there is already is
			merged by time; with --follow lines come as they are written.`),
		Example: templates.Examples(`
			kubectl rollset logs web
			kubectl rollset logs web --revision=update --follow
			kubectl rollset logs web --revision=3 -c app --tail=20`),
		ValidArgsFunction: s.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&l.target.Filenames, "filename", nil, "File, URL or directory that has the RollSet; - is standard input")
	flags.StringVar(&l.revision, "revision", "", "Only pods at this revision: a number, current or update")
	flags.StringVarP(&l.container, "container", "c", "", "The container; without it the first, or the one that the template's annotation names")
	flags.BoolVar(&l.allOf, "all-containers", false, "All containers of each pod")
	flags.BoolVarP(&l.follow, "follow", "f", false, "Go on as lines are written")
	flags.BoolVarP(&l.previous, "previous", "p", false, "The containers that ran before the present ones")
	flags.BoolVar(&l.timestamps, "timestamps", false, "Begin lines with their time")
	flags.Int64Var(&l.tail, "tail", -1, "How many of the last lines of each container; -1 is all")
	flags.DurationVar(&l.since, "since", 0, "Only lines that are not older, such as 5m")
	flags.IntVar(&l.maxStreams, "max-log-requests", 50, "How many containers may be read at a time")
	return cmd
}

// defaultContainer is the annotation that names the container that kubectl uses by default.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// stream is the log of a container.
type stream struct {
	pod       *corev1.Pod
	container string
}

func (l *logs) run(ctx context.Context, args []string) error {
	key, err := l.target.Key(l.session, args)
	if err != nil {
		return err
	}
	c, err := l.session.Client()
	if err != nil {
		return err
	}
	set, err := getSet(ctx, c, key)
	if err != nil {
		return err
	}
	name, err := l.revisionName(ctx, set)
	if err != nil {
		return err
	}
	pods, err := Pods(ctx, c, set)
	if err != nil {
		return err
	}
	streams, err := l.streams(pods, name)
	switch {
	case err != nil:
		return err
	case len(streams) == 0:
		return fmt.Errorf("rollset %s has no pods to read the logs of", set.Name)
	case l.follow && len(streams) > l.maxStreams:
		return fmt.Errorf("%d containers are to be followed, more than --max-log-requests=%d; raise it, or choose a revision", len(streams), l.maxStreams)
	}
	clientset, err := l.session.Clientset()
	if err != nil {
		return err
	}
	l.open = func(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		return clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	}
	if l.follow {
		return l.followAll(ctx, streams)
	}
	return l.mergeAll(ctx, streams)
}

// revisionName returns the name of the revision whose pods are meant; empty for all.
func (l *logs) revisionName(ctx context.Context, set *v1beta1.RollSet) (string, error) {
	switch l.revision {
	case "":
		return "", nil
	case "current":
		return set.Status.CurrentRevision, nil
	case "update":
		return set.Status.UpdateRevision, nil
	}
	c, err := l.session.Client()
	if err != nil {
		return "", err
	}
	revisions, err := Revisions(ctx, c, set)
	if err != nil {
		return "", err
	}
	r, err := numberedText(set, revisions, l.revision)
	if errors.Is(err, errWhichRevision) {
		return "", fmt.Errorf("--revision is a number, current or update, not %q", l.revision)
	}
	if err != nil {
		return "", err
	}
	return r.Name, nil
}

// streams returns the containers to read.
func (l *logs) streams(pods []*corev1.Pod, revision string) ([]stream, error) {
	var all []stream
	for _, pod := range pods {
		if revision != "" && pod.Labels[v1beta1.RevisionLabel] != revision {
			continue
		}
		var names []string
		for i := range pod.Spec.InitContainers {
			names = append(names, pod.Spec.InitContainers[i].Name)
		}
		first := len(names)
		for i := range pod.Spec.Containers {
			names = append(names, pod.Spec.Containers[i].Name)
		}
		switch {
		case l.allOf:
		case l.container == "" && slices.Contains(names, pod.Annotations[defaultContainer]):
			names = []string{pod.Annotations[defaultContainer]}
		case l.container == "":
			names = names[first : first+1]
		case slices.Contains(names, l.container):
			names = []string{l.container}
		default:
			return nil, fmt.Errorf("pod %s has no container %q; it has %s", pod.Name, l.container, strings.Join(names, ", "))
		}
		for _, name := range names {
			all = append(all, stream{pod, name})
		}
	}
	return all, nil
}

func (l *logs) options(s stream) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{Container: s.container, Follow: l.follow, Previous: l.previous, Timestamps: true}
	if l.tail >= 0 {
		o.TailLines = &l.tail
	}
	if l.since > 0 {
		o.SinceSeconds = new(int64(l.since.Seconds()))
	}
	return o
}

// line is a line of a log, with its time in front.
type line struct {
	prefix, at, text string
}

func (s stream) prefix() string { return "[" + s.pod.Name + " " + s.container + "] " }

// read reads the lines of a log one by one.
func (l *logs) read(ctx context.Context, s stream, each func(line) error) error {
	body, err := l.open(ctx, s.pod, l.options(s))
	if err != nil {
		return fmt.Errorf("read the log of pod %s, container %s: %w", s.pod.Name, s.container, err)
	}
	defer func() { _ = body.Close() }()
	for reader := bufio.NewReader(body); ; {
		raw, err := reader.ReadBytes('\n')
		if len(raw) > 0 {
			at, text, _ := bytes.Cut(bytes.TrimSuffix(raw, []byte("\n")), []byte(" "))
			if err := each(line{s.prefix(), string(at), string(text)}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the log of pod %s, container %s: %w", s.pod.Name, s.container, err)
		}
	}
}

func (l *logs) print(one line) error {
	text := one.prefix + one.text
	if l.timestamps {
		text = one.prefix + one.at + " " + one.text
	}
	l.printing.Lock()
	defer l.printing.Unlock()
	_, err := fmt.Fprintln(l.session.Raw, session.Colored(text))
	return err
}

// followAll prints lines as they come.
func (l *logs) followAll(ctx context.Context, streams []stream) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range streams {
		group.Go(func() error { return l.read(ctx, s, l.print) })
	}
	return group.Wait()
}

// mergeAll prints the lines of all containers in the order in which they were written. A container that cannot be read does
// not keep the others from being read. The first such error is returned.
func (l *logs) mergeAll(ctx context.Context, streams []stream) error {
	var lines []line
	var group errgroup.Group
	group.SetLimit(l.maxStreams)
	var mu sync.Mutex
	for _, s := range streams {
		group.Go(func() error {
			return l.read(ctx, s, func(one line) error {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, one)
				return nil
			})
		})
	}
	failure := group.Wait()
	slices.SortStableFunc(lines, func(a, b line) int { return timeOf(a).Compare(timeOf(b)) })
	for _, one := range lines {
		if err := l.print(one); err != nil {
			return err
		}
	}
	return failure
}

// timeOf returns the time of a line. Kubelets do not pad the fractions of seconds, so the texts cannot be sorted.
func timeOf(one line) time.Time {
	at, err := time.Parse(time.RFC3339Nano, one.at)
	if err != nil {
		return time.Time{}
	}
	return at
}
