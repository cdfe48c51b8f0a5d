// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// resourceNames returns the names of the resource RollSet that may precede a slash.
func resourceNames() []string {
	group := "." + v1beta1.GroupVersion.Group
	return []string{
		"rls", "rollset", "rollsets", "rls" + group, "rollset" + group, "rollsets" + group,
		"rollsets." + v1beta1.GroupVersion.Version + group, "rollsets.v1alpha1" + group,
	}
}

// Target is the RollSets that a command is about, given by arguments or by files.
type Target struct {
	// Filenames are the values of -f.
	Filenames []string
}

// AddFlag adds -f to a command.
func (t *Target) AddFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&t.Filenames, "filename", "f", nil, "File, URL or directory that has the RollSet; - is standard input")
}

// Keys returns the given sets, in the order in which they were given.
func (t *Target) Keys(s *Session, args []string) ([]client.ObjectKey, error) {
	namespace, err := s.Namespace()
	if err != nil {
		return nil, err
	}
	if len(t.Filenames) > 0 {
		if len(args) > 0 {
			return nil, fmt.Errorf("both a name (%s) and -f are given; give one of them", args[0])
		}
		return t.inFiles(s, namespace)
	}
	if len(args) == 2 && slices.Contains(resourceNames(), args[0]) { // rls NAME
		args = args[1:]
	}
	keys := make([]client.ObjectKey, 0, len(args))
	for _, arg := range args {
		name, err := NameOf(arg)
		if err != nil {
			return nil, err
		}
		keys = append(keys, client.ObjectKey{Namespace: namespace, Name: name})
	}
	return keys, nil
}

// Key returns the one given set.
func (t *Target) Key(s *Session, args []string) (client.ObjectKey, error) {
	keys, err := t.Keys(s, args)
	switch {
	case err != nil:
		return client.ObjectKey{}, err
	case len(keys) == 0:
		return client.ObjectKey{}, errors.New("which RollSet? Give its NAME, or -f FILE")
	case len(keys) > 1:
		return client.ObjectKey{}, fmt.Errorf("%d RollSets are given (%s, %s, …); give one", len(keys), keys[0].Name, keys[1].Name)
	default:
		return keys[0], nil
	}
}

// NameOf returns the name of the RollSet in an argument such as web or rls/web.
func NameOf(arg string) (string, error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok {
		kind, name = "rls", arg
	}
	switch {
	case !slices.Contains(resourceNames(), strings.ToLower(kind)):
		return "", fmt.Errorf("%s is no RollSet; this command is about RollSets, given as NAME or rls/NAME", arg)
	case name == "" || strings.Contains(name, "/"):
		return "", fmt.Errorf("%q names no RollSet; give NAME or rls/NAME", arg)
	}
	return name, nil
}

// inFiles returns the sets in files.
func (t *Target) inFiles(s *Session, namespace string) ([]client.ObjectKey, error) {
	objects, err := ReadFiles(s, t.Filenames)
	if err != nil {
		return nil, err
	}
	var keys []client.ObjectKey
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == v1beta1.GroupVersion.WithKind("RollSet").GroupKind() {
			key := client.ObjectKeyFromObject(o)
			if key.Namespace == "" {
				key.Namespace = namespace
			}
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no RollSet", strings.Join(t.Filenames, ", "))
	}
	return keys, nil
}

// ReadFiles returns the objects in files, directories, URLs or standard input. Lists are split into their items.
func ReadFiles(s *Session, filenames []string) ([]*unstructured.Unstructured, error) {
	builder := resource.NewLocalBuilder().Unstructured().Local().Flatten()
	if slices.Contains(filenames, "-") {
		if len(filenames) > 1 {
			return nil, errors.New("standard input (-) and files are given; give one of them")
		}
		builder = builder.Stream(s.In, "standard input")
	} else {
		builder = builder.FilenameParam(false, &resource.FilenameOptions{Filenames: filenames})
	}
	infos, err := builder.Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", strings.Join(filenames, ", "), err)
	}
	var objects []*unstructured.Unstructured
	for _, info := range infos {
		if o, ok := info.Object.(*unstructured.Unstructured); ok {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// CompleteNames completes the names of RollSets.
func (s *Session) CompleteNames(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.names(cmd.Context(), prefix), cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of the RollSets in the namespace that begin with a prefix. It returns none if they cannot be
// listed, because a completion cannot print an error.
func (s *Session) names(ctx context.Context, prefix string) []string {
	c, err := s.Client()
	if err != nil {
		return nil
	}
	namespace, err := s.Namespace()
	if err != nil {
		return nil
	}
	ctx, cancel := Within(ctx, completionLimit)
	defer cancel()
	list := &v1beta1.RollSetList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	kind, rest, qualified := strings.Cut(prefix, "/")
	if !qualified {
		kind, rest = "", prefix
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, rest) {
			if qualified {
				name = kind + "/" + name
			}
			names = append(names, name)
		}
	}
	return names
}
